"""Subgroups: whether the jury agrees as well, scores as severely and misses as little everywhere."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from calibration import remarks
from calibration.agreement import Panel, columns, why_no_icc
from calibration.clustered_intervals import (
    ClusteredMean,
    clustered_mean,
    clustered_proportion,
    mean_difference,
)
from calibration.codes import NoteCode as Code
from calibration.criterion_scores import CriterionScores, criterion_scores
from calibration.detection import Threshold, thresholds_of
from calibration.detection_row import Readings
from calibration.holm import holm
from calibration.jackknife import (
    Difference,
    JackknifedIcc,
    jackknifed_difference,
    jackknifed_icc,
)
from calibration.protocol import Critical
from calibration.rating_matrix import Grid, mean_of_given
from calibration.remarks import FEW_INSTANCES
from calibration.scope import Asked, Scope, Sitting, checked, scopes, why_undefined_scope
from calibration.scores import COMBINED, Flags, Integers, Scores
from calibration.values import NAN, Note, Noted, note, noted
from data.errors import Unknown


class Finding(StrEnum):
    """What may be said of the jury's agreement in a subgroup.

    "shown" is an interval of the ICC above 0 and no difference to the rest found: not that there
    is none. All others are "not shown to hold".
    """

    SHOWN = "shown"
    LOWER = "lower"
    NOT_SHOWN = "not_shown"
    TOO_FEW = "too_few"


@dataclass(frozen=True, slots=True)
class UnsafeThere:
    """What the jury finds of a subgroup's unsafe responses on one critical criterion.

    `sensitivity` with its 95 % interval over instances; NaN where no response is unsafe.
    """

    criterion: str
    threshold: float
    n_bad: int = 0
    n_missed: int = 0
    sensitivity: float = NAN
    sensitivity_low: float = NAN
    sensitivity_high: float = NAN


@dataclass(frozen=True)
class SubgroupRow(Noted):
    """The jury in one subgroup. NaN: undefined, or not tested, as notes say.

    Attributes
    ----------
    group, value, benchmark, scorer : "specialty" groups clinicians, all else responses; the scorer
        is the jury
    n, n_instances : responses with jury and clinicians, and their instances
    icc, low, high : ICC(C,2) of the subgroup alone, z taken within it, with its 95 % interval
    bias, bias_low, bias_high : jury minus clinicians in points of the scale
    difference, difference_low, difference_high, p : ICC here minus ICC of the rest
    bias_difference, bias_difference_low, bias_difference_high, bias_p : the same of the bias
    p_holm, bias_p_holm : p corrected for all subgroups of the benchmark that were tested; a group
        of two values is one test
    finding : what may be said
    unsafe : on each critical criterion
    """

    group: str
    value: str
    benchmark: str
    scorer: str = "jury"
    n: int = 0
    n_instances: int = 0
    icc: float = NAN
    low: float = NAN
    high: float = NAN
    bias: float = NAN
    bias_low: float = NAN
    bias_high: float = NAN
    difference: float = NAN
    difference_low: float = NAN
    difference_high: float = NAN
    p: float = NAN
    p_holm: float = NAN
    bias_difference: float = NAN
    bias_difference_low: float = NAN
    bias_difference_high: float = NAN
    bias_p: float = NAN
    bias_p_holm: float = NAN
    finding: Finding = Finding.NOT_SHOWN
    unsafe: tuple[UnsafeThere, ...] = ()

    @property
    def label(self) -> str:
        """Return its name in a table, as "language: de"."""
        return f"{self.group}: {self.value}"


SPECIALTY = "specialty"
LEVEL = 0.05


def subgroup_rows(
    scores: Scores,
    sitting: Sitting,
    asked: Asked,
    names: Sequence[str] = (),
    critical: Sequence[Critical] = (),
) -> list[SubgroupRow]:
    """Return how the jury does in each subgroup, and whether that differs from the rest.

    Parameters
    ----------
    scores, sitting, asked
        As for `table.agreement_table`; nothing is resampled here.
    names : which groups, "specialty" for the clinicians'; none: all there are
    critical : of the study's protocol; those of rubrics count too

    Returns
    -------
    list of SubgroupRow
        For each benchmark, then "combined", each group and each of its values. A subgroup is taken
        as if it were the study: z within it. The rest are the responses with another value of the
        group, or the clinicians of another specialty on the same responses. A difference is tested
        where both sides have 20 instances; every p is corrected by Holm for all that the benchmark
        tests. None without a jury or a group.

    Raises
    ------
    Unknown
        If the study has no group of a name. Else as `table.agreement_table`.
    """
    wanted = _wanted(scores, names)
    found: list[SubgroupRow] = []
    if not wanted or not scores.raters("juror"):
        return found
    thresholds, jury = thresholds_of(scores.rubrics, critical), checked(scores, sitting, asked)
    is_critical = any(one.critical for own in thresholds.values() for one in own)
    table = criterion_scores(scores, jury.members) if jury and is_critical else None
    for scope in scopes(scores, sitting, asked):
        if scope.jury and not why_undefined_scope(scores, scope):
            found += _rows(_Place(scope, scope.jury, scores, thresholds, table), wanted)
    return found


def group_names(scores: Scores) -> list[str]:
    """Return the names of all groups of a study, the clinicians' specialty last."""
    return [*sorted(scores.groups), *([SPECIALTY] if scores.specialties else [])]


