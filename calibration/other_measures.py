"""Each scorer beside its ICC: absolute agreement, rank correlation, and difference in points of the scale."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from calibration import remarks
from calibration.agreement import (
    LEAST_RESPONSES,
    Columns,
    columns,
    unscaled,
    why_no_icc,
    why_undefined,
)
from calibration.bootstrap import Counts, percentile_interval
from calibration.codes import NoteCode as Code
from calibration.icc import UNDEFINED, Interval, icc_table
from calibration.rating_matrix import FLAT
from calibration.scope import Scope, why_undefined_scope
from calibration.scores import Array, Integers, Scores
from calibration.values import NAN, NORMAL_95, Note, Noted, note, noted

LEAST_DIFFERENCES = 2  # one difference has no spread
ROUNDING = 1e-9  # ICC(A,2) is at most 1, or above n where its denominator is negative
IN_POINTS = (
    *("icc_absolute", "icc_absolute_low", "icc_absolute_high", "icc_raw"),
    *("bias", "bias_low", "bias_high", "limits_low", "limits_high"),
)


@dataclass(frozen=True)
class Ranks:
    """Two rank correlations of one pair of columns; both NaN where undefined."""

    spearman: float
    kendall: float


UNRANKED = Ranks(float("nan"), float("nan"))


def rank_correlations(x: Array, y: Array) -> Ranks:
    """Return Spearman's rho and Kendall's tau-b of two columns.

    Parameters
    ----------
    x, y : shape (n,), no NaN

    Returns
    -------
    Ranks
        rho: Pearson's r of the ranks, ties given their mean rank. tau-b: (concordant -
        discordant pairs) / sqrt(pairs not tied in x * pairs not tied in y). Both from -1 to
        1; NaN with fewer than two responses or where a column is all ties.

    Notes
    -----
    Means of equal scores that differ by rounding alone, below 1e-9 of the largest value, are
    ties: tau-b would otherwise count such a pair by the order of a sum.

    References
    ----------
    Spearman (1904), American Journal of Psychology 15, 72. Kendall (1945), Biometrika 33,
    239, for ties. The computation is scipy's.
    """
    from scipy import stats  # slow to load, and the agreement table has no tau

    rho = spearman(x, y)
    if np.isnan(rho):
        return UNRANKED
    a, b = _dense_ranks(x), _dense_ranks(y)
    tau = stats.kendalltau(a, b, method="asymptotic").statistic
    return Ranks(rho, float(tau))


def spearman(x: Array, y: Array) -> float:
    """Return Spearman's rho of two columns without NaN, as `rank_correlations` does."""
    if len(x) < 2:
        return NAN
    a, b = _dense_ranks(x), _dense_ranks(y)
    if not a.any() or not b.any():
        return NAN
    ranks = np.column_stack([_mean_ranks(a), _mean_ranks(b)])
    return float(np.asarray(np.corrcoef(ranks, rowvar=False))[1, 0])


def _mean_ranks(dense: Integers) -> Array:
    """Return ranks from 1, ties with the mean of theirs, of dense ranks from 0."""
    counts = np.bincount(dense)
    means: Array = np.cumsum(counts) - (counts - 1) / 2
    return means[dense]


def _dense_ranks(column: Array) -> Integers:
    """Return the rank of each value among the distinct values, from 0; all 0 where all are ties."""
    order = np.argsort(column, kind="stable")
    steps = np.diff(column[order]) > FLAT * np.abs(column).max()
    ranks = np.zeros(len(column), dtype=np.int64)
    ranks[order[1:]] = np.cumsum(steps)
    return ranks


@dataclass(frozen=True)
class BlandAltman:
    """Differences in points of the scale: their mean, their spread and where 95 % of them lie.

    Attributes
    ----------
    bias : float, the mean difference
    bias_interval : Interval, 95 %, for independent differences
    limits : Interval, the two limits of agreement
    low_limit, high_limit : Interval, 95 % of either limit, for independent differences
    """

    bias: float
    bias_interval: Interval
    limits: Interval
    low_limit: Interval
    high_limit: Interval


