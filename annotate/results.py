"""Types of what screens show: texts, tables and charts, light enough for the server to import."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibration.decision import Decision
from calibration.notes import Note
from calibration.tables.models import ModelRow
from calibration.tables.spec import Table
from calibration.values import AnalysisOptions

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
