"""Test-retest reliability: a juror's replicates, and a clinician's hidden repeats."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.icc import UNDEFINED, Interval, agreement_interval, icc_agreement, mean_squares
from calibration.intervals import jackknife_interval, left_out
from calibration.notes import Note, Noted, note, noted, undefined
from calibration.other_measures import spearman
from calibration.rating_matrix import FLAT, required_criteria
from calibration.scope import AgreementRow, Scope
from calibration.scores import Array, Scores
from calibration.values import NAN

LEAST_RESPONSES = 3
READING = ["response_id", "pass_", "replicate"]
LEAST_REPEATS = 3


@dataclass(frozen=True)
class RetestRow(Noted):
    """How far one juror agrees with itself on one benchmark.

    Attributes
    ----------
    icc_one : float
        ICC(A,1) of composites: responses in rows, replicates in columns.
    sd_points : float
        Standard deviation of the juror's composites of one response, in points.
    exact_agreement : float
        Share of pairs of replicates that gave a criterion of a response the same score; means of
        distributions, which lie between points, are the same only where they are equal.
    n_responses, n_replicates : int
        Responses with two composites or more; the most composites that a response has.
    """

    benchmark: str
    juror: str
    icc_one: float
    sd_points: float
    exact_agreement: float
    n_responses: int
    n_replicates: int


def test_retest_rows(scope: Scope, scores: Scores) -> list[RetestRow]:
    """Return how far each juror of a scope agrees with itself.

    Composites of single readings, raw under both methods, on all responses of the scope's
    benchmarks: no clinician is needed. A reading without all criteria has no composite.
    """
    required = _required(scope, scores)
    pairs = [(name, criterion) for name, own in required.items() for criterion in own]
    read = scores.ratings[scores.ratings["rater"].isin(scope.jurors)].dropna(subset=["score"])
    is_required = pd.MultiIndex.from_frame(read[["benchmark", "criterion"]]).isin(pairs)
    read = read[is_required].assign(score=lambda own: own["score"].astype(float))
    read["needed"] = read["benchmark"].map({name: len(own) for name, own in required.items()})
    rows = []
    for name in scope.jurors:
        own = read[read["rater"] == name]
        grouped = own.groupby(READING).agg(
            composite=("score", "mean"), given=("score", "size"), needed=("needed", "first")
        )
        complete = grouped[grouped["given"] == grouped["needed"]]
        table = complete["composite"].unstack(["pass_", "replicate"]).to_numpy(dtype=np.float64)
        single = own.set_index([*READING, "criterion"])["score"].unstack(["pass_", "replicate"])
        incomplete = len(grouped) - len(complete)
        number = (~np.isnan(table)).sum(axis=1)
        rows.append(
            RetestRow(
                benchmark=scope.name,
                juror=name,
                icc_one=icc_one(table[number == table.shape[1]]),
                sd_points=sd_within(table),
                exact_agreement=same_pairs(single.to_numpy(dtype=np.float64)),
                n_responses=int((number > 1).sum()),
                n_replicates=int(number.max(initial=0)),
                notes=noted(
                    *_notes(table),
                    remarks.incomplete(incomplete),
                    remarks.simulated(scope.simulated & {name}),
                ),
            )
        )
    return rows


def _notes(table: Array) -> Iterator[Note]:
    """Yield why there is no ICC, and how many responses are left out."""
    number, replicates = (~np.isnan(table)).sum(axis=1), table.shape[1]
    whole = table[number == replicates]
    if not (number > 1).any():
        yield undefined(
            "no_replicates", "no replicates; a jury run with 3 verdicts of each juror makes them"
        )
        return
    if len(whole) < LEAST_RESPONSES:
        yield note(
            "few_replicated",
            "no ICC: {responses:response} with all {replicates} replicates, and {least} are needed",
            responses=len(whole),
            replicates=replicates,
            least=LEAST_RESPONSES,
        )
    elif not np.isfinite(icc_one(whole)):
        yield note("replicates_alike", "no ICC: all composites are the same")
    if short := len(table) - len(whole):
        yield note(
            "without_all_replicates",
            "{responses:response} without all replicates left out of the ICC",
            responses=short,
        )


def icc_one(table: Array) -> float:
    """Return ICC(A,1) of composites (n, m), replicates in columns, no NaN.

    NaN with fewer than 3 responses or 2 replicates, or where all composites are equal.
    """
    n, m = table.shape
    if n < LEAST_RESPONSES or m < 2 or np.ptp(table) <= FLAT * np.abs(table).max():
        return NAN
    return icc_agreement(table)


def sd_within(table: Array) -> float:
    """Return the standard deviation of replicates about their response's mean, in points.

    Parameters
    ----------
    table : shape (n, m), NaN where missing

    Returns
    -------
    float
        sqrt(sum of squares within responses / sum of (replicates - 1)); NaN where no
        response has two.

    References
    ----------
    Bland & Altman (1996), BMJ 312, 1654: within-subject standard deviation.
    """
    number = (~np.isnan(table)).sum(axis=1)
    twice, free = table[number > 1], int((number[number > 1] - 1).sum())
    if not free:
        return NAN
    away = twice - np.nanmean(twice, axis=1, keepdims=True)
    return float(np.sqrt(np.nansum(away**2) / free))


def same_pairs(table: Array) -> float:
    """Return the share of pairs of replicates with the same score.

    Parameters
    ----------
    table : shape (n, m), scores of a response and criterion in a row, NaN where missing

    Returns
    -------
    float
        0 to 1, over all pairs of all rows; NaN where no row has two scores.
    """
    first, second = np.triu_indices(table.shape[1], 1)
    apart = np.abs(table[:, first] - table[:, second])
    both = ~np.isnan(apart)
    return float((apart[both] <= FLAT).mean()) if both.any() else NAN


def _required(scope: Scope, scores: Scores) -> dict[str, tuple[str, ...]]:
    """Return what a composite needs on each benchmark of the scope that has any composite."""
    required = required_criteria(scores.rubrics, scope.options.criterion)
    composed = {*scope.composites["benchmark"]}
    return {name: own for name, own in required.items() if name in composed}


def intra_rater_row(scope: Scope) -> AgreementRow:
    """Return how far clinicians agree with themselves, pooled over all hidden repeats."""
    composites = scope.repeats.composites
    pairs = composites[["first", "again"]].to_numpy(dtype=np.float64)
    reason, instances = why_no_icc(pairs), composites["instance_id"].nunique()
    icc, exact = intra_rater_icc(pairs)
    ends = UNDEFINED
    if not reason:
        numbers = np.unique(composites["instance_id"].to_numpy(dtype=str), return_inverse=True)[1]
        kept = left_out(instances)[:, numbers] > 0
        iccs = np.array([intra_rater_icc(pairs[rows])[0] for rows in kept])
        ends = jackknife_interval(iccs, single=True)
    is_varied = not reason and (np.ptp(pairs, axis=0) > 0).all()
    return AgreementRow(
        benchmark=scope.name,
        scorer="intra_rater",
        icc=icc,
        f_low=exact.low,
        f_high=exact.high,
        low=ends.low,
        high=ends.high,
        n_responses=len(pairs),
        n_instances=instances,
        n_clinicians=composites["rater"].nunique(),
        n_missing=len(scope.repeats.unpaired),
        spearman=spearman(*pairs.T) if is_varied else NAN,
        notes=noted(
            reason,
            *_repeat_notes(scope, pairs),
            remarks.unpaired(len(scope.repeats.unpaired)),
            remarks.few_instances(instances),
            remarks.simulated(scope.simulated & set(composites["rater"])),
        ),
    )


def _repeat_notes(scope: Scope, pairs: Array) -> Iterator[Note | None]:
    composites = scope.repeats.composites
    if not why_no_icc(pairs):
        yield remarks.few_repeats(len(pairs))
        if not float(mean_squares(pairs).rows):
            yield note(
                "no_f",
                "no F interval: the mean square between responses is 0, all pairs have the same mean",
            )
    yield from remarks.same_again(scope.repeats.scores)
    if composites["rater"].nunique() > 1:
        clinical = scope.composites[scope.composites["kind"] == "clinician"]
        means = clinical.groupby("rater")["composite"].mean()
        own = composites["rater"].map(means).to_numpy(dtype=np.float64)
        yield remarks.own_means(intra_rater_icc(pairs - own[:, None])[0])


def intra_rater_icc(pairs: Array) -> tuple[float, Interval]:
    """Return ICC(A,1) of first and repeated composites, with its F interval.

    Of pairs (n, 2) of all clinicians, pooled: one who is stricter the second time loses by it. NaN
    with fewer than 3 repeats or where all composites are the same; no interval where every repeat is
    identical, or where all pairs have the same mean.
    """
    if why_no_icc(pairs):
        return NAN, UNDEFINED
    ms, n = mean_squares(pairs), len(pairs)
    squares = float(ms.rows), float(ms.columns), float(ms.error)
    return icc_agreement(pairs), agreement_interval(squares, (n - 1, 1, n - 1), (2, n))


def why_no_icc(pairs: Array) -> Note | None:
    """Return why repeats have no ICC, or None when they have one."""
    if len(pairs) < LEAST_REPEATS:
        return undefined(
            "few_repeats",
            "{repeats} complete repeats, and {least} are needed",
            repeats=len(pairs),
            least=LEAST_REPEATS,
        )
    if np.ptp(pairs) <= FLAT * np.abs(pairs).max():
        return undefined("repeats_alike", "all first and repeated composites are the same")
    return None