def bland_altman(differences: Array, confidence: float = 0.95) -> BlandAltman:
    """Return the bias and the limits of agreement of two columns from their differences.

    Parameters
    ----------
    differences : shape (n,), no NaN
        Scorer minus clinicians, in points of the scale.
    confidence : float
        Of the intervals; the limits themselves are always those of 95 %.

    Returns
    -------
    BlandAltman
        bias = mean d; bias +- t sd / sqrt n; limits bias +- 1.96 sd (ddof 1), each
        +- t sd sqrt(1 / n + 1.96^2 / (2 (n - 1))), with n - 1 degrees of freedom. All NaN
        without a difference; of one difference only the bias is defined. Intervals of no
        width where all differences are equal.

    Notes
    -----
    The intervals take the differences as independent; `bias_replicates` does not. The limits
    take them as normal, and may reach beyond what two raters on the scale can be apart.

    References
    ----------
    Bland & Altman (1986), Lancet 327, 307; (1999), Statistical Methods in Medical Research
    8, 135, section 2.
    """
    n = len(differences)
    if n < LEAST_DIFFERENCES:
        bias = float(differences[0]) if n else float("nan")
        return BlandAltman(bias, UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED)
    bias, sd = float(differences.mean()), float(differences.std(ddof=1))
    t = float(special.stdtrit(n - 1, (1 + confidence) / 2))
    reach = NORMAL_95 * sd
    doubt = t * sd * float(np.sqrt(1 / n + NORMAL_95**2 / (2 * (n - 1))))
    return BlandAltman(
        bias=bias,
        bias_interval=_around(bias, t * sd / float(np.sqrt(n))),
        limits=_around(bias, reach),
        low_limit=_around(bias - reach, doubt),
        high_limit=_around(bias + reach, doubt),
    )


def _around(middle: float, reach: float) -> Interval:
    return Interval(middle - reach, middle + reach)


