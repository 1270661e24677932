"""The jury in each subgroup: whether it agrees as well, scores as severely and misses as little."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from calibration import remarks
from calibration.clustered_intervals import (
    ClusteredMean,
    clustered_mean,
    mean_difference,
)
from calibration.columns import PanelColumns, columns, why_no_icc
from calibration.detection import (
    criterion_tables,
    paired,
    share_interval,
    thresholds_of,
)
from calibration.differences import holm
from calibration.icc import UNDEFINED
from calibration.intervals import (
    Difference,
    icc_difference,
    jackknife_interval,
    left_out,
)
from calibration.notes import Figures, Note, Noted, filled, note, noted
from calibration.protocol import Critical, Threshold
from calibration.rating_matrix import RatingMatrix, analysed_grid
from calibration.remarks import FEW_INSTANCES
from calibration.scope import Scope, checked_jury, scopes, why_undefined_scope
from calibration.scores import Array, Flags, Scores
from calibration.values import NAN, AnalysisOptions, Method
from calibration.weighted import scorer_iccs
from data.errors import Unknown

SPECIALTY = "specialty"
LEVEL = 0.05


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
    """How the jury finds a subgroup's unsafe responses on one critical criterion.

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


def subgroup_rows(
    scores: Scores,
    options: AnalysisOptions,
    names: Sequence[str] = (),
    critical: Sequence[Critical] = (),
) -> list[SubgroupRow]:
    """Return how the jury does in each subgroup, and whether that differs from the rest.

    Parameters
    ----------
    scores, options
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
    groups = _known_groups(scores, names)
    rows: list[SubgroupRow] = []
    if not groups or not scores.raters("juror"):
        return rows
    thresholds, jury = thresholds_of(scores.rubrics, critical), checked_jury(scores, options)
    tables = criterion_tables(scores, thresholds)
    for scope in scopes(scores, options):
        if jury and not why_undefined_scope(scores, scope):
            own = scores.members(scope.name)
            limits = dict.fromkeys(limit for name in own for limit in thresholds[name])
            critical_grids = {
                limit: analysed_grid(tables[limit.criterion], own, jurors=jury.members, metrics=())
                for limit in limits
            }
            rows += _rows(scope, jury, scores, groups, critical_grids)
    return rows


def group_names(scores: Scores) -> list[str]:
    """Return the names of all groups of a study, the clinicians' specialty last."""
    return [*sorted(scores.groups), *([SPECIALTY] if scores.specialties else [])]


def _known_groups(scores: Scores, names: Sequence[str]) -> list[str]:
    known = group_names(scores)
    if lost := [name for name in names if name not in known]:
        has = f"it has {', '.join(known)}" if known else "its files have no column group:NAME"
        raise Unknown(f"this study has no group {', '.join(lost)}: {has}")
    return list(dict.fromkeys(names)) or known


@dataclass(frozen=True, eq=False)
class _Side:
    """A subgroup, or the rest: responses with jury and clinicians, and what the jury does there."""

    grid: RatingMatrix
    rows: Flags
    n: int
    bias: ClusteredMean
    reason: Note | None


def _rows(
    scope: Scope,
    jury: PanelColumns,
    scores: Scores,
    names: Sequence[str],
    critical: Mapping[Threshold, RatingMatrix],
) -> Iterator[SubgroupRow]:
    """Yield the subgroups of every group, each against the rest, with p corrected for all of them."""
    rows, keys = [], []
    for name in names:
        parts = _parts(scope.grid, scores, name)
        on_critical = {limit: _parts(grid, scores, name) for limit, grid in critical.items()}
        for value, (own, rest) in parts.items():
            inside = _side(scope, jury, own)
            outside = _side(scope, jury, rest) if len(parts) > 1 else None
            row = _row(scope, jury, (name, value), inside, outside)
            unsafe = [_unsafe(limit, jury, own.get(value)) for limit, own in on_critical.items()]
            rows.append(replace(row, unsafe=tuple(unsafe)))
            keys.append((name, "") if len(parts) == 2 else (name, value))
    by_key = dict(zip(keys, rows, strict=True))
    corrected = [
        holm(np.array([getattr(row, p) for row in by_key.values()])) for p in ("p", "bias_p")
    ]
    places = {key: place for place, key in enumerate(by_key)}
    for row, key in zip(rows, keys, strict=True):
        p_holm, bias_p_holm = (float(p[places[key]]) for p in corrected)
        tested = replace(row, p_holm=p_holm, bias_p_holm=bias_p_holm)
        finding = _finding(tested)
        notes = noted(*_finding_notes(tested, finding), *row.notes)
        yield replace(tested, finding=finding, notes=notes)


