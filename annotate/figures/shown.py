"""What the screens of figures are handed: texts, tables and charts, light enough for the server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibration.decision import Decision
from calibration.tables.spec import Table
from calibration.values import AnalysisOptions

Fact = tuple[str, str]


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
    """What agreement is known first: the decision, the table, and its chart."""

    decision: Decision
    table: Table
    charts: Sequence[Chart]
    jury: tuple[str, ...]
    simulated: tuple[str, ...]
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Behind:
    """What stands behind the answer: points of the scale, sections, charts, pairs of means."""

    points: str
    hangs: str
    tried: int
    sections: Mapping[str, Section]
    charts: Sequence[Chart]
    pairs: Sequence[Pair]


@dataclass(frozen=True, slots=True)
class MonitoringAnswer:
    """What monitoring knows first: the decision, the charts, and the periods."""

    decision: Decision
    charts: Sequence[Chart]
    periods: Table
    jury: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MonitoringBehind:
    """What a change may come from: in sentences, and in tables; and when jurors' models end."""

    said: tuple[str, ...]
    tables: Sequence[Table]
    jurors: Table
    anchored: bool