@dataclass(frozen=True, eq=False)
class BiasReplicates:
    """Mean differences, resample by resample: counts (B, clusters) to (B, scorers).

    Attributes
    ----------
    number, total : shape (clusters, scorers)
        How many differences a cluster holds, and their sum.
    """

    number: Array
    total: Array

    def __call__(self, counts: Counts) -> Array:
        """Return the biases; NaN where a resample holds no difference of a scorer."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((counts @ self.total) / (counts @ self.number))


def bias_replicates(differences: Array, clusters: Integers, n_clusters: int) -> BiasReplicates:
    """Return the resampled biases of several scorers.

    Parameters
    ----------
    differences : shape (n, scorers), NaN where there is none
    clusters : shape (n,)
        The instance of each response, numbered from 0.
    n_clusters : how many instances there are
    """
    is_known = ~np.isnan(differences)
    number = np.zeros((n_clusters, differences.shape[1]))
    total = np.zeros_like(number)
    np.add.at(number, clusters, is_known.astype(np.float64))
    np.add.at(total, clusters, np.where(is_known, differences, 0.0))
    return BiasReplicates(number, total)


@dataclass(frozen=True)
class SecondaryRow(Noted):
    """One scorer against the clinicians' mean, beside its ICC. None: does not apply.

    icc_absolute is ICC(A,2) and icc_raw ICC(C,2), both of raw columns; bias and limits are
    in points of the scale, scorer minus clinicians; n counts the responses with both.
    """

    benchmark: str
    scorer: str
    icc_absolute: float | None = NAN
    icc_absolute_low: float | None = NAN
    icc_absolute_high: float | None = NAN
    icc_raw: float | None = NAN
    kendall: float = NAN
    spearman: float = NAN
    bias: float | None = NAN
    bias_low: float | None = NAN
    bias_high: float | None = NAN
    limits_low: float | None = NAN
    limits_high: float | None = NAN
    n: int = 0


def secondary_rows(scope: Scope, scores: Scores) -> list[SecondaryRow]:
    """Return each scorer's absolute agreement, order and points against the clinicians' mean.

    Parameters
    ----------
    scope : Scope
        One benchmark or all combined; composites or one criterion.
    scores : Scores
        The study; its rubrics say what the scales are.

    Returns
    -------
    list of SecondaryRow
        One a scorer. ICCs, bias and limits are of means of raw composites whatever the
        method; the rank correlations are of the method's columns. The bias has a t
        interval where each instance has one response, else percentile intervals over
        resampled instances. A metric is not on the rubric's scale: None but for its ranks.

    References
    ----------
    As `icc.icc_table`, `ranks.rank_correlations` and `bland_altman`.
    """
    reason = why_undefined_scope(scores, scope)
    if reason:
        return [
            SecondaryRow(scope.name, scorer, **_absent(scorer), notes=(reason,))
            for scorer in scope.scorers
        ]
    raw = {name: columns(scope.grid, panel, "published") for name, panel in scope.scorers.items()}
    ends = _resampled(scope, raw)
    return [_row(scope, name, pair, ends.get(name)) for name, pair in raw.items()]


def _absent(scorer: str) -> dict[str, Any]:
    return dict.fromkeys(IN_POINTS, None if _is_metric(scorer) else NAN)


def _is_metric(scorer: str) -> bool:
    return scorer.startswith("metric:")


def _resampled(scope: Scope, raw: dict[str, Columns]) -> dict[str, Interval]:
    """Return the interval of the bias of each scorer with several responses of an instance."""
    shared = {
        name: pair
        for name, pair in raw.items()
        if not _is_metric(name) and pair.both.sum() > scope.grid.instances(pair.both)
    }
    if not shared:
        return {}
    apart = np.column_stack([pair.scorer - pair.clinicians for pair in shared.values()])
    own = scope.grid.clusters, scope.grid.n_clusters
    biases = scope.resample(bias_replicates(apart, *own))
    return {
        name: percentile_interval(bias) if scope.grid.instances(pair.both) > 1 else UNDEFINED
        for (name, pair), bias in zip(shared.items(), biases.T, strict=True)
    }


def _row(scope: Scope, scorer: str, raw: Columns, ends: Interval | None) -> SecondaryRow:
    n = int(raw.both.sum())
    ranks, of_ranks = _ranks(scope, scorer, n)
    found, of_points = (
        (_absent(scorer), [note(Code.ONLY_ORDER)])
        if _is_metric(scorer)
        else _in_points(scope, raw, ends)
    )
    first = of_points[0]
    if first and first.code is Code.ICC_UNDEFINED and np.isnan(ranks.spearman):
        of_ranks = []
        of_points[0] = note(Code.ICC_AND_RANKS_UNDEFINED, why=first["why"])
    return SecondaryRow(
        benchmark=scope.name,
        scorer=scorer,
        kendall=ranks.kendall,
        spearman=ranks.spearman,
        n=n,
        notes=noted(*_rater_notes(scope, scorer), *of_points, *of_ranks),
        **found,
    )


def _ranks(scope: Scope, scorer: str, n: int) -> tuple[Ranks, list[Note | None]]:
    """Return the rank correlations of the method's columns, and their notes."""
    panel, method = scope.scorers[scorer], scope.options.method
    pair = columns(scope.grid, panel, method)
    x, y = pair.clinicians[pair.both], pair.scorer[pair.both]
    flat = unscaled(scope.grid, (*scope.clinicians, *panel.members)) if method == "paper" else ()
    notes = [note(Code.NOT_IN_ORDER, raters=flat) if flat else None]
    ranks = rank_correlations(x, y) if len(x) >= LEAST_RESPONSES else UNRANKED
    if np.isnan(ranks.spearman):
        reason = why_no_icc(scope.grid, panel, method, (x, y))
        lost = note(Code.RANKS_UNDEFINED, why=reason)
        notes = [lost] if reason and reason.code is Code.NO_Z else [*notes, lost]
    elif len(x) < n:
        notes.append(note(Code.RANKS_OVER, responses=len(x)))
    return ranks, notes


