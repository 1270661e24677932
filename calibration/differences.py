"""Paired differences of ICCs: whether the jury agrees with the clinicians more than another scorer."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration import remarks
from calibration.agreement import (
    PanelColumns,
    column_icc,
    columns,
    single_rater,
    unscaled,
    why_no_icc,
)
from calibration.jackknife import (
    POWER,
    Deletions,
    IccDifference,
    deletions,
    icc_difference,
    iccs_without,
)
from calibration.notes import Note, Noted, note, noted
from calibration.rating_matrix import RatingMatrix, analysed_grid
from calibration.scope import Scope, compared_names
from calibration.scores import Array, Flags
from calibration.shared_notes import NOT_DETECTABLE
from calibration.values import NAN, Method

DETECTABLE = POWER
LEVEL = 0.05  # of p, as the interval is of 95 %
JURY = "jury"


@dataclass(frozen=True)
class DifferenceRow(Noted):
    """The jury's ICC minus another scorer's, on the `n_responses` that both have.

    `a` is "jury", `b` "metric:NAME", "juror:NAME" or "jury:NAME". `difference` is of two
    ICC(C,2) with the clinicians, NaN if one is undefined; `low` and `high` its 95 % interval
    and `p` its two-sided p, of one method (`icc_difference`): p is at most 0.05 exactly where
    the interval excludes 0. NaN without a difference, or where that is undefined. p is of this
    comparison alone; `n_tried` is how many different ones were looked at on the study. `icc_a`
    and `icc_b` are both on the responses that both have; `detectable` is the smallest difference
    that 80 % power would find, NaN where it says nothing.
    """

    benchmark: str
    a: str
    b: str
    difference: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    n_tried: int = 0
    n_responses: int = 0
    icc_a: float = NAN
    icc_b: float = NAN
    detectable: float = NAN


def difference_rows(
    scope: Scope, others: Mapping[str, PanelColumns] = {}, tried: int = 0
) -> list[DifferenceRow]:
    """Compare the jury with each metric, each of its jurors alone, and other juries.

    Both ICCs are over the responses that both scorers have: where they have the same, the
    ICCs of the agreement table; else as if only the common ones were in the study. Interval and
    p leave out each instance in turn, z anew (`jackknife.icc_difference`): they are paired,
    draw nothing and do not depend on resamples or seed.

    Parameters
    ----------
    scope : Scope
    others : mapping
        Other compositions by name. Their jurors need not sit in the scope's jury.
    tried : int
        Different comparisons that were looked at on the study and are not among these.

    Returns
    -------
    list of DifferenceRow
        Metrics, jurors, then others; none without a jury. Scorers that say the same have
        difference 0 and p 1, exactly.
    """
    rows = paired_rows(scope, compared(scope, others))
    return [replace(row, n_tried=len(rows) + tried) for row in rows]


def paired_rows(scope: Scope, others: Sequence[tuple[str, PanelColumns]]) -> list[DifferenceRow]:
    """Return the jury's difference to each of some panels, by name; none without a jury.

    `n_tried` is 0.
    """
    if scope.jury is None:
        return []
    grid = _with_jurors(scope, [panel for _, panel in others])
    comparisons = [_compare(grid, scope.jury, *other, scope.options.method) for other in others]
    return [_row(scope, *own) for own in zip(comparisons, _tested(comparisons, scope), strict=True)]


def compared(
    scope: Scope, others: Mapping[str, PanelColumns] = {}
) -> list[tuple[str, PanelColumns]]:
    """Return the scorers that `difference_rows` compares the jury with: names as in `b`, and panels.

    A juror that is the whole jury is no comparison and left out.
    """
    names = compared_names(scope.jurors, scope.metrics)
    alone = [(name, single_rater(name.partition(":")[2])) for name in names]
    return [*alone, *((f"jury:{name}", panel) for name, panel in others.items())]


@dataclass(frozen=True, eq=False)
class _Comparison:
    """The jury and another scorer on the `rows` of a grid that both have, or why there is none.

    `key` names the grid; `of_each` says how many responses each scorer has.
    """

    jury: PanelColumns
    name: str
    other: PanelColumns
    grid: RatingMatrix
    key: bytes
    rows: Flags
    of_each: tuple[int, int]
    iccs: tuple[float, float]
    reason: Note | None

    @property
    def instances(self) -> int:
        """Return from how many instances the responses of both come."""
        return self.grid.instances(self.rows)


def _with_jurors(scope: Scope, others: Sequence[PanelColumns]) -> RatingMatrix:
    """Return the scope's grid with a column for every juror of the other compositions."""
    members = [name for panel in others for name in panel.members]
    if set(members) <= {*scope.jurors, *scope.metrics}:
        return scope.grid
    jurors = list(dict.fromkeys([*scope.jurors, *members]))
    benchmarks = list(scope.composites["benchmark"].unique())
    return analysed_grid(scope.composites, benchmarks, jurors=jurors, metrics=scope.metrics)


