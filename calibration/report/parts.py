"""A report in parts, for a page that shows them one by one: verdict, tables, charts as such."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calibration.decision import Decision
from calibration.report.content import Content
from calibration.report.definitions import Fact
from calibration.report.hangs import hangs_on
from calibration.report.ledger_table import juries_tried
from calibration.report.page import in_points
from calibration.report.part_charts import Drawn, drawn
from calibration.report.sections import sections
from calibration.tables.spec import Table
from calibration.values import simulated_in


@dataclass(frozen=True)
class Part:
    """A section of a report without its charts."""

    number: str
    title: str
    lead: str
    tables: Sequence[Table]
    facts: Sequence[Fact]


@dataclass(frozen=True)
class Parts:
    """All that a page shows; `tried` is how many different juries were ever looked at.

    `hangs` is a line on what the verdict's figure hangs on, with commands in backquotes.
    """

    decisions: Mapping[str, Decision]
    points: str
    simulated: Sequence[str]
    tried: int
    told: Sequence[str]
    sections: Sequence[Part]
    charts: Sequence[Drawn] = field(default_factory=list)
    hangs: str = ""


def parts(content: Content) -> Parts:
    """Return the parts of a report."""
    last = content.benchmarks[-1]
    return Parts(
        content.decisions,
        in_points(content, last),
        simulated_in(content.rows),
        juries_tried(content.study),
        [*content.study.told],
        [_part(one) for one in sections(content)],
        [*drawn(content)],
        hangs_on(content, last),
    )


def _part(section: Any) -> Part:
    held = [one for one in section.blocks if isinstance(one, Table)]
    facts = [
        fact
        for one in section.blocks
        if isinstance(one, list | tuple)
        for fact in (one if isinstance(one, list) else [one])
        if isinstance(fact, tuple) and all(isinstance(word, str) for word in fact)
    ]
    return Part(section.number, section.title, section.lead, held, facts)
