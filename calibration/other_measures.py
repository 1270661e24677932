"""Each scorer beside its ICC: rank correlation, and difference in points of the scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from calibration import remarks
from calibration.bootstrap import Counts, Statistic, percentile_interval
from calibration.columns import (
    LEAST_RESPONSES,
    Columns,
    PanelColumns,
    column_icc,
    columns,
    unscaled,
    why_no_icc,
    why_undefined,
)
from calibration.icc import UNDEFINED, Interval
from calibration.notes import Note, Noted, note, noted
from calibration.rating_matrix import FLAT
from calibration.scope import Scope, why_undefined_scope
from calibration.scores import Array, Integers, Scores
from calibration.shared_notes import ONLY_ORDER
from calibration.values import NAN, NORMAL_95


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
    ranks = np.column_stack([_ranks(x), _ranks(y)])
    if not np.ptp(ranks, axis=0).all():
        return NAN
    return float(np.asarray(np.corrcoef(ranks, rowvar=False))[1, 0])


def _ranks(column: Array) -> Array:
    """Return ranks from 1, ties with the mean of theirs."""
    order = np.argsort(column, kind="stable")
    dense = np.zeros(len(column), dtype=np.int64)
    dense[order[1:]] = np.cumsum(np.diff(column[order]) > FLAT * np.abs(column).max())
    counts = np.bincount(dense)
    ranks: Array = (np.cumsum(counts) - (counts - 1) / 2)[dense]
    return ranks


def bland_altman(differences: Array) -> tuple[float, Interval, Interval]:
    """Return the bias of some differences, its 95 % interval, and the limits of agreement.

    Parameters
    ----------
    differences : shape (n,), no NaN
        Scorer minus clinicians, in points of the scale.

    Returns
    -------
    float, Interval, Interval
        mean d; +- t sd / sqrt n with n - 1 degrees of freedom; mean d +- 1.96 sd (ddof 1). NaN
        without a difference; of one difference only the bias is defined.

    Notes
    -----
    The interval takes the differences as independent; `mean_replicates` does not. The limits
    take them as normal, and may reach beyond what two raters on the scale can be apart.

    References
    ----------
    Bland & Altman (1986), Lancet 327, 307; (1999), Statistical Methods in Medical Research
    8, 135, section 2.
    """
    n = len(differences)
    if n < 2:
        return float(differences[0]) if n else NAN, UNDEFINED, UNDEFINED
    bias, sd = float(differences.mean()), float(differences.std(ddof=1))
    half, reach = float(special.stdtrit(n - 1, 0.975)) * sd / n**0.5, NORMAL_95 * sd
    return bias, Interval(bias - half, bias + half), Interval(bias - reach, bias + reach)


def mean_replicates(values: Array, clusters: Integers, n_clusters: int) -> Statistic:
    """Return the means of some columns resample by resample: counts (B, clusters) to (B, columns).

    Parameters
    ----------
    values : shape (n, columns), NaN where there is none
    clusters : shape (n,)
        The instance of each response, numbered from 0.
    n_clusters : how many instances there are
    """
    number, total = np.zeros((2, n_clusters, values.shape[1]))
    np.add.at(number, clusters, ~np.isnan(values))
    np.add.at(total, clusters, np.nan_to_num(values))
    return partial(_means, number, total)


def _means(number: Array, total: Array, counts: Counts) -> Array:
    """Return the mean of each column; NaN where a resample has nothing of it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((counts @ total) / (counts @ number))


def juror_names(scope: Scope) -> Sequence[str]:
    """Return the jurors that are shown beside the jury: none where it is the jury itself."""
    return scope.jurors if len(scope.jurors) > 1 else ()


