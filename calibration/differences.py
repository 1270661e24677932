"""Paired differences: does the jury agree with the clinicians more than another scorer does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration import remarks
from calibration.agreement import (
    Panel,
    column_icc,
    columns,
    one,
    scorer_replicates,
    unscaled,
    why_no_icc,
)
from calibration.bootstrap import Statistic, percentile_interval
from calibration.codes import NoteCode as Code
from calibration.f_interval import UNDEFINED
from calibration.grid import Grid, analysed_grid
from calibration.holm import holm
from calibration.scope import Scope, compared_names
from calibration.scores import Array, Flags, Method
from calibration.values import NAN, Note, Noted, note, noted

ROUNDING = 1e-9  # ICCs that are closer are the same ICC, computed in another order
DETECTABLE = 2.8  # standard errors: 1.96 for 5 % two-sided and 0.84 for 80 % power
LEVEL = 0.05  # of p, as the interval is of 95 %
JURY = "jury"


@dataclass(frozen=True)
class DifferenceRow(Noted):
    """The jury's ICC minus another scorer's, on the `n_responses` that both have.

    `a` is "jury", `b` "metric:NAME", "juror:NAME" or "jury:NAME". `difference` is of two
    ICC(C,2) with the clinicians, NaN if one is undefined; `low` and `high` its percentile 95 %
    interval. `p` is two-sided, in (0, 1], NaN without a difference or resamples; `p_holm` is
    corrected for `n_tried` comparisons: those with a p here, and those tried elsewhere. `icc_a`
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
    p_holm: float = NAN
    n_tried: int = 0
    n_responses: int = 0
    icc_a: float = NAN
    icc_b: float = NAN
    detectable: float = NAN


def difference_rows(
    scope: Scope, others: Mapping[str, Panel] = {}, tried: int = 0
) -> list[DifferenceRow]:
    """Compare the jury with each metric, each of its jurors alone, and other juries.

    Both ICCs are over the responses that both scorers have: where they have the same, the
    ICCs of the agreement table; else as if only the common ones were in the study. Each resample
    of instances gives both ICCs, z anew, from the draw that all rows share: they are paired. p shifts its bootstrap distribution to 0 (`shifted_p`).

    Parameters
    ----------
    scope : Scope
    others : mapping
        Other compositions by name. Their jurors need not sit in the scope's jury.
    tried : int
        Comparisons of the study that are not among these: of juries tried earlier, on
        other criteria or in other scopes. They count in Holm's correction (`holm.holm`).

    Returns
    -------
    list of DifferenceRow
        Metrics, jurors, then others; none without a jury. Scorers that say the same have
        difference 0 and p 1, exactly.

    Raises
    ------
    BadInput
        If `tried` is below 0.

    References
    ----------
    Efron & Tibshirani (1993), An Introduction to the Bootstrap, chapters 13 and 16.
    """
    if scope.jury is None:
        return []
    grid, pairs = _with_jurors(scope, others), compared(scope, others)
    found = [_compare(grid, scope.jury, *other, scope.asked.method) for other in pairs]
    rows = [_row(scope, *own) for own in zip(found, _drawn(scope, found), strict=True)]
    p = np.array([row.p for row in rows])
    adjusted, n_tried = holm(p, tried), int((~np.isnan(p)).sum()) + tried
    return [
        replace(row, p_holm=float(own), n_tried=n_tried)
        for row, own in zip(rows, adjusted, strict=True)
    ]


def compared(scope: Scope, others: Mapping[str, Panel] = {}) -> list[tuple[str, Panel]]:
    """Return with whom `difference_rows` compares the jury: names as in `b`, and panels.

    A juror that is the whole jury is no comparison and left out.
    """
    names = compared_names(scope.jurors, scope.metrics)
    alone = [(name, one(name.partition(":")[2])) for name in names]
    return [*alone, *((f"jury:{name}", panel) for name, panel in others.items())]


def shifted_p(difference: float, drawn: Array) -> float:
    """Return the two-sided p of a difference d from its replicates d*, shape (B,).

    (1 + #{|d* - d| >= |d|}) / (B + 1) over the B finite d*; NaN if d is, or all d* are.
    (Efron & Tibshirani 1993, section 16.4; the 1 after Davison & Hinkley 1997, section 4.4.)
    """
    finite = drawn[np.isfinite(drawn)]
    if not len(finite) or not np.isfinite(difference):
        return NAN
    extreme = np.abs(finite - difference) >= abs(difference) - ROUNDING
    return float((1 + extreme.sum()) / (len(finite) + 1))


@dataclass(frozen=True, eq=False)
class _Comparison:
    """The jury and another scorer on the `rows` of a grid that both have, or why there is none.

    `key` names the grid; `of_each` says how many responses each scorer has.
    """

    jury: Panel
    name: str
    other: Panel
    grid: Grid
    key: bytes
    rows: Flags
    of_each: tuple[int, int]
    iccs: tuple[float, float]
    reason: Note | None

    @property
    def difference(self) -> float:
        """Return the jury's ICC minus the other's."""
        return float(_gap(np.array(self.iccs[0]), np.array(self.iccs[1])))


