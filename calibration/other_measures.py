"""Each scorer beside its ICC: rank correlation, and difference in points of the scale."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from calibration import remarks
from calibration.agreement import (
    LEAST_RESPONSES,
    Columns,
    column_icc,
    columns,
    unscaled,
    why_no_icc,
    why_undefined,
)
from calibration.bootstrap import Counts, percentile_interval
from calibration.icc import UNDEFINED, Interval
from calibration.notes import Note, Noted, note, noted
from calibration.rating_matrix import FLAT
from calibration.scope import Scope, why_undefined_scope
from calibration.scores import Array, Integers, Scores
from calibration.shared_notes import ONLY_ORDER
from calibration.values import NAN, NORMAL_95

LEAST_DIFFERENCES = 2  # one difference has no spread
IN_POINTS = (*("icc_raw", "bias", "bias_low", "bias_high", "limits_low", "limits_high"),)


def spearman(x: Array, y: Array) -> float:
    """Return Spearman's rho of two columns: Pearson's r of the ranks, ties given their mean rank.

    Parameters
    ----------
    x, y : shape (n,), no NaN

    Returns
    -------
    From -1 to 1; NaN with fewer than two responses or where a column is all ties. Means of equal
    scores that differ by rounding alone, below 1e-9 of the largest value, are ties.

    References
    ----------
    Spearman (1904), American Journal of Psychology 15, 72.
    """
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

    icc_raw is ICC(C,2) of raw columns; bias and limits are in points of the scale, scorer minus
    clinicians; n counts the responses with both.
    """

    benchmark: str
    scorer: str
    icc_raw: float | None = NAN
    spearman: float = NAN
    bias: float | None = NAN
    bias_low: float | None = NAN
    bias_high: float | None = NAN
    limits_low: float | None = NAN
    limits_high: float | None = NAN
    n: int = 0


def secondary_rows(scope: Scope, scores: Scores) -> list[SecondaryRow]:
    """Return each scorer's order and points against the clinicians' mean.

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
        method; Spearman's rho is of the method's columns. The bias has a t
        interval where each instance has one response, else percentile intervals over
        resampled instances. A metric is not on the rubric's scale: None but for its order.

    References
    ----------
    As `spearman` and `bland_altman`.
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
    rho, of_ranks = _order(scope, scorer, n)
    found, of_points = (
        (_absent(scorer), [note(*ONLY_ORDER)])
        if _is_metric(scorer)
        else _in_points(scope, raw, ends)
    )
    first = of_points[0]
    if first and first.code == "icc_undefined" and np.isnan(rho):
        of_ranks = []
        of_points[0] = note(
            "icc_and_ranks_undefined", "ICC and rank correlation undefined: {why}", why=first["why"]
        )
    return SecondaryRow(
        benchmark=scope.name,
        scorer=scorer,
        spearman=rho,
        n=n,
        notes=noted(*_rater_notes(scope, scorer), *of_points, *of_ranks),
        **found,
    )


def _order(scope: Scope, scorer: str, n: int) -> tuple[float, list[Note | None]]:
    """Return Spearman's rho of the method's columns, and its notes."""
    panel, method = scope.scorers[scorer], scope.options.method
    pair = columns(scope.grid, panel, method)
    x, y = pair.clinicians[pair.both], pair.scorer[pair.both]
    flat = unscaled(scope.grid, (*scope.clinicians, *panel.members)) if method == "paper" else ()
    notes = [
        note("not_in_order", "no variance, so not in the order: {raters}", raters=flat)
        if flat
        else None
    ]
    rho = spearman(x, y) if len(x) >= LEAST_RESPONSES else NAN
    if np.isnan(rho):
        reason = why_no_icc(scope.grid, panel, method, (x, y))
        lost = note("ranks_undefined", "rank correlation undefined: {why}", why=reason)
        notes = [lost] if reason and reason.code == "no_z" else [*notes, lost]
    elif len(x) < n:
        notes.append(
            note("ranks_over", "rank correlation over {responses} responses", responses=len(x))
        )
    return rho, notes


def _in_points(
    scope: Scope, raw: Columns, drawn: Interval | None
) -> tuple[dict[str, Any], list[Note | None]]:
    """Return the figures in points of the scale by field, and their notes."""
    x, y = raw.clinicians[raw.both], raw.scorer[raw.both]
    points = bland_altman(y - x if len(x) >= LEAST_RESPONSES else y[:0])
    ends = drawn if drawn and len(x) >= LEAST_RESPONSES else points.bias_interval
    icc, reason = raw_icc(x, y)
    numbers = [icc, points.bias, ends.low, ends.high, points.limits.low, points.limits.high]
    doubts = [] if len(x) < LEAST_RESPONSES else _doubts(scope, raw, points, ends)
    return dict(zip(IN_POINTS, numbers, strict=True)), [reason, *doubts]


def raw_icc(x: Array, y: Array) -> tuple[float, Note | None]:
    """Return ICC(C,2) of two raw columns without NaN, and why it is undefined where it is NaN.

    References
    ----------
    McGraw & Wong (1996), Psychological Methods 1, 30, tables 4 and 7.
    """
    if reason := why_undefined(x, y):
        few = len(x) < LEAST_RESPONSES
        return NAN, reason if few else note("icc_undefined", "ICC undefined: {why}", why=reason)
    return column_icc(x, y, "paper"), None


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
    yield note(
        "limits",
        (
            "limits of agreement, 95 % intervals: low {low_low:z.2f} to {low_high:z.2f}, high "
            "{high_low:z.2f} to {high_high:z.2f} points"
        ),
        **ends,
    )
    responses, instances = int(raw.both.sum()), scope.grid.instances(raw.both)
    if responses > instances:
        yield note(
            "shared_points",
            (
                "{responses} responses from {instances} instances: the interval of the bias resamples "
                "instances, those of the limits take responses as independent"
            ),
            (
                "several responses of an instance: the interval of the bias resamples instances, "
                "those of the limits take responses as independent"
            ),
            responses=responses,
            instances=instances,
        )
        yield remarks.few_instances(instances)
        if not np.isfinite(bias.low):
            yield note(
                "no_bias_interval", "the bias has no interval: it takes two instances and resamples"
            )