def _is_enough(side: _Side) -> bool:
    return side.bias.instances >= FEW_INSTANCES


def _parts(
    grid: RatingMatrix, scores: Scores, name: str
) -> dict[str, tuple[RatingMatrix, RatingMatrix]]:
    """Return value -> the grid with its composites alone, and with those of all other values."""
    if name != SPECIALTY:
        value_of = scores.groups[name]
        own = np.array([value_of.get(response, "") for response in grid.responses], dtype=object)
        return {
            value: (grid.only(own == value), grid.only((own != value) & (own != "")))
            for value in sorted({str(value) for value in own} - {""})
        }
    own = np.array([scores.specialties.get(name, "") for name in grid.raters], dtype=object)
    is_other = np.array(grid.kinds, dtype=object) != "clinician"
    return {
        value: (
            _of_raters(grid, is_other | (own == value)),
            _of_raters(grid, is_other | ((own != value) & (own != ""))),
        )
        for value in sorted({str(value) for value in own} - {""})
    }


def _of_raters(grid: RatingMatrix, counted: Flags) -> RatingMatrix:
    return replace(grid, composites=np.where(counted[None, :], grid.composites, np.nan))


def _side(scope: Scope, jury: PanelColumns, grid: RatingMatrix) -> _Side:
    method = scope.options.method
    pair, raw = columns(grid, jury, method), columns(grid, jury, "published")
    bias = clustered_mean(raw.scorer - raw.clinicians, grid.clusters, grid.n_clusters)
    reason = why_no_icc(grid, jury, method, (pair.clinicians[pair.both], pair.scorer[pair.both]))
    return _Side(grid, pair.both, int(raw.both.sum()), bias, reason)


def _iccs(grid: RatingMatrix, jury: PanelColumns, method: Method, rows: Flags) -> Array:
    """Return the jury's ICC on a grid, then without each instance of some responses in turn."""
    weights = left_out(grid.n_clusters, grid.clusters[rows])
    return scorer_iccs(grid, [jury], method, weights)[:, 0]


def _row(
    scope: Scope,
    jury: PanelColumns,
    about: tuple[str, str],
    inside: _Side,
    outside: _Side | None,
) -> SubgroupRow:
    """Return a subgroup's row with its differences to the rest, p not yet corrected."""
    method, icc, ends, of_bias = scope.options.method, NAN, UNDEFINED, inside.bias.interval()
    if not inside.reason:
        without = _iccs(inside.grid, jury, method, inside.rows)
        icc, ends = float(without[0]), jackknife_interval(without)
    gap = bias_gap = Difference()
    if outside and _is_enough(inside) and _is_enough(outside):
        if not (inside.reason or outside.reason):
            either = inside.rows | outside.rows
            first, second = (_iccs(one.grid, jury, method, either) for one in (inside, outside))
            gap = icc_difference(first, second)
        bias_gap = mean_difference(inside.bias, outside.bias)
    raters = {*jury.members, *scope.clinicians}
    return SubgroupRow(
        *about,
        scope.name,
        n=inside.n,
        n_instances=inside.bias.instances,
        icc=icc,
        low=ends.low,
        high=ends.high,
        bias=inside.bias.value,
        bias_low=of_bias.low,
        bias_high=of_bias.high,
        difference=gap.value,
        difference_low=gap.low,
        difference_high=gap.high,
        p=gap.p,
        bias_difference=bias_gap.value,
        bias_difference_low=bias_gap.low,
        bias_difference_high=bias_gap.high,
        bias_p=bias_gap.p,
        notes=noted(
            inside.reason,
            *_untested(inside, outside),
            remarks.simulated(scope.simulated & raters),
        ),
    )