def _gap(first: Array, second: Array) -> Array:
    return np.where(np.abs(first - second) < ROUNDING, 0.0, first - second)


def _with_jurors(scope: Scope, others: Mapping[str, Panel]) -> Grid:
    """Return the scope's grid with a column for every juror of the other compositions."""
    members = [name for panel in others.values() for name in panel.members]
    if set(members) <= set(scope.jurors):
        return scope.grid
    jurors = list(dict.fromkeys([*scope.jurors, *members]))
    benchmarks = list(scope.given["benchmark"].unique())
    return analysed_grid(scope.given, benchmarks, jurors=jurors, metrics=scope.metrics)


def _compare(grid: Grid, jury: Panel, name: str, other: Panel, method: Method) -> _Comparison:
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


def _drawn(scope: Scope, found: Sequence[_Comparison]) -> list[Array]:
    """Return each comparison's resampled differences; the jury's ICC is drawn once a grid."""
    drawn, grids = [np.empty(0) for _ in found], dict[bytes, list[int]]()
    for place, pair in enumerate(found):
        if not pair.reason:
            grids.setdefault(pair.key, []).append(place)
    parts = [_replicates([found[p] for p in own], scope.asked.method) for own in grids.values()]
    if not parts:
        return drawn
    iccs = scope.resample(lambda counts: np.hstack([part(counts) for part in parts]))
    first = 0
    for places in grids.values():
        for column, place in enumerate(places, start=first + 1):
            drawn[place] = _gap(iccs[:, first], iccs[:, column])
        first += 1 + len(places)
    return drawn


def _replicates(found: Sequence[_Comparison], method: Method) -> Statistic:
    """Return the resampled ICCs on one grid: the jury's, then that of every other in order."""
    grid, others = found[0].grid, [pair.other for pair in found]
    alone = next((n for n, panel in enumerate(others) if len(panel.members) > 1), len(others))
    singles = [panel.members[0] for panel in others[:alone]]
    statistics = [
        scorer_replicates(grid, found[0].jury, singles, method),
        *(scorer_replicates(grid, panel, (), method) for panel in others[alone:]),
    ]
    return lambda counts: np.column_stack([one(counts) for one in statistics])


def _row(scope: Scope, found: _Comparison, drawn: Array) -> DifferenceRow:
    ends = UNDEFINED if found.reason else percentile_interval(drawn)
    own, other = (NAN, NAN) if found.reason else found.iccs
    return DifferenceRow(
        benchmark=scope.name,
        a=JURY,
        b=found.name,
        difference=found.difference,
        low=ends.low,
        high=ends.high,
        p=shifted_p(found.difference, drawn),
        n_responses=int(found.rows.sum()),
        icc_a=own,
        icc_b=other,
        detectable=NAN if found.reason else _detectable(found.difference, drawn),
        notes=noted(found.reason, *_notes(scope, found, drawn)),
    )


def _notes(scope: Scope, found: _Comparison, drawn: Array) -> Iterator[Note | None]:
    raters = (*found.jury.members, *found.other.members, *scope.clinicians)
    if found.key:
        own, other = found.of_each
        yield note(Code.ONLY_BOTH, first=JURY, of_first=own, second=found.name, of_second=other)
    if scope.asked.method == "paper" and not _has_no_z(found.reason):
        yield remarks.no_variance(unscaled(found.grid, raters))
    if not found.reason:
        own_icc, icc = found.iccs
        yield note(Code.BOTH_ICCS, first=JURY, of_first=own_icc, second=found.name, of_second=icc)
        instances = found.grid.instances(found.rows)
        if instances < remarks.FEW_INSTANCES:
            yield note(Code.TOO_FEW_FOR_P, instances=instances)
        yield from _doubts(found.difference, drawn)
        yield remarks.undefined_resamples(drawn)
    yield remarks.simulated(scope.simulated & set(raters))


def _doubts(difference: float, drawn: Array) -> Iterator[Note | None]:
    """Say that interval and p disagree, and what was too small to be found."""
    if _apart(drawn) != (shifted_p(difference, drawn) <= LEVEL):
        yield note(Code.TWO_METHODS)
    if np.isfinite(least := _detectable(difference, drawn)):
        yield note(Code.NOT_DETECTABLE, least=least)


def _apart(drawn: Array) -> bool:
    ends = percentile_interval(drawn)
    return ends.low > 0 or ends.high < 0


def _detectable(difference: float, drawn: Array) -> float:
    """Return what 80 % power would find, NaN where a difference is shown or is larger."""
    finite = drawn[np.isfinite(drawn)]
    least = DETECTABLE * float(np.std(finite, ddof=1)) if len(finite) > 1 else NAN
    return least if not _apart(drawn) and least > abs(difference) else NAN


def _has_no_z(reason: Note | None) -> bool:
    return reason is not None and reason.code is Code.NO_Z
