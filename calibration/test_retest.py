"""Test-retest reliability: a juror's replicates, and a clinician's hidden repeats."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.bootstrap import Counts, percentile_interval
from calibration.icc import UNDEFINED, Interval, absolute_interval, mean_squares, spearman_brown
from calibration.notes import Note, Noted, note, noted, undefined
from calibration.other_measures import spearman
from calibration.rating_matrix import FLAT, required_criteria
from calibration.scope import AgreementRow, Scope
from calibration.scores import Array, Integers, Scores
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
    n_responses : int
        Responses with two composites or more.
    n_replicates : int
        The most composites that a response has.
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
    read = _readings(scope, scores, required)
    rows = []
    for name in scope.jurors:
        table, incomplete = _composites(own := read[read["rater"] == name])
        incomplete += _incomplete_elsewhere(scores, name, required)
        rows.append(_row(scope, name, own, table, incomplete))
    return rows


def has_replicates(scores: Scores) -> bool:
    """Tell whether a juror rated a response more than once that `scores` only counts.

    Then `test_retest_rows` needs these ratings.
    """
    given = (each for alike in scores.elsewhere for each in alike.given)
    return any(kind == "juror" and times > 1 for _, kind, _, times in given)


def icc_one(table: Array) -> float:
    """Return ICC(A,1) of a juror's composites.

    Parameters
    ----------
    table : shape (n, m)
        Responses in rows, replicates in columns, no NaN.

    Returns
    -------
    float
        (MS_rows - MS_error) / (MS_rows + (m - 1) MS_error + m (MS_columns - MS_error) / n).
        NaN with fewer than 3 responses or 2 replicates, or where all composites are equal.

    References
    ----------
    McGraw & Wong (1996), Psychological Methods 1, 30, table 4, ICC(A,1); recommended for
    test and retest by Koo & Li (2016), Journal of Chiropractic Medicine 15, 155.
    """
    n, m = table.shape
    if n < LEAST_RESPONSES or m < 2 or np.ptp(table) <= FLAT * np.abs(table).max():
        return NAN
    ms = mean_squares(table)
    rows, columns, error = float(ms.rows), float(ms.columns), float(ms.error)
    icc: float = (rows - error) / (rows + (m - 1) * error + m * (columns - error) / n)
    return icc


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


def _readings(
    scope: Scope, scores: Scores, required: Mapping[str, tuple[str, ...]]
) -> pd.DataFrame:
    """Return the jurors' single scores that make composites in this scope."""
    required_pairs = [(name, criterion) for name, own in required.items() for criterion in own]
    own = scores.ratings[scores.ratings["rater"].isin(scope.jurors)].dropna(subset=["score"])
    own = own[own["benchmark"].isin(list(required))]
    is_required = pd.MultiIndex.from_frame(own[["benchmark", "criterion"]]).isin(required_pairs)
    read = own[is_required].assign(score=lambda rows: rows["score"].astype(float))
    return read.assign(
        needed=read["benchmark"].map({name: len(own) for name, own in required.items()})
    )


def _required(scope: Scope, scores: Scores) -> dict[str, tuple[str, ...]]:
    """Return what a composite needs on each benchmark of the scope that has any composite."""
    required = required_criteria(scores.rubrics, scope.options.criterion)
    composed = {benchmark for benchmark, raters, _ in scope.elsewhere if raters}
    composed |= {*scope.composites["benchmark"]}
    return {name: own for name, own in required.items() if name in composed}


def _incomplete_elsewhere(
    scores: Scores, juror: str, required: Mapping[str, tuple[str, ...]]
) -> int:
    """Return how many readings of responses that are only counted have some criteria, not all."""
    return sum(
        alike.responses * times
        for alike in scores.elsewhere
        for rater, _, criteria, times in alike.given
        if rater == juror
        and 0
        < len(criteria & {*required.get(alike.benchmark, ())})
        < len(required.get(alike.benchmark, ()))
    )


def _composites(read: pd.DataFrame) -> tuple[Array, int]:
    """Return composites (responses, replicates) and how many readings have none."""
    grouped = read.groupby(READING).agg(
        composite=("score", "mean"), given=("score", "size"), needed=("needed", "first")
    )
    complete = grouped[grouped["given"] == grouped["needed"]]
    wide = complete["composite"].unstack(["pass_", "replicate"])
    return wide.to_numpy(dtype=np.float64), len(grouped) - len(complete)


