"""Paired differences of ICCs: whether the jury agrees with the clinicians more than another scorer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration import remarks
from calibration.columns import (
    PanelColumns,
    columns,
    single_rater,
    unscaled,
    why_no_icc,
)
from calibration.intervals import icc_difference, left_out
from calibration.notes import Note, Noted, note, noted
from calibration.rating_matrix import RatingMatrix, analysed_grid
from calibration.scope import Scope, compared_names
from calibration.scores import Array
from calibration.values import NAN
from calibration.weighted import scorer_iccs

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
    and `icc_b` are both on the responses that both have.
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


def difference_rows(
    scope: Scope, others: Mapping[str, PanelColumns] = {}, tried: int = 0
) -> list[DifferenceRow]:
    """Compare the jury with each metric, each of its jurors alone, and other juries.

    Both ICCs are over the responses that both scorers have: where they have the same, the
    ICCs of the agreement table; else as if only the common ones were in the study. Interval and
    p leave out each instance in turn, z anew (`intervals.icc_difference`): they are paired,
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
    members = [name for _, panel in others for name in panel.members]
    grid = scope.grid
    if not set(members) <= {*scope.jurors, *scope.metrics}:  # jurors who do not sit in the jury
        jurors = list(dict.fromkeys([*scope.jurors, *members]))
        benchmarks = list(scope.composites["benchmark"].unique())
        grid = analysed_grid(scope.composites, benchmarks, jurors=jurors, metrics=scope.metrics)
    return [_row(scope, grid, scope.jury, name, panel) for name, panel in others]


def compared(
    scope: Scope, others: Mapping[str, PanelColumns] = {}
) -> list[tuple[str, PanelColumns]]:
    """Return the scorers that `difference_rows` compares the jury with: names as in `b`, and panels.

    A juror that is the whole jury is no comparison and left out.
    """
    names = compared_names(scope.jurors, scope.metrics)
    alone = [(name, single_rater(name.partition(":")[2])) for name in names]
    return [*alone, *((f"jury:{name}", panel) for name, panel in others.items())]


def _row(
    scope: Scope, grid: RatingMatrix, jury: PanelColumns, name: str, other: PanelColumns
) -> DifferenceRow:
    """Return the difference on the responses that both scorers have, z over these alone."""
    panels, method = (jury, other), scope.options.method
    pair = [columns(grid, panel, method) for panel in panels]
    rows, of_each = pair[0].both & pair[1].both, [int(own.both.sum()) for own in pair]
    only_both = bool(rows.any()) and of_each != [int(rows.sum())] * 2
    if only_both:
        grid = grid.only(rows)
        pair = [columns(grid, panel, method) for panel in panels]
        rows = pair[0].both & pair[1].both
    clinicians, scorers = pair[0].clinicians[rows], [own.scorer[rows] for own in pair]
    reasons = [
        why_no_icc(grid, panel, method, (clinicians, own), ("the clinicians", called))
        for panel, own, called in zip(panels, scorers, (JURY, name), strict=True)
    ]
    no_z = next((one for one in reasons if one and one.code == "no_z"), None)
    reason = no_z or next(filter(None, reasons), None)
    row = DifferenceRow(scope.name, JURY, name, n_responses=int(rows.sum()))
    if not reason:
        weights = left_out(grid.n_clusters, grid.clusters[rows])
        first, second = scorer_iccs(grid, panels, method, weights).T
        tested = icc_difference(first, second)
        row = replace(
            row,
            difference=tested.value,
            low=tested.low,
            high=tested.high,
            p=tested.p,
            icc_a=float(first[0]),
            icc_b=float(second[0]),
        )
    raters = (*jury.members, *other.members, *scope.clinicians)
    unvaried = unscaled(grid, raters) if method == "paper" and not no_z else ()
    notes = noted(
        reason,
        _only_both(name, of_each) if only_both else None,
        remarks.no_variance(unvaried),
        *([] if reason else _untested(row, grid.instances(rows))),
        remarks.simulated(scope.simulated & set(raters)),
    )
    return replace(row, notes=notes)


def _only_both(name: str, of_each: Sequence[int]) -> Note:
    return note(
        "only_both",
        "only responses that both scored: {first} has {of_first}, {second:scorer} {of_second}",
        first=JURY,
        of_first=of_each[0],
        second=name,
        of_second=of_each[1],
    )


def _untested(row: DifferenceRow, instances: int) -> Iterator[Note]:
    """Yield why the interval and p of a difference are not there, or not to be trusted."""
    if instances < remarks.FEW_INSTANCES:
        words = "{instances:instance}: too few for a reliable interval and p value"
        yield note("too_few_for_p", words, instances=instances)
    if np.isnan(row.p):
        words = "no interval and no p value: an ICC is 1, or undefined without one of the instances"
        yield note("no_test", words)


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
    Holm (1979), Scandinavian Journal of Statistics 6, 65.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04])).tolist()
    [0.02, 0.04]
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)[: int((~np.isnan(values)).sum())]  # NaN is sorted last
    adjusted = np.full_like(values, np.nan)
    stepped = np.arange(len(order), 0, -1) * values[order]
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted
