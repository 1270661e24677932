"""The agreement table: every scorer against the clinicians, on each benchmark and combined."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor

import pandas as pd

from calibration.messages import told
from calibration.rows import scope_rows
from calibration.scope import AgreementRow, Asked, LikeForLikeRow, Scope
from calibration.scopes import Sitting, scopes, why_undefined_scope
from calibration.scores import Method, Scores
from calibration.values import Note

FIGURES = [one.name for one in dataclasses.fields(AgreementRow) if one.name != "notes"]
COLUMNS = (*FIGURES, "note")
COUNTS = [name for name in FIGURES if name.startswith("n_")]


def agreement_rows(
    scores: Scores,
    sitting: Sitting,
    asked: Asked,
    tick: Callable[[float], None] | None = None,
) -> list[AgreementRow]:
    """Return the rows of the agreement table, as `agreement_table` describes them."""
    rows: list[AgreementRow] = []
    for scope in scopes(scores, sitting, asked, tick):
        reason = why_undefined_scope(scores, scope)
        rows += _undefined(scope, reason) if reason else scope_rows(scope)
    return rows


def agreement_table(
    scores: Scores,
    *,
    jurors: Sequence[str] | None = None,
    method: Method = "paper",
    criterion: str | None = None,
    reps: int = 2000,
    seed: int = 0,
    min_shared: int = 2,
    min_jurors: int | None = None,
    tick: Callable[[float], None] | None = None,
    executor: Executor | None = None,
) -> pd.DataFrame:
    """Return how far a jury, its jurors, metrics and clinicians agree with clinicians.

    Parameters
    ----------
    scores : Scores
    jurors : sequence of handles, optional
        The jury; None takes every juror that has ratings.
    method : "paper" or "published"
        "paper": z within every rater over the analysed set, then means, then ICC(3,2).
        "published": means of raw composites, z of the two columns over the responses
        that have both, then ICC(3,2). The clinicians row is the same in both.
    criterion : str, optional
        One criterion instead of the mean of all.
    reps, seed : of the bootstrap over instances
    min_shared : responses that a pair of clinicians must share, at least 2
    min_jurors : jurors that must have scored a response; None means all of them
    tick : called with the share of the work done, from above 0 to 1
    executor : where resamples are computed; None: here. The figures are the same

    Returns
    -------
    DataFrame
        For each benchmark, then "combined" if there are several, the scorers "jury",
        "juror:NAME", "metric:NAME", "clinicians", "like_for_like" and, where there are
        hidden repeats, "intra_rater". Columns:

        icc : ICC(3,2), consistency; for like_for_like the difference of two ICCs; for
            intra_rater ICC(A,1) of first and repeated composites
        f_low, f_high : exact 95 % interval, for independent responses
        boot_low, boot_high : percentile 95 % interval over instances with everything
            recomputed in each resample; the jury's note has the BCa interval too
        n_responses, n_instances, n_clinicians, n_pairs : what the number rests on
        n_missing : responses of the analysed set without this scorer's composite; for
            like_for_like those that no comparison uses, for intra_rater the repeats
            without a composite both times; its n_responses are repeats
        spearman : rank correlation of the two columns
        note : what was left out, and why a number is undefined

        Undefined numbers are NaN, counts that do not apply NA.

    Raises
    ------
    Unknown
        If a juror or the criterion is not in the study.
    BadInput
        If an option is out of range.
    TooFew
        If no clinician has rated any response with a composite.
    """
    asked = Asked(method, criterion, reps, seed, min_shared, executor)
    rows = agreement_rows(scores, Sitting(jurors, min_jurors), asked, tick)
    cells = [[getattr(row, name) for name in FIGURES] + [told(row.notes)] for row in rows]
    table = pd.DataFrame(cells, columns=list(COLUMNS))
    return table.astype(dict.fromkeys(COUNTS, "Int64"))


def _undefined(scope: Scope, reason: Note) -> Iterator[AgreementRow]:
    """Yield the rows of a benchmark without agreement, each with the reason alone."""
    for scorer in scope.scorers:
        yield AgreementRow(scope.name, scorer, notes=(reason,))
    yield AgreementRow(scope.name, "clinicians", n_pairs=0, notes=(reason,))
    if scope.jury:
        yield LikeForLikeRow(scope.name, "like_for_like", notes=(reason,))
    if scope.repeats:
        yield AgreementRow(scope.name, "intra_rater", notes=(reason,))