def _wanted(scores: Scores, names: Sequence[str]) -> list[str]:
    known = group_names(scores)
    if lost := [name for name in names if name not in known]:
        has = f"it has {', '.join(known)}" if known else "its files have no column group:NAME"
        raise Unknown(f"this study has no group {', '.join(lost)}: {has}")
    return list(dict.fromkeys(names)) or known


@dataclass(frozen=True, eq=False)
class _Place:
    """A scope with its jury, and what counts as unsafe; no table where nothing is critical."""

    scope: Scope
    jury: Panel
    scores: Scores
    thresholds: Mapping[str, Sequence[Threshold]]
    table: CriterionScores | None

    @property
    def members(self) -> Sequence[str]:
        """Return the benchmarks of the scope."""
        return self.scores.benchmarks if self.scope.name == COMBINED else (self.scope.name,)


@dataclass(frozen=True, eq=False)
class _Side:
    """A subgroup, or the rest: responses with jury and clinicians, and what the jury does there."""

    n: int
    icc: JackknifedIcc
    bias: ClusteredMean
    reason: Note | None


@dataclass(frozen=True, eq=False)
class _Test:
    """A subgroup before p is corrected; `key` is the same for both values of a group of two."""

    row: SubgroupRow
    key: tuple[str, str]
    difference: Difference
    of_bias: Difference


def _rows(place: _Place, wanted: Sequence[str]) -> Iterator[SubgroupRow]:
    tests = [one for name in wanted for one in _tests(place, name)]
    by_key = {one.key: one for one in tests}
    of_icc = holm(np.array([one.difference.p for one in by_key.values()]))
    of_bias = holm(np.array([one.of_bias.p for one in by_key.values()]))
    corrected = dict(zip(by_key, zip(of_icc.tolist(), of_bias.tolist(), strict=True), strict=True))
    for one in tests:
        yield _found(one, *corrected[one.key])


def _tests(place: _Place, name: str) -> Iterator[_Test]:
    """Yield the subgroups of one group, each against the rest."""
    parts = _parts(place.scope, place.scores, name)
    for value, (own, rest) in parts.items():
        here, there = _side(place, own), _side(place, rest) if len(parts) > 1 else None
        tested = there is not None and _is_enough(here) and _is_enough(there)
        difference = (
            jackknifed_difference(here.icc, there.icc) if there and tested else Difference()
        )
        of_bias = mean_difference(here.bias, there.bias) if there and tested else Difference()
        row = _row(place, (name, value), here, there)
        key = (name, "") if len(parts) == 2 else (name, value)
        yield _Test(row, key, difference, of_bias)


def _is_enough(side: _Side) -> bool:
    return side.bias.instances >= FEW_INSTANCES


def _parts(scope: Scope, scores: Scores, name: str) -> dict[str, tuple[Grid, Grid]]:
    """Return value -> the grid with its composites alone, and with those of all other values."""
    grid = scope.grid
    if name == SPECIALTY:
        return _by_clinician(grid, scores.specialties)
    given = scores.groups[name]
    own = np.array([given.get(one, "") for one in grid.responses], dtype=object)
    values = sorted({str(one) for one in own} - {""})
    return {one: (grid.only(own == one), grid.only((own != one) & (own != ""))) for one in values}


def _by_clinician(grid: Grid, specialties: Mapping[str, str]) -> dict[str, tuple[Grid, Grid]]:
    own = [specialties.get(name, "") for name in grid.raters]
    judges = np.array([kind == "clinician" for kind in grid.kinds], dtype=np.bool_)
    found = {}
    for value in sorted(set(own) - {""}):
        here = np.array([one == value for one in own], dtype=np.bool_)
        there = np.array([one not in ("", value) for one in own], dtype=np.bool_)
        found[value] = (_of_raters(grid, ~judges | here), _of_raters(grid, ~judges | there))
    return found


def _of_raters(grid: Grid, kept: Flags) -> Grid:
    return replace(grid, composites=np.where(kept[None, :], grid.composites, np.nan))


def _side(place: _Place, grid: Grid) -> _Side:
    method = place.scope.asked.method
    pair, raw = columns(grid, place.jury, method), columns(grid, place.jury, "published")
    shown = pair.clinicians[pair.both], pair.scorer[pair.both]
    bias = clustered_mean(raw.scorer - raw.clinicians, grid.clusters, grid.n_clusters)
    reason = why_no_icc(grid, place.jury, method, shown)
    return _Side(int(raw.both.sum()), jackknifed_icc(grid, place.jury, method), bias, reason)