def _compare(
    grid: RatingMatrix, jury: PanelColumns, name: str, other: PanelColumns, method: Method
) -> _Comparison:
    pair = [columns(grid, panel, method) for panel in (jury, other)]
    of_each, key = (int(pair[0].both.sum()), int(pair[1].both.sum())), b""
    rows = pair[0].both & pair[1].both
    if rows.any() and of_each != (int(rows.sum()),) * 2:
        grid, key = grid.only(rows), rows.tobytes()
        pair = [columns(grid, panel, method) for panel in (jury, other)]
        rows = pair[0].both & pair[1].both
    clinicians, scorers = pair[0].clinicians[rows], [own.scorer[rows] for own in pair]
    reasons = [
        why_no_icc(grid, panel, method, (clinicians, own), ("the clinicians", called))
        for panel, own, called in zip((jury, other), scorers, (JURY, name), strict=True)
    ]
    first, second = (column_icc(clinicians, scorer, method) for scorer in scorers)
    reason = next(filter(_has_no_z, reasons), None) or next(filter(None, reasons), None)
    return _Comparison(jury, name, other, grid, key, rows, of_each, (first, second), reason)


def _tested(comparisons: Sequence[_Comparison], scope: Scope) -> Iterator[IccDifference]:
    """Yield each difference with interval and p; the jury's ICC is left out once a grid."""
    ready = dict[bytes, tuple[Deletions, Array]]()
    for pair in comparisons:
        if pair.reason:
            yield IccDifference(NAN)
            continue
        if pair.key not in ready:
            made = deletions(pair.grid, scope.options.method, pair.grid.clusters)
            ready[pair.key] = made, iccs_without(made, pair.jury)
        made, of_jury = ready[pair.key]
        concerned = np.unique(pair.grid.clusters[pair.rows])
        without = of_jury[concerned], iccs_without(made, pair.other)[concerned]
        yield icc_difference(pair.iccs, without)


def _row(scope: Scope, comparison: _Comparison, tested: IccDifference) -> DifferenceRow:
    own, other = (NAN, NAN) if comparison.reason else comparison.iccs
    return DifferenceRow(
        benchmark=scope.name,
        a=JURY,
        b=comparison.name,
        difference=tested.difference,
        low=tested.low,
        high=tested.high,
        p=tested.p,
        n_responses=int(comparison.rows.sum()),
        icc_a=own,
        icc_b=other,
        detectable=_detectable(tested),
        notes=noted(comparison.reason, *_notes(scope, comparison, tested)),
    )


def _notes(scope: Scope, comparison: _Comparison, tested: IccDifference) -> Iterator[Note | None]:
    raters = (*comparison.jury.members, *comparison.other.members, *scope.clinicians)
    if comparison.key:
        own, other = comparison.of_each
        yield note(
            "only_both",
            "only responses that both scored: {first} has {of_first}, {second:scorer} {of_second}",
            first=JURY,
            of_first=own,
            second=comparison.name,
            of_second=other,
        )
    if scope.options.method == "paper" and not _has_no_z(comparison.reason):
        yield remarks.no_variance(unscaled(comparison.grid, raters))
    if not comparison.reason:
        own_icc, icc = comparison.iccs
        yield note(
            "both_iccs",
            "{first} {of_first:z.3f}, {second:scorer} {of_second:z.3f}",
            first=JURY,
            of_first=own_icc,
            second=comparison.name,
            of_second=icc,
        )
        if comparison.instances < remarks.FEW_INSTANCES:
            yield note(
                "too_few_for_p",
                "{instances:instance}: too few for a reliable interval and p value",
                instances=comparison.instances,
            )
        yield (
            note(
                "no_test",
                "no interval and no p value: an ICC is 1, or undefined without one of the instances",
            )
            if np.isnan(tested.p)
            else None
        )
        least = _detectable(tested)
        yield note(*NOT_DETECTABLE, least=least) if np.isfinite(least) else None
    yield remarks.simulated(scope.simulated & set(raters))


def _detectable(tested: IccDifference) -> float:
    """Return what 80 % power would find, NaN where a difference is shown or is larger."""
    is_told = tested.p > LEVEL and tested.detectable > abs(tested.difference)
    return tested.detectable if is_told else NAN


def _has_no_z(reason: Note | None) -> bool:
    return reason is not None and reason.code == "no_z"


def holm(p: Array) -> Array:
    """Return p values adjusted so that any false alarm among all of one table stays at its level.

    Parameters
    ----------
    p : shape (m,)
        In [0, 1]; NaN for a test without a p value, which is not counted.

    Returns
    -------
    shape (m,)
        In [p, 1], in the order given; NaN where p is.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6, 65. Computed by
    `statsmodels.stats.multitest.multipletests`.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04])).tolist()
    [0.02, 0.04]
    """
    values = np.asarray(p, dtype=np.float64)
    known = ~np.isnan(values)
    adjusted = np.full_like(values, np.nan)
    if known.any():
        adjusted[known] = _corrected(values[known])
    return adjusted


def _corrected(p: Array) -> Array:
    """Return Holm's p of values that are all known.

    statsmodels has the collector look at every object of the process at each call, 60 ms and
    more; it is given only those of the call.
    """
    from statsmodels.stats.multitest import multipletests

    gc.freeze()
    try:
        adjusted: Array = multipletests(p, method="holm")[1]
    finally:
        gc.unfreeze()
    return adjusted