def _in_points(
    scope: Scope, raw: Columns, drawn: Interval | None
) -> tuple[dict[str, Any], list[Note | None]]:
    """Return the figures in points of the scale by field, and their notes."""
    x, y = raw.clinicians[raw.both], raw.scorer[raw.both]
    points = bland_altman(y - x if len(x) >= LEAST_RESPONSES else y[:0])
    ends = drawn if drawn and len(x) >= LEAST_RESPONSES else points.bias_interval
    iccs, reason = raw_iccs(x, y)
    numbers = [*iccs, points.bias, ends.low, ends.high, points.limits.low, points.limits.high]
    doubts = [] if len(x) < LEAST_RESPONSES else _doubts(scope, raw, points, ends)
    return dict(zip(IN_POINTS, numbers, strict=True)), [reason, *doubts]


def raw_iccs(x: Array, y: Array) -> tuple[list[float], Note | None]:
    """Return ICC(A,2) with its F interval and ICC(C,2) of two columns, and what is undefined.

    Parameters
    ----------
    x, y : shape (n,), no NaN

    Returns
    -------
    four numbers and a note
        ICC(A,2), low, high, ICC(C,2), and None or why some are NaN: fewer than three responses,
        a constant or a mirrored column; ICC(A,2) with a denominator below 0; the interval
        where nothing is left over as error, or where its approximation fails below 0.

    References
    ----------
    McGraw & Wong (1996), Psychological Methods 1, 30, tables 4 and 7.
    """
    if reason := why_undefined(x, y):
        few = len(x) < LEAST_RESPONSES
        return [NAN] * 4, reason if few else note(Code.ICC_UNDEFINED, why=reason)
    with np.errstate(divide="ignore", invalid="ignore"):  # hardly any freedom: no interval
        table = icc_table(np.column_stack([x, y])).loc[["ICC(A,k)", "ICC(C,k)"]].to_numpy()
    (absolute, low, high), consistent = table[0].tolist(), float(table[1, 0])
    if absolute > 1 + ROUNDING:
        return [NAN] * 3 + [consistent], note(Code.ABSOLUTE_UNDEFINED)
    if absolute > 1 - ROUNDING:
        return [absolute, NAN, NAN, consistent], note(Code.ABSOLUTE_NO_ERROR)
    if not low <= absolute <= high:
        return [absolute, NAN, NAN, consistent], note(Code.ABSOLUTE_FAR_BELOW)
    return [absolute, low, high, consistent], None


def _rater_notes(scope: Scope, scorer: str) -> Iterator[Note | None]:
    panel, analysed = scope.scorers[scorer], len(scope.grid.responses)
    present = int(panel.present(scope.grid).sum())
    yield remarks.coverage(present, analysed, present, analysed)
    yield remarks.fewer_jurors(panel.needed, len(panel.members))
    yield remarks.simulated(scope.simulated & {*panel.members, *scope.clinicians})


def _doubts(
    scope: Scope, raw: Columns, points: BlandAltman, bias: Interval
) -> Iterator[Note | None]:
    """Yield the intervals of the limits, and which intervals assume independent responses."""
    low, high = points.low_limit, points.high_limit
    ends = {"low_low": low.low, "low_high": low.high, "high_low": high.low, "high_high": high.high}
    yield note(Code.LIMITS, **ends)
    responses, instances = int(raw.both.sum()), scope.grid.instances(raw.both)
    if responses > instances:
        yield note(Code.SHARED_POINTS, responses=responses, instances=instances)
        yield remarks.few_instances(instances)
        if not np.isfinite(bias.low):
            yield note(Code.NO_BIAS_INTERVAL)