def _row(place: _Place, about: tuple[str, str], here: _Side, there: _Side | None) -> SubgroupRow:
    ends, of_bias, scope = here.icc.interval(), here.bias.interval(), place.scope
    raters = {*place.jury.members, *scope.clinicians}
    return SubgroupRow(
        *about,
        scope.name,
        n=here.n,
        n_instances=here.bias.instances,
        icc=here.icc.icc,
        low=ends.low,
        high=ends.high,
        bias=here.bias.value,
        bias_low=of_bias.low,
        bias_high=of_bias.high,
        unsafe=tuple(_unsafe(place, *about)),
        notes=noted(
            here.reason,
            *_untested(here, there),
            remarks.simulated(scope.simulated & raters),
        ),
    )


def _untested(here: _Side, there: _Side | None) -> Iterator[Note]:
    """Say why a subgroup is compared with nothing."""
    if there is None:
        yield note(Code.ONLY_VALUE)
    elif _is_enough(here) and not _is_enough(there):
        yield note(Code.FEW_IN_REST, instances=there.bias.instances, least=FEW_INSTANCES)


def _unsafe(place: _Place, name: str, value: str) -> Iterator[UnsafeThere]:
    """Yield what the jury finds on each critical criterion, of the subgroup's unsafe responses."""
    if place.table is None:
        return
    members = place.members
    own = place.table.of(np.isin(np.array(place.table.benchmarks, dtype=object), members))
    kept, judges = _of_subgroup(place.scores, own, name, value)
    own = own.of(kept)
    every = [one for member in members for one in place.thresholds[member] if one.critical]
    for one in dict.fromkeys(every):
        reference = mean_of_given(own.of_clinicians(one.criterion)[:, judges])
        jury = own.of_jury(one.criterion, place.jury)
        both = ~np.isnan(reference) & ~np.isnan(jury)
        readings = Readings(jury[both], reference[both], own.clusters()[both], int(both.sum()))
        yield _unsafe_there(one, readings)


def _of_subgroup(
    scores: Scores, own: CriterionScores, name: str, value: str
) -> tuple[Flags, Integers]:
    """Return which responses, and which clinicians, a subgroup is of."""
    clinicians = own.raters[: own.n_clinicians]
    if name == SPECIALTY:
        judges = [
            place for place, one in enumerate(clinicians) if scores.specialties.get(one) == value
        ]
        return np.ones(len(own.responses), dtype=np.bool_), np.array(judges, dtype=np.int64)
    given = scores.groups[name]
    kept = np.array([given.get(one) == value for one in own.responses], dtype=np.bool_)
    return kept, np.arange(len(clinicians))


def _unsafe_there(one: Threshold, own: Readings) -> UnsafeThere:
    unsafe, found = own.unsafe(one.points), own.found(one.points)
    hits, trials = (unsafe & found).astype(np.float64), unsafe.astype(np.float64)
    ends = clustered_proportion(hits, trials, own.clusters)
    return UnsafeThere(
        one.criterion,
        one.points,
        n_bad=int(unsafe.sum()),
        n_missed=int((unsafe & ~found).sum()),
        sensitivity=float(hits.sum() / trials.sum()) if unsafe.any() else NAN,
        sensitivity_low=ends.low,
        sensitivity_high=ends.high,
    )


def _found(test: _Test, p_holm: float, bias_p_holm: float) -> SubgroupRow:
    """Return a subgroup's row with its differences, p corrected, and what may be said."""
    row, gap, of_bias = test.row, test.difference, test.of_bias
    told = replace(
        row,
        difference=gap.value,
        difference_low=gap.low,
        difference_high=gap.high,
        p=gap.p,
        p_holm=p_holm,
        bias_difference=of_bias.value,
        bias_difference_low=of_bias.low,
        bias_difference_high=of_bias.high,
        bias_p=of_bias.p,
        bias_p_holm=bias_p_holm,
    )
    finding = _finding(told)
    return replace(told, finding=finding, notes=noted(*_said(told, finding), *row.notes))


def _finding(row: SubgroupRow) -> Finding:
    if row.n_instances < FEW_INSTANCES:
        return Finding.TOO_FEW
    if row.p_holm <= LEVEL and row.difference < 0:
        return Finding.LOWER
    return Finding.SHOWN if row.low > 0 else Finding.NOT_SHOWN


def _said(row: SubgroupRow, finding: Finding) -> Iterator[Note]:
    """Yield what a reader must be told of a subgroup, the most telling first."""
    if finding is Finding.TOO_FEW:
        yield note(
            Code.FEW_IN_SUBGROUP, value=row.value, instances=row.n_instances, least=FEW_INSTANCES
        )
    elif finding is Finding.LOWER:
        yield note(Code.LOWER_IN_SUBGROUP, value=row.value, difference=row.difference)
    elif finding is Finding.NOT_SHOWN:
        known = bool(np.isfinite(row.low))
        yield note(Code.NOT_SHOWN_IN_SUBGROUP, value=row.value, low=row.low if known else None)
    if row.bias_p_holm <= LEVEL:
        yield note(Code.BIAS_IN_SUBGROUP, value=row.value, points=row.bias_difference)
