"""The content of a report: facts about the study, figures, and the jury on each criterion."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibration.columns import columns
from calibration.decision import Decision
from calibration.detection import DetectionRow
from calibration.notes import undefined
from calibration.other_measures import secondary_rows
from calibration.protocol import Protocol
from calibration.scope import AgreementRow, scopes, why_undefined_scope
from calibration.scores import Array, Scores
from calibration.subgroups import SubgroupRow
from calibration.table import agreement_rows
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
    `silent` jurors were asked and gave no rating; `tried` are entries of the ledger, rows of
    `data.schema.Composition`; `versions` is software -> version.
    """

    made: str = ""
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
    tried: Sequence[Any] = ()
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Content:
    """All that a report shows; `medjury.services.calibrate.Calibration` is one.

    Attributes
    ----------
    rows : the agreement table
    decisions : the verdicts, by benchmark, in the table's order
    protocol : the study's protocol, None where none was fixed
    detection : rows of unsafe responses
    subgroups : rows of subgroups
    details : section -> rows, as `details.details` returns them
    criteria : rows of `criterion_rows`
    paired : means of clinicians and jury, by benchmark
    check_line : how far pingouin's ICCs are from these, in words
    study : facts that only a report shows
    """

    rows: Sequence[AgreementRow] = ()
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    protocol: Protocol | None = None
    detection: Sequence[DetectionRow] = ()
    subgroups: Sequence[SubgroupRow] = ()
    details: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    criteria: Sequence[CriterionRow] = ()
    paired: Mapping[str, Paired] = field(default_factory=dict)
    check_line: str = ""
    study: Study = Study()

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


def criterion_rows(scores: Scores, options: AnalysisOptions) -> list[CriterionRow]:
    """Return the jury's agreement on every criterion by itself, on each benchmark and combined.

    Parameters
    ----------
    scores, options
        As for `table.agreement_rows`: the same replicates and seed.

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
    criteria = {name: scores.rubrics[name].criteria for name in scores.benchmarks}
    is_one = options.criterion is not None or all(len(own) == 1 for own in criteria.values())
    if is_one or not scores.raters("juror"):
        return []
    rows: list[CriterionRow] = []
    for name in dict.fromkeys(name for own in criteria.values() for name in own):
        having = [benchmark for benchmark, own in criteria.items() if name in own]
        having += [COMBINED] if len(having) > 1 else []
        try:
            rows += [one for one in _rows_of(scores, options, name) if one.benchmark in having]
        except TooFew:
            why = (undefined("criterion_unrated", "no clinician has rated this criterion"),)
            rows += [CriterionRow(where, "jury", notes=why, criterion=name) for where in having]
    return sorted(rows, key=lambda row: (row.benchmark == COMBINED, row.benchmark))


def _rows_of(scores: Scores, options: AnalysisOptions, criterion: str) -> Iterator[CriterionRow]:
    alone = replace(options, criterion=criterion, further=False)
    points = {
        scope.name: secondary_rows(replace(scope, jurors=(), metrics=()), scores)[0]
        for scope in scopes(scores, alone)
        if scope.jury and not why_undefined_scope(scores, scope)
    }
    for row in agreement_rows(scores, alone):
        if row.scorer == "jury":
            notes = tuple(one for one in row.notes if one.code != "coverage")
            yield of_criterion(replace(row, notes=notes), criterion, points.get(row.benchmark))


def of_criterion(row: AgreementRow, criterion: str, points: Any) -> CriterionRow:
    """Return the jury's row of the table as that of a criterion, with its points of the scale."""
    shown = {name: getattr(points, name) for name in IN_POINTS} if points else {}
    return CriterionRow(**vars(row), **shown, criterion=criterion)


def paired_means(scores: Scores, options: AnalysisOptions) -> Iterator[Paired]:
    """Yield the raw means of clinicians and jury, of each scope where an ICC can be asked for."""
    for scope in scopes(scores, options):
        if scope.jury and not why_undefined_scope(scores, scope):
            raw = columns(scope.grid, scope.jury, "published")
            ids = tuple(scope.grid.responses[index] for index in np.flatnonzero(raw.both))
            yield Paired(scope.name, ids, raw.clinicians[raw.both], raw.scorer[raw.both])
