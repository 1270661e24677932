"""The agreement table: every scorer against the clinicians, on each benchmark and combined."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence

import pandas as pd

from calibration.agreement import Panel
from calibration.composite import Composites, composites, required_criteria
from calibration.grid import analysed_grid
from calibration.repeats import Repeats, repeats
from calibration.rows import scope_rows
from calibration.scope import Asked, Row, Scope
from calibration.scores import COMBINED, Method, Scores
from data.errors import BadInput, TooFew, Unknown

COLUMNS = tuple(field.name for field in dataclasses.fields(Row))
COUNTS = [name for name in COLUMNS if name.startswith("n_")]
LOOPS = 3  # scorers, pairs and like for like are resampled one after another


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
    chosen = _jurors(scores, jurors)
    _check_options(method, reps, min_shared)
    _check_criterion(scores, criterion)
    jury = _jury(chosen, min_jurors)
    found = composites(scores, criterion)
    if not (found.values["kind"] == "clinician").any():
        raise TooFew("no clinician has rated a response on all criteria: nothing to agree with")
    asked, report = Asked(method, criterion, reps, seed, min_shared), tick or _silent
    names, again = _scope_names(scores), repeats(scores, criterion)
    loops = LOOPS + bool(again)
    rows: list[Row] = []
    for place, name in enumerate(names):
        advance = _Progress(report, place, len(names), loops * reps)
        rows += _rows(scores, _scope(scores, (found, again), name, jury, asked, advance))
        report((place + 1) / len(names))
    return _frame(rows)


def to_json(table: pd.DataFrame, method: Method, reps: int, seed: int) -> dict[str, object]:
    """Return the table in the form of `calibrate --json`; what is undefined becomes None."""
    rows = [
        {name: _plain(value) for name, value in zip(COLUMNS, row, strict=True)}
        for row in table[list(COLUMNS)].itertuples(index=False, name=None)
    ]
    return {"method": method, "k": 2, "reps": reps, "seed": seed, "rows": rows}


def _plain(value: object) -> object:
    if value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value.item() if hasattr(value, "item") else value


def _jurors(scores: Scores, jurors: Sequence[str] | None) -> tuple[str, ...]:
    known = scores.raters("juror")
    if jurors is None:
        return known
    if lost := [name for name in jurors if name not in known]:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise Unknown(f"no ratings by a juror {', '.join(lost)} in this study: {has}")
    return tuple(dict.fromkeys(jurors))


def _jury(jurors: tuple[str, ...], min_jurors: int | None) -> Panel | None:
    needed = len(jurors) if min_jurors is None else min_jurors
    if jurors and not 1 <= needed <= len(jurors):
        raise BadInput(f"min_jurors={needed}: the jury has {len(jurors)} jurors")
    return Panel(jurors, needed) if jurors else None


def _check_options(method: str, reps: int, min_shared: int) -> None:
    if method not in ("paper", "published"):
        raise BadInput(f"method {method}: it is paper or published")
    if reps < 0:
        raise BadInput(f"reps={reps}: it is 0 or more")
    if min_shared < 2:
        raise BadInput(f"min_shared={min_shared}: an ICC needs at least 2 shared responses")


def _check_criterion(scores: Scores, criterion: str | None) -> None:
    known = dict.fromkeys(name for shape in scores.rubrics.values() for name in shape.criteria)
    if criterion is not None and criterion not in known:
        raise Unknown(f"no rubric has the criterion {criterion}: they have {', '.join(known)}")


def _scope_names(scores: Scores) -> list[str]:
    several = len(scores.benchmarks) > 1
    return [*scores.benchmarks, *([COMBINED] if several else [])]


def _members(scores: Scores, name: str, criterion: str | None) -> list[str]:
    """Return the benchmarks of a scope that can have composites."""
    can = required_criteria(scores.rubrics, criterion)
    return [one for one in scores.benchmarks if one in can and name in (one, COMBINED)]


def _scope(
    scores: Scores,
    read: tuple[Composites, Repeats],
    name: str,
    jury: Panel | None,
    asked: Asked,
    tick: Callable[[int], None],
) -> Scope:
    found, again = read
    members = _members(scores, name, asked.criterion)
    jurors, metrics = jury.members if jury else (), scores.raters("metric")
    short = found.incomplete[found.incomplete["benchmark"].isin(members)]
    return Scope(
        name=name,
        grid=analysed_grid(found.values, members, jurors=jurors, metrics=metrics),
        given=found.values[found.values["benchmark"].isin(members)],
        in_study=int(scores.responses["benchmark"].isin(members).sum()),
        incomplete={
            str(name): int(n) for name, n in short.groupby("rater")["readings"].sum().items()
        },
        repeats=again.of(members),
        jury=jury,
        jurors=jurors,
        metrics=metrics,
        simulated=scores.simulated,
        asked=asked,
        tick=tick,
    )


def _rows(scores: Scores, scope: Scope) -> list[Row]:
    reason = _why_not(scores, scope)
    return list(_undefined(scope, reason) if reason else scope_rows(scope))


def _why_not(scores: Scores, scope: Scope) -> str:
    criterion = scope.asked.criterion
    if criterion is not None and not _members(scores, scope.name, criterion):
        return f"undefined: its rubric has no criterion {criterion}"
    if not scope.grid.responses:
        return "undefined: no clinician has rated a response of this benchmark with a composite"
    clinical = scope.given[scope.given["kind"] == "clinician"]
    shapes = [scores.rubrics[name] for name in clinical["benchmark"].unique()]
    if len({(shape.low, shape.high) for shape in shapes}) > 1:
        return "undefined: the benchmarks use different scales"
    return ""


def _undefined(scope: Scope, reason: str) -> Iterator[Row]:
    last = ["clinicians", *(["like_for_like"] if scope.jury else [])]
    last += ["intra_rater"] if scope.repeats else []
    for scorer in [*scope.scorers, *last]:
        yield Row(scope.name, scorer, n_pairs=0 if scorer == "clinicians" else None, note=reason)


class _Progress:
    """Turns resamples done on one of several scopes into the share of all the work done."""

    def __init__(self, report: Callable[[float], None], place: int, of: int, work: int) -> None:
        self.report, self.place, self.of, self.work = report, place, of, work
        self.done = 0

    def __call__(self, resamples: int) -> None:
        self.done += resamples
        self.report((self.place + self.done / self.work) / self.of)


def _silent(share: float) -> None:
    """Report progress to nobody."""


def _frame(rows: list[Row]) -> pd.DataFrame:
    table = pd.DataFrame([dataclasses.asdict(row) for row in rows], columns=list(COLUMNS))
    return table.astype(dict.fromkeys(COUNTS, "Int64"))
