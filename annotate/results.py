"""Types of what screens show: texts, tables and charts, light enough for the server to import."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibration.decision import Decision
from calibration.notes import Note
from calibration.routing import RouteQuestion
from calibration.tables.errors import BenchmarkErrors
from calibration.tables.models import ModelRow
from calibration.tables.spec import Table
from calibration.values import AnalysisOptions, PlanOptions

MOST_JURIES = 100  # rows of a ranking that a screen shows
Fact = tuple[str, str]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AgreementQuestion:
    """What the agreement screen asks: how to analyse, and a panel's families by juror."""

    options: AnalysisOptions
    families: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as a Vega-Lite specification, with its words and the rows that it shows."""

    name: str
    benchmark: str
    spec: Mapping[str, Any]
    caption: str
    alt: str
    rows: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a report: how to read it, its tables, its facts."""

    number: str
    title: str
    lead: str
    tables: Sequence[Table]
    facts: Sequence[Fact]


@dataclass(frozen=True, slots=True)
class Pair:
    """The means of clinicians and jury on the responses of a benchmark that have both, in points."""

    benchmark: str
    responses: tuple[str, ...]
    clinicians: tuple[float, ...]
    jury: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What agreement is known first: the decision, the table, and its chart.

    `table` is of all benchmarks combined, or the only one; `each` of all, one by one, where there
    are several; `raters` has each clinician.
    """

    decision: Decision
    table: Table
    charts: Sequence[Chart]
    jury: tuple[str, ...]
    simulated: tuple[str, ...]
    told: tuple[str, ...]
    each: Table | None = None
    raters: Table | None = None


@dataclass(frozen=True, slots=True)
class HomeFigures:
    """What the first screen waits for: the decision, and the answers of two steps, None without any."""

    decision: Decision
    clinicians: Note | None = None
    jury: Note | None = None


@dataclass(frozen=True, slots=True)
class Behind:
    """What stands behind the answer: sections, charts, pairs of means.

    `checked` says how far pingouin's ICCs are from those of the table.
    """

    tried: int
    checked: str
    sections: Mapping[str, Section]
    charts: Sequence[Chart]
    pairs: Sequence[Pair]


@dataclass(frozen=True)
class ModelsFigures:
    """A comparison as the screen shows it.

    `models` has first the rows by the way of scoring that decides, `differences` those alone.
    """

    decision: Decision
    models: Table
    differences: Table | None
    rows: tuple[ModelRow, ...]


@dataclass(frozen=True, slots=True)
class CostsRequest:
    """What costs are asked for: the reader's file, unread, whose kind is "csv" or "toml"."""

    text: bytes
    kind: str


@dataclass(frozen=True, slots=True)
class MonitoringAnswer:
    """What monitoring knows first: the decision, the chart, and the periods."""

    decision: Decision
    chart: Chart
    periods: Table
    jury: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MonitoringBehind:
    """What a change may come from: in sentences, and in tables; and when jurors' models end."""

    said: tuple[str, ...]
    tables: Sequence[Table]
    jurors: Table
    anchored: bool


@dataclass(frozen=True)
class ShownRanking:
    """A ranking of juries for its screen.

    Attributes
    ----------
    decision : which jury to take
    jurors : of the jury that the decision names; () where it names none
    by_size, ranking, front : the best of each size, the first `MOST_JURIES`, the best for their cost
    notes : what must be known beside the tables
    without_cost : how many juries are of unknown cost
    csv : every jury
    """

    decision: Decision
    jurors: tuple[str, ...]
    by_size: Table
    ranking: Table
    front: Table
    notes: tuple[str, ...]
    without_cost: int
    csv: str


@dataclass(frozen=True)
class ShownComparison:
    """Two juries for their screen; `told` is what every report owes its reader."""

    decision: Decision
    table: Table
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """What is planned: from an ICC(C,2) that is assumed, or where it is None from the study's ratings."""

    options: PlanOptions
    icc: float | None = None
    benchmark: str | None = None


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """A plan's tables, and its sentences for a protocol."""

    tables: tuple[Table, ...]
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PredictionsQuestion:
    """What is predicted, and at what level its intervals are."""

    options: AnalysisOptions
    level: float = 0.9


@dataclass(frozen=True, slots=True)
class PredictionsAnswer:
    """Whether predictions may be used, their tables, what a report owes its reader, and the CSV."""

    decision: Decision
    tables: tuple[Table, ...]
    told: tuple[str, ...]
    csv: bytes


@dataclass(frozen=True, slots=True)
class RoutingAnswer:
    """What came of routing: in a sentence, the rule, what is to be known, a row a response as CSV.

    `fingerprint` is of the ratings that it comes from.
    """

    is_certified: bool
    headline: str
    table: Table
    told: tuple[str, ...]
    csv: bytes
    is_simulated: bool
    fingerprint: str


@dataclass(frozen=True, slots=True)
class RuleToKeep:
    """Who keeps the rule that a question leads to, under which name, as shown of which ratings.

    `actor` is how the record names who keeps it.
    """

    actor: str
    name: str
    question: RouteQuestion
    fingerprint: str


@dataclass(frozen=True, slots=True)
class RulesAsked:
    """The rules that are kept are asked for, with the names of those who keep them by the record's."""

    people: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RulesAnswer:
    """The names of the rules that are kept, the newest first, and what each was certified for."""

    names: tuple[str, ...]
    table: Table


@dataclass(frozen=True, slots=True)
class RoutedByQuestion:
    """By which kept rule every response is routed."""

    name: str


@dataclass(frozen=True, slots=True)
class RoutedByAnswer:
    """What a kept rule makes of every response, what is no longer as it was certified, and the CSV."""

    headline: str
    told: tuple[str, ...]
    changed: str
    is_simulated: bool
    csv: bytes


@dataclass(frozen=True, slots=True)
class PointsAsked:
    """Agreement on points of the case is asked for, on one benchmark or all."""

    options: AnalysisOptions


@dataclass(frozen=True, slots=True)
class ErrorsAsked:
    """Errors are asked for, on one benchmark or all, by which jury, with so many examples a reason."""

    benchmark: str | None = None
    jurors: tuple[str, ...] | None = None
    criterion: str | None = None
    per_group: int = 3


@dataclass(frozen=True, slots=True)
class ErrorsAnswer:
    """Each benchmark's errors and examples, which hold clinicians' words, and what is to be known.

    `simulated` names the raters that are; `csv` has a row an example.
    """

    benchmarks: tuple[BenchmarkErrors, ...]
    simulated: tuple[str, ...]
    told: tuple[str, ...]
    csv: bytes


@dataclass(frozen=True, slots=True)
class MeasureQuestion:
    """The metrics that are to score every response against its reference."""

    metrics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Whole:
    """The whole of a study is asked for."""


@dataclass(frozen=True, slots=True)
class BackupQuestion:
    """Where on the server a backup is written."""

    place: str
