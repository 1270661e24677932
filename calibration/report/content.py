"""The content of a report: facts about the study, figures, and the jury on each criterion."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibration import remarks
from calibration.agreement import (
    PanelColumns,
    column_icc,
    columns,
    scorer_replicates,
    unscaled,
    why_undefined,
)
from calibration.bootstrap import LEAST_CLUSTERS, percentile_interval
from calibration.decision import Decision
from calibration.detection import NOTHING, Detection
from calibration.icc import UNDEFINED, f_interval
from calibration.notes import Note, Noted, noted, undefined
from calibration.other_measures import secondary_rows
from calibration.other_measures import spearman as spearman_of
from calibration.protocol import Protocol
from calibration.resampled_moments import MOST_ROWS, joint_statistic, prepare
from calibration.scope import AgreementRow, Scope, scopes, why_undefined_scope
from calibration.scores import Array, Scores
from calibration.subgroups import SubgroupRow
from calibration.values import COMBINED, NAN, AnalysisOptions
from data.errors import TooFew

IN_POINTS = ("bias", "bias_low", "bias_high", "limits_low", "limits_high")


@dataclass(frozen=True)
class ReportedJuror:
    """A juror: its name, model, provider, and the hash of all settings that affect its answers."""

    name: str
    model: str = ""
    provider: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class UsedRubric:
    """The rubric of one benchmark."""

    benchmark: str
    name: str
    version: str
    criteria: tuple[str, ...]
    scale: str
    sha256: str


@dataclass(frozen=True)
class Tried:
    """One entry of the ledger: a jury that was compared with the clinicians."""

    jurors: tuple[str, ...]
    needed: int
    benchmark: str
    criterion: str
    method: str
    instances: str
    icc: float | None
    n_responses: int
    times: int
    last: str
    simulated: bool


@dataclass(frozen=True)
class Costs:
    """The cost of all calls to jurors in the study; `unknown` of the calls have no price.

    `rated` counts responses that any juror of the study has rated.
    """

    usd: float = 0.0
    calls: int = 0
    unknown: int = 0
    rated: int = 0


@dataclass(frozen=True)
class Study:
    """Facts about the study and the options. Nothing here names a response's author.

    `told` are sentences that every report must show, such as when the study was unblinded;
    `silent` jurors were asked and gave no rating; `versions` is software -> version.
    """

    made: str
    method: str = "paper"
    criterion: str | None = None
    reps: int = 2000
    seed: int = 0
    min_shared: int = 2
    needed: int = 0
    references: str = "all"
    fingerprint: str = ""
    jurors: Sequence[ReportedJuror] = ()
    silent: Sequence[str] = ()
    rubrics: Sequence[UsedRubric] = ()
    tried: Sequence[Tried] = ()
    costs: Costs = Costs()
    told: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CriterionRow(AgreementRow):
    """The jury on one criterion: its row of the agreement table, and its points of the scale.

    `bias` is the mean of jury minus clinicians, with its 95 % interval; between the two
    limits lie 95 % of single differences where they are normal. NaN where undefined.
    """

    criterion: str = ""
    bias: float = NAN
    bias_low: float = NAN
    bias_high: float = NAN
    limits_low: float = NAN
    limits_high: float = NAN


@dataclass(frozen=True, eq=False)
class Paired:
    """The means of clinicians and jury on the responses that have both, in points.

    Attributes
    ----------
    benchmark : the scope's name
    responses : ids
    clinicians, jury : shape (n,), no NaN
    """

    benchmark: str
    responses: tuple[str, ...]
    clinicians: Array
    jury: Array


@dataclass(frozen=True)
class Content:
    """All that a report shows.

    Attributes
    ----------
    rows : the agreement table
    decisions : the verdicts, by benchmark, in the table's order
    details : section -> rows, as `details.details` returns them
    criteria : rows of `evidence.criterion_rows`
    paired : means of clinicians and jury, by benchmark
    study : Study
    detection : rows and curves of unsafe responses
    subgroups : rows of subgroups
    checked : how far pingouin's ICCs are from these, in words
    protocol : the study's protocol, None where none was fixed
    """

    rows: Sequence[AgreementRow]
    decisions: Mapping[str, Decision]
    details: Mapping[str, Sequence[Noted]]
    criteria: Sequence[CriterionRow]
    paired: Mapping[str, Paired]
    study: Study
    detection: Detection = NOTHING
    subgroups: Sequence[SubgroupRow] = ()
    checked: str = ""
    protocol: Protocol | None = None

    @property
    def benchmarks(self) -> list[str]:
        """Return the benchmarks in the table's order, `combined` last."""
        return list(dict.fromkeys(row.benchmark for row in self.rows))

    @property
    def shown(self) -> list[str]:
        """Return the benchmarks whose details are shown: all combined, or each where that is undefined."""
        analysed = {row.benchmark for row in self.of("distributions")}
        if COMBINED in analysed or len(self.benchmarks) == 1:
            return self.benchmarks[-1:]
        return [name for name in self.benchmarks if name in analysed]

    @property
    def decision(self) -> Decision:
        """Return the verdict on all benchmarks combined, or on the only one."""
        return [*self.decisions.values()][-1]

    def of(self, section: str, *benchmarks: str) -> list[Any]:
        """Return the rows of a section of the details, of these benchmarks, or of all."""
        rows: Sequence[Any] = self.details.get(section, ())
        return [row for row in rows if not benchmarks or row.benchmark in benchmarks]

    def about(self, scorer: str, *benchmarks: str) -> list[AgreementRow]:
        """Return a scorer's rows of the agreement table, of these benchmarks, or of all."""
        shown = benchmarks or tuple(self.benchmarks)
        return [row for row in self.rows if row.scorer == scorer and row.benchmark in shown]


