"""A report in parts, for a page that shows them one by one: verdict, tables, charts as such."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibration.report.content import Content, Costs, Juror, Study, Tried, UsedRubric
from calibration.report.definitions import Fact
from calibration.report.evidence import Paired
from calibration.report.hangs import hangs_on
from calibration.report.ledger_table import juries_tried
from calibration.report.page import in_points, verdicts
from calibration.report.part_charts import Drawn, drawn
from calibration.report.sections import sections
from calibration.report.tables import Table
from calibration.report.verdict import Verdict
from calibration.tables.numbers import simulated_raters


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

    verdicts: Sequence[Verdict]
    points: str
    simulated: Sequence[str]
    tried: int
    told: Sequence[str]
    sections: Sequence[Part]
    charts: Sequence[Drawn] = field(default_factory=list)
    hangs: str = ""


def parts(told: Mapping[str, Any]) -> Parts:
    """Return the parts of a report.

    Parameters
    ----------
    told
        What `calibrate --details --pairs --json` says.
    """
    content = content_of(told)
    found = verdicts(content)
    return Parts(
        found,
        in_points(content, found[-1].benchmark),
        simulated_raters([*content.rows]),
        juries_tried(content.study),
        [*content.study.told],
        [_part(one) for one in sections(content)],
        [*drawn(content)],
        hangs_on(content, found[-1].benchmark),
    )


def content_of(told: Mapping[str, Any]) -> Content:
    """Return a report's content from its JSON."""
    study = dict(told["study"])
    study |= {
        "jurors": [Juror(**one) for one in study["jurors"]],
        "rubrics": [
            UsedRubric(**one | {"criteria": tuple(one["criteria"])}) for one in study["rubrics"]
        ],
        "tried": [Tried(**one | {"jurors": tuple(one["jurors"])}) for one in study["tried"]],
        "costs": Costs(**study["costs"]),
    }
    paired = [
        Paired(
            one["benchmark"],
            tuple(one["responses"]),
            np.array(one["clinicians"], dtype=np.float64),
            np.array(one["jury"], dtype=np.float64),
        )
        for one in told["pairs"]
    ]
    return Content(
        told["rows"],
        told["details"],
        told["criteria"],
        {one.benchmark: one for one in paired},
        Study(**study),
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