def _untested(inside: _Side, outside: _Side | None) -> Iterator[Note]:
    """Note why a subgroup is not compared with the rest."""
    if outside is None:
        yield note("only_value", "no other value to compare with")
    elif _is_enough(inside) and not _is_enough(outside):
        yield note(
            "few_in_rest",
            "not compared: the rest have {instances:instance}, and {least} are needed",
            instances=outside.bias.instances,
            least=FEW_INSTANCES,
        )


def _unsafe(
    limit: Threshold, jury: PanelColumns, parts: tuple[RatingMatrix, RatingMatrix] | None
) -> UnsafeThere:
    """Return how the jury finds a subgroup's unsafe responses on one critical criterion."""
    if parts is None:
        return UnsafeThere(limit.criterion, limit.points)
    both = columns(parts[0], jury, "published")
    readings = paired(both.scorer, both.clinicians, parts[0].clusters, limit.points)
    unsafe, ends = (
        readings.unsafe,
        share_interval(readings.flagged, readings.unsafe, readings.clusters),
    )
    found = int((unsafe & readings.flagged).sum())
    return UnsafeThere(
        limit.criterion,
        limit.points,
        n_bad=int(unsafe.sum()),
        n_missed=int(unsafe.sum()) - found,
        sensitivity=found / int(unsafe.sum()) if unsafe.any() else NAN,
        sensitivity_low=ends.low,
        sensitivity_high=ends.high,
    )


def _finding(row: SubgroupRow) -> Finding:
    if row.n_instances < FEW_INSTANCES:
        return Finding.TOO_FEW
    if row.p_holm <= LEVEL and row.difference < 0:
        return Finding.LOWER
    return Finding.SHOWN if row.low > 0 else Finding.NOT_SHOWN


def _finding_notes(row: SubgroupRow, finding: Finding) -> Iterator[Note]:
    """Yield the notes on a subgroup's finding, the most important first."""
    if finding is Finding.TOO_FEW:
        yield note(
            "few_in_subgroup",
            (
                "agreement is not shown to hold for {value}: {instances:instance}, and {least} are "
                "needed"
            ),
            value=row.value,
            instances=row.n_instances,
            least=FEW_INSTANCES,
        )
    elif finding is Finding.LOWER:
        yield note("lower_in_subgroup", _lower, value=row.value, difference=row.difference)
    elif finding is Finding.NOT_SHOWN:
        known = bool(np.isfinite(row.low))
        yield note(
            "not_shown_in_subgroup", _not_shown, value=row.value, low=row.low if known else None
        )
    if row.bias_p_holm <= LEVEL:
        yield note("bias_in_subgroup", _bias, value=row.value, points=row.bias_difference)


def _not_shown(figures: Figures) -> str:
    why = "its ICC has no interval"
    if figures["low"] is not None:
        why = "the interval of its ICC reaches {low:z.2f}"
    return filled(f"agreement is not shown to hold for {{value}}: {why}", figures)


def _bias(figures: Figures) -> str:
    way = "more generous" if figures["points"] > 0 else "stricter"
    return filled(
        f"the jury is {abs(figures['points']):.2f} points {way} on {{value}} than on the rest",
        figures,
    )


def _lower(figures: Figures) -> str:
    gap = f"{-figures['difference']:.2f}"
    text = "agreement is not shown to hold for {value} as for the rest: its ICC is "
    return filled(f"{text}{gap} lower", figures)