def criterion_names(scores: Scores, criterion: str | None) -> tuple[str, ...]:
    """Return the criteria worth a row of their own: none where one is all there is."""
    shapes = [scores.rubrics[name] for name in scores.benchmarks]
    if criterion is not None or all(len(shape.criteria) == 1 for shape in shapes):
        return ()
    return tuple(dict.fromkeys(name for shape in shapes for name in shape.criteria))


def criterion_rows(scores: Scores, options: AnalysisOptions) -> list[CriterionRow]:
    """Return the jury's agreement on every criterion by itself, on each benchmark and combined.

    Parameters
    ----------
    scores, options
        As for `table.agreement_table`: the same replicates and seed.

    Returns
    -------
    list of CriterionRow
        A benchmark whose rubric lacks a criterion has no row of it; `combined` only has
        those of several benchmarks. None without a jury, or where there is one criterion.

    Raises
    ------
    Unknown, BadInput
        As `table.agreement_table`. A criterion that no clinician rated is undefined, no error.
    """
    rows: list[CriterionRow] = []
    for name in criterion_names(scores, options.criterion) if scores.raters("juror") else ():
        having = [
            benchmark
            for benchmark in scores.benchmarks
            if name in scores.rubrics[benchmark].criteria
        ]
        scope_names = [*having, COMBINED] if len(having) > 1 else having
        try:
            rows += [
                _criterion_row(scope, scope.jury, scores, name)
                for scope in scopes(scores, replace(options, criterion=name))
                if scope.jury and scope.name in scope_names
            ]
        except TooFew:
            why = (undefined("criterion_unrated", "no clinician has rated this criterion"),)
            rows += [
                CriterionRow(benchmark, "jury", notes=why, criterion=name)
                for benchmark in scope_names
            ]
    return sorted(rows, key=lambda row: (row.benchmark == COMBINED, row.benchmark))


def paired_means(scores: Scores, options: AnalysisOptions) -> Iterator[Paired]:
    """Yield the raw means of clinicians and jury, of each scope where an ICC can be asked for."""
    for scope in scopes(scores, options):
        if scope.jury and not why_undefined_scope(scores, scope):
            raw = columns(scope.grid, scope.jury, "published")
            ids = tuple(scope.grid.responses[index] for index in np.flatnonzero(raw.both))
            yield Paired(scope.name, ids, raw.clinicians[raw.both], raw.scorer[raw.both])


def _criterion_row(
    scope: Scope, jury: PanelColumns, scores: Scores, criterion: str
) -> CriterionRow:
    reason = why_undefined_scope(scores, scope)
    if reason:
        return CriterionRow(scope.name, "jury", notes=(reason,), criterion=criterion)
    grid, method = scope.grid, scope.options.method
    pair = columns(grid, jury, method)
    x, y = pair.clinicians[pair.both], pair.scorer[pair.both]
    icc, reason, instances = (
        column_icc(x, y, method),
        why_undefined(x, y),
        grid.instances(pair.both),
    )
    drawn = np.empty(0) if reason else _drawn(scope, jury)
    boot = UNDEFINED if instances < LEAST_CLUSTERS else percentile_interval(drawn)
    exact, spearman = f_interval(icc, len(x)), NAN if reason else spearman_of(x, y)
    high = boot.high if np.isfinite(boot.high) else exact.high
    has_rated = ~np.isnan(grid.composites[pair.both][:, grid.of_kind("clinician")])
    points = secondary_rows(replace(scope, jurors=(), metrics=()), scores)[0]
    of = (reason, remarks.negative(icc, high, spearman), remarks.undefined_resamples(drawn))
    return CriterionRow(
        benchmark=scope.name,
        scorer="jury",
        icc=icc,
        f_low=exact.low,
        f_high=exact.high,
        low=boot.low,
        high=boot.high,
        boot_low=boot.low,
        boot_high=boot.high,
        n_responses=len(x),
        n_instances=instances,
        n_clinicians=int(has_rated.any(axis=0).sum()),
        n_missing=int((~jury.present(grid)).sum()),
        spearman=spearman,
        notes=noted(*_notes(scope, jury, len(x), instances), *of),
        criterion=criterion,
        **{name: getattr(points, name) for name in IN_POINTS},
    )


def _drawn(scope: Scope, jury: PanelColumns) -> Array:
    """Return the jury's resampled ICCs, the agreement table's own."""
    grid, method = scope.grid, scope.options.method
    statistic = scorer_replicates(grid, jury, (), method)
    drawn = scope.resample(joint_statistic(prepare(grid, method), [statistic]), most_rows=MOST_ROWS)
    return drawn[:, 0]


def _notes(
    scope: Scope, jury: PanelColumns, responses: int, instances: int
) -> Iterator[Note | None]:
    yield scope.analysed
    yield remarks.fewer_jurors(jury.needed, len(jury.members))
    if scope.options.method == "paper":
        yield remarks.no_variance(unscaled(scope.grid, (*scope.clinicians, *jury.members)))
    yield remarks.incomplete(sum(scope.incomplete.get(name, 0) for name in jury.members))
    yield remarks.few_instances(instances)
    yield remarks.shared_instances(responses, instances)
    yield remarks.simulated(scope.simulated & {*jury.members, *scope.clinicians})