def scorers_once(scope: Scope) -> dict[str, PanelColumns]:
    """Return every scorer of a scope, the only juror of a jury as the jury alone."""
    alone = {f"juror:{name}" for name in scope.jurors if not juror_names(scope)}
    return {name: panel for name, panel in scope.scorers.items() if name not in alone}


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
    """
    scorers = scorers_once(scope)
    if reason := why_undefined_scope(scores, scope):
        return [
            SecondaryRow(scope.name, name, **_points(name), notes=(reason,)) for name in scorers
        ]
    raw = {name: columns(scope.grid, panel, "published") for name, panel in scorers.items()}
    ends = _resampled(scope, raw)
    return [_row(scope, name, pair, ends.get(name)) for name, pair in raw.items()]


def _points(scorer: str, *figures: float) -> dict[str, Any]:
    """Return the figures in points of the scale by field; None of a metric, NaN where undefined."""
    fields = "icc_raw", "bias", "bias_low", "bias_high", "limits_low", "limits_high"
    if not figures:
        return dict.fromkeys(fields, None if scorer.startswith("metric:") else NAN)
    return dict(zip(fields, figures, strict=True))


def _resampled(scope: Scope, raw: dict[str, Columns]) -> dict[str, Interval]:
    """Return the interval of the bias of each scorer with several responses of an instance."""
    grid = scope.grid
    shared = {
        name: pair
        for name, pair in raw.items()
        if not name.startswith("metric:") and pair.both.sum() > grid.instances(pair.both)
    }
    if not shared:
        return {}
    apart = np.column_stack([pair.scorer - pair.clinicians for pair in shared.values()])
    biases = scope.resample(mean_replicates(apart, grid.clusters, grid.n_clusters))
    return {
        name: percentile_interval(bias) if grid.instances(pair.both) > 1 else UNDEFINED
        for (name, pair), bias in zip(shared.items(), biases.T, strict=True)
    }


def _row(scope: Scope, scorer: str, raw: Columns, ends: Interval | None) -> SecondaryRow:
    panel, analysed, n = scope.scorers[scorer], len(scope.grid.responses), int(raw.both.sum())
    present = int(panel.present(scope.grid).sum())
    rho, of_ranks = _order(scope, panel, n)
    if scorer.startswith("metric:"):
        points, of_points = _points(scorer), [note(*ONLY_ORDER)]
    else:
        points, of_points = _in_points(scope, scorer, raw, ends)
    if of_points and of_points[0].code == "icc_undefined" and np.isnan(rho):
        why, of_ranks = of_points[0]["why"], []
        of_points[0] = note(
            "icc_and_ranks_undefined", "ICC and rank correlation undefined: {why}", why=why
        )
    notes = noted(
        remarks.coverage(present, analysed, present, analysed),
        remarks.fewer_jurors(panel.needed, len(panel.members)),
        remarks.simulated(scope.simulated & {*panel.members, *scope.clinicians}),
        *of_points,
        *of_ranks,
    )
    return SecondaryRow(scope.name, scorer, spearman=rho, n=n, notes=notes, **points)


def _order(scope: Scope, panel: PanelColumns, n: int) -> tuple[float, list[Note]]:
    """Return Spearman's rho of the method's columns, and its notes."""
    method, notes = scope.options.method, []
    pair = columns(scope.grid, panel, method)
    x, y = pair.clinicians[pair.both], pair.scorer[pair.both]
    flat = unscaled(scope.grid, (*scope.clinicians, *panel.members)) if method == "paper" else ()
    if flat:
        notes = [note("not_in_order", "no variance, so not in the order: {raters}", raters=flat)]
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
    scope: Scope, scorer: str, raw: Columns, drawn: Interval | None
) -> tuple[dict[str, Any], list[Note]]:
    """Return the figures in points of the scale by field, and their notes."""
    x, y = raw.clinicians[raw.both], raw.scorer[raw.both]
    enough, instances = len(x) >= LEAST_RESPONSES, scope.grid.instances(raw.both)
    bias, ends, limits = bland_altman(y - x if enough else y[:0])
    ends = drawn if drawn and enough else ends
    reason = why_undefined(x, y)
    icc = NAN if reason else column_icc(x, y, "paper")
    if reason and enough:
        reason = note("icc_undefined", "ICC undefined: {why}", why=reason)
    notes = noted(reason, remarks.few_instances(instances) if enough and drawn else None)
    if enough and drawn and not np.isfinite(ends.low):
        lost = "the bias has no interval: it takes two instances and resamples"
        notes = (*notes, note("no_bias_interval", lost))
    figures = icc, bias, ends.low, ends.high, limits.low, limits.high
    return _points(scorer, *figures), [*notes]