def _row(scope: Scope, juror: str, read: pd.DataFrame, table: Array, incomplete: int) -> RetestRow:
    number = (~np.isnan(table)).sum(axis=1)
    repeated = int((number > 1).sum())
    single = read.set_index([*READING, "criterion"])["score"].unstack(["pass_", "replicate"])
    whole = table[number == table.shape[1]]
    return RetestRow(
        benchmark=scope.name,
        juror=juror,
        icc_one=icc_one(whole),
        sd_points=sd_within(table),
        exact_agreement=same_pairs(single.to_numpy(dtype=np.float64)),
        n_responses=repeated,
        n_replicates=int(number.max(initial=0)),
        notes=noted(*_notes(scope, juror, table, incomplete), *_between(table, read)),
    )


def _between(table: Array, read: pd.DataFrame) -> Iterator[Note]:
    """Note how many scores lie between points of the scale, where only equal values count as the same."""
    scores = read["score"].to_numpy(dtype=np.float64)
    between = int((np.abs(scores - np.round(scores)) > FLAT * np.maximum(np.abs(scores), 1)).sum())
    if between and (~np.isnan(table)).sum(axis=1).max(initial=0) > 1:
        yield note(
            "same_off_points",
            (
                "{scores:score} between the points of the scale, which count as the same only where "
                "they are equal"
            ),
            scores=between,
        )


def _notes(scope: Scope, juror: str, table: Array, incomplete: int) -> Iterator[Note | None]:
    number = (~np.isnan(table)).sum(axis=1)
    repeated, whole = number > 1, number == table.shape[1]
    if not repeated.any():
        yield undefined(
            "no_replicates", "no replicates; a jury run with 3 verdicts of each juror makes them"
        )
        yield remarks.incomplete(incomplete)
        yield remarks.simulated(scope.simulated & {juror})
        return
    yield _icc_note(table, whole)
    if once := int((~repeated).sum()):
        yield note(
            "single_replicates",
            "{responses:response} with a single replicate left out",
            responses=once,
        )
    if short := int((repeated & ~whole).sum()):
        yield note(
            "without_all_replicates",
            "{responses:response} without all replicates left out of the ICC",
            responses=short,
        )
    yield remarks.incomplete(incomplete)
    yield remarks.simulated(scope.simulated & {juror})


def _icc_note(table: Array, whole: Array) -> Note | None:
    n, m = int(whole.sum()), table.shape[1]
    if n < LEAST_RESPONSES:
        return note(
            "few_replicated",
            (
                "no ICC: {responses:response} with all {replicates} replicates, and {least} are "
                "needed"
            ),
            responses=n,
            replicates=m,
            least=LEAST_RESPONSES,
        )
    if not np.isfinite(icc_one(table[whole])):
        return note("replicates_alike", "no ICC: all composites are the same")
    return (
        None if sd_within(table) > 0 else note("identical_replicates", "replicates are identical")
    )


def intra_rater_row(scope: Scope) -> AgreementRow:
    """Return how far clinicians agree with themselves, pooled over all hidden repeats."""
    composites = scope.repeats.composites
    pairs = composites[["first", "again"]].to_numpy(dtype=np.float64)
    icc, exact = intra_rater_icc(pairs)
    drawn = np.empty(0) if why_no_icc(pairs) else scope.resample(_replicates(scope, pairs))
    boot = percentile_interval(drawn)
    varied = not why_no_icc(pairs) and (np.ptp(pairs, axis=0) > 0).all()
    return AgreementRow(
        benchmark=scope.name,
        scorer="intra_rater",
        icc=icc,
        f_low=exact.low,
        f_high=exact.high,
        low=boot.low,
        high=boot.high,
        boot_low=boot.low,
        boot_high=boot.high,
        n_responses=len(pairs),
        n_instances=composites["instance_id"].nunique(),
        n_clinicians=composites["rater"].nunique(),
        n_missing=len(scope.repeats.unpaired),
        spearman=spearman(*pairs.T) if varied else NAN,
        notes=noted(*_repeat_notes(scope, pairs), remarks.undefined_resamples(drawn)),
    )


def _repeat_notes(scope: Scope, pairs: Array) -> Iterator[Note | None]:
    composites, scores = scope.repeats.composites, scope.repeats.scores
    yield why_no_icc(pairs)
    if not why_no_icc(pairs):
        yield remarks.few_repeats(len(pairs))
        yield (
            None
            if float(mean_squares(pairs).rows)
            else note(
                "no_f",
                "no F interval: the mean square between responses is 0, all pairs have the same mean",
            )
        )
    yield from remarks.same_again(scores)
    if composites["rater"].nunique() > 1:
        yield remarks.own_means(intra_rater_icc(pairs - _own_means(scope)[:, None])[0])
    yield remarks.unpaired(len(scope.repeats.unpaired))
    instances = composites["instance_id"].nunique()
    yield remarks.few_instances(instances)
    yield remarks.shared_instances(composites["response_id"].nunique(), instances)
    yield remarks.simulated(scope.simulated & set(composites["rater"]))


def _own_means(scope: Scope) -> Array:
    """Return, for each repeat, the mean of all that its clinician's composites are in scope."""
    clinical = scope.composites[scope.composites["kind"] == "clinician"]
    means = clinical.groupby("rater")["composite"].mean()
    return scope.repeats.composites["rater"].map(means).to_numpy(dtype=np.float64)


def _replicates(scope: Scope, pairs: Array) -> "RepeatReplicates":
    grid = scope.grid
    place = dict(zip(grid.responses, grid.clusters, strict=True))
    clusters = np.array([place[name] for name in scope.repeats.composites["response_id"]])
    return repeat_replicates(pairs, clusters, grid.n_clusters)


def intra_rater_icc(pairs: Array) -> tuple[float, Interval]:
    """Return ICC(A,1) of first and repeated composites, with its F interval.

    Parameters
    ----------
    pairs : shape (n, 2)
        First and repeated composite; rows of all clinicians, pooled.

    Returns
    -------
    float, Interval
        (MS_rows - MS_error) / (MS_rows + MS_error + 2 (MS_columns - MS_error) / n).
        Absolute agreement: a clinician who is stricter the second time loses by it. NaN
        with fewer than 3 repeats or where all composites are the same; no interval where
        every repeat is identical, or where all pairs have the same mean.

    References
    ----------
    McGraw & Wong (1996), ICC(A,1), table 7; recommended for one rater's test and retest by
    Koo & Li (2016), Journal of Chiropractic Medicine 15, 155.
    """
    if why_no_icc(pairs):
        return float("nan"), UNDEFINED
    ms, n = mean_squares(pairs), len(pairs)
    rows, columns, error = float(ms.rows), float(ms.columns), float(ms.error)
    below = rows + error + 2 * (columns - error) / n
    of_mean = absolute_interval((rows, columns, error), n, 2)
    ends = Interval(spearman_brown(of_mean.low, 0.5), spearman_brown(of_mean.high, 0.5))
    return (rows - error) / below, ends


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


@dataclass(frozen=True, eq=False)
class RepeatReplicates:
    """ICC(A,1) of the pooled repeats, resample by resample: counts (B, clusters) to (B,).

    `sums` has shape (clusters, 5): number of repeats, sum and sum of squares of their
    means, sum and sum of squares of their differences.
    """

    sums: Array

    def __call__(self, counts: Counts) -> Array:
        """Return the ICCs; NaN where a resample holds fewer than 3 repeats or no variance."""
        n, mean, mean2, gap, gap2 = (counts @ self.sums).T
        with np.errstate(divide="ignore", invalid="ignore"):
            rows = 2 * (mean2 - mean**2 / n) / (n - 1)
            error = (gap2 - gap**2 / n) / 2 / (n - 1)
            columns = gap**2 / n / 2
            below = rows + error + 2 * (columns - error) / n
            varied = (n >= LEAST_REPEATS) & (below > FLAT * (mean2 + gap2) / n)
            return np.where(varied, (rows - error) / below, np.nan)


def repeat_replicates(pairs: Array, clusters: Integers, n_clusters: int) -> RepeatReplicates:
    """Return the resampled ICC of repeats (n, 2) whose instances are numbered."""
    middle = pairs.mean(axis=1)
    middle = middle - (middle.mean() if len(middle) else 0.0)
    gap = pairs[:, 0] - pairs[:, 1]
    columns = (np.ones_like(gap), middle, middle**2, gap, gap**2)
    sums = [np.bincount(clusters, weights=values, minlength=n_clusters) for values in columns]
    return RepeatReplicates(np.column_stack(sums))
