"""Each scorer beside its ICC: rank correlation, and difference in points of the scale."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration import remarks
from calibration.clustered_intervals import clustered_mean
from calibration.columns import (
    LEAST_RESPONSES,
    PanelColumns,
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


def bland_altman(
    differences: Array, clusters: Integers | None = None
) -> tuple[float, Interval, Interval]:
    """Return the bias of some differences, its 95 % interval, and the limits of agreement.

    Parameters
    ----------
    differences : shape (n,)
        Scorer minus clinicians, in points of the scale; NaN where there is none.
    clusters : shape (n,), optional
        The instance of each, numbered from 0; each its own where not given.

    Returns
    -------
    float, Interval, Interval
        mean d; the t interval of `clustered_mean`, which is the usual one of single responses;
        mean d +- 1.96 sd (ddof 1). NaN without a difference; of one only the bias is defined.

    Notes
    -----
    The limits take the differences as normal, and may reach beyond what two raters on the scale
    can be apart.

    References
    ----------
    Bland & Altman (1986), Lancet 327, 307; (1999), Statistical Methods in Medical Research
    8, 135, section 2.
    """
    places = np.arange(len(differences)) if clusters is None else clusters
    mean = clustered_mean(differences, places, int(places.max(initial=-1)) + 1)
    known = differences[~np.isnan(differences)]
    if len(known) < 2:
        return mean.value, UNDEFINED, UNDEFINED
    reach = NORMAL_95 * float(known.std(ddof=1))
    return mean.value, mean.interval(), Interval(mean.value - reach, mean.value + reach)


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

    bias and limits are in points of the scale, scorer minus clinicians; n counts the responses
    with both.
    """

    benchmark: str
    scorer: str
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
        One a scorer. Bias and limits are of means of raw composites whatever the method
        (`bland_altman`, over instances); Spearman's rho is of the method's columns. A metric is not
        on the rubric's scale: None but for its order.
    """
    reason = why_undefined_scope(scores, scope)
    return [_row(scope, name, panel, reason) for name, panel in scorers_once(scope).items()]


def _row(scope: Scope, scorer: str, panel: PanelColumns, reason: Note | None) -> SecondaryRow:
    is_metric = scorer.startswith("metric:")
    none: float | None = None if is_metric else NAN
    points = none, none, none, none, none
    if reason:
        return SecondaryRow(scope.name, scorer, NAN, *points, notes=(reason,))
    grid, analysed = scope.grid, len(scope.grid.responses)
    raw, present = columns(grid, panel, "published"), int(panel.present(grid).sum())
    n, notes = int(raw.both.sum()), list[Note | None]()
    rho, of_ranks = _order(scope, panel, n)
    if is_metric:
        notes = [note(*ONLY_ORDER), *of_ranks]
    elif n >= LEAST_RESPONSES:
        bias, ends, limits = bland_altman(raw.scorer - raw.clinicians, grid.clusters)
        points = bias, ends.low, ends.high, limits.low, limits.high
        instances = grid.instances(raw.both)
        notes = [remarks.few_instances(instances) if n > instances else None, *of_ranks]
    else:
        notes = [why_undefined(raw.clinicians[raw.both], raw.scorer[raw.both])]
    said = noted(
        remarks.coverage(present, analysed, present, analysed),
        remarks.fewer_jurors(panel.needed, len(panel.members)),
        remarks.simulated(scope.simulated & {*panel.members, *scope.clinicians}),
        *notes,
    )
    return SecondaryRow(scope.name, scorer, rho, *points, n, notes=said)


def _order(scope: Scope, panel: PanelColumns, n: int) -> tuple[float, list[Note]]:
    """Return Spearman's rho of the method's columns, and its notes."""
    method, notes = scope.options.method, list[Note]()
    pair = columns(scope.grid, panel, method)
    x, y = pair.clinicians[pair.both], pair.scorer[pair.both]
    flat = unscaled(scope.grid, (*scope.clinicians, *panel.members)) if method == "paper" else ()
    if flat:
        notes = [note("not_in_order", "no variance, so not in the order: {raters}", raters=flat)]
    rho = spearman(x, y) if len(x) >= LEAST_RESPONSES else NAN
    if np.isnan(rho):
        reason = why_no_icc(scope.grid, panel, method, (x, y))
        return rho, [note("ranks_undefined", "rank correlation undefined: {why}", why=reason)]
    if len(x) < n:
        over = "rank correlation over {responses} responses"
        notes.append(note("ranks_over", over, responses=len(x)))
    return rho, notes
