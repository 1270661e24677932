"""A report in parts, for a page that shows them one by one: verdict, tables, charts as such."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibration.report import charts, figures
from calibration.report.chart_cloud import is_binned
from calibration.report.chart_style import KINDS
from calibration.report.content import Content, Costs, Juror, Row, Study, Tried, UsedRubric
from calibration.report.definitions import Fact
from calibration.report.evidence import Paired
from calibration.report.ledger_table import juries_tried
from calibration.report.numbers import fixed, interval, is_simulated, known, scorer
from calibration.report.numbers import simulated_raters as simulated
from calibration.report.page import in_points, verdicts
from calibration.report.sections import sections
from calibration.report.tables import Table, place
from calibration.report.verdict import Verdict


@dataclass(frozen=True)
class Drawn:
    """A chart, whose benchmark it is, and what is said of it under it and to who cannot see it.

    `rows` are the figures that it shows.
    """

    name: str
    benchmark: str
    chart: Any
    caption: str
    alt: str
    rows: Sequence[Row] = ()


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
    """All that a page shows; `tried` is how many different juries were ever looked at."""

    verdicts: Sequence[Verdict]
    points: str
    simulated: Sequence[str]
    tried: int
    told: Sequence[str]
    sections: Sequence[Part]
    charts: Sequence[Drawn] = field(default_factory=list)


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
        simulated([*content.rows]),
        juries_tried(content.study),
        [*content.study.told],
        [_part(one) for one in sections(content)],
        [*_drawn(content)],
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


def _drawn(content: Content) -> Iterator[Drawn]:
    for benchmark in content.shown:
        yield from _intervals(content, benchmark)
        yield from _points(content, benchmark)
        yield from _distributions(content, benchmark)
        yield from _influence(content, benchmark)


def _intervals(content: Content, benchmark: str) -> Iterator[Drawn]:
    rows = [
        {
            "label": _named(row, scorer(row["scorer"])),
            "kind": str(row["scorer"]).partition(":")[0],
            "value": row["icc"],
            "low": row["boot_low"],
            "high": row["boot_high"],
        }
        for row in content.rows
        if row["benchmark"] == benchmark and known(row["icc"])
    ]
    rows = [row for row in rows if row["kind"] in KINDS]
    if rows:
        said = "; ".join(
            f"{one['label']} {fixed(one['value'])} ({interval(one['low'], one['high']) or 'no interval'})"
            for one in rows
        )
        yield Drawn(
            "intervals",
            benchmark,
            charts.chart_intervals(rows),
            f"{_of(content, benchmark)}ICC with the clinicians' mean: jury (diamond), single jurors (circles), metrics "
            "(squares). Clinicians by pairs (triangle) are one against one: not comparable with "
            "the others; like for like is.",
            f"Agreement with the clinicians' mean, ICC and 95 % interval: {said}",
            rows,
        )


def _points(content: Content, benchmark: str) -> Iterator[Drawn]:
    pair = content.paired.get(benchmark)
    if pair is None or not len(pair.jury):
        return
    far = [row for row in content.of("other_measures", benchmark) if row["scorer"] == "jury"]
    names = ("bias", "limits_low", "limits_high")
    bias, low, high = (
        float(far[0][name]) if far and known(far[0][name]) else np.nan for name in names
    )
    drawn = "counted in cells" if is_binned(len(pair.jury)) else "larger where several lie"
    about = f"{_of(content, benchmark)}{len(pair.jury):,} responses, {drawn}; click on one to see which."
    yield Drawn(
        "scatter",
        benchmark,
        charts.chart_scatter(pair.clinicians, pair.jury),
        f"{about} On the dashed line jury and clinicians are equal.",
        "The jury's mean against the clinicians' mean of each response, in points of the scale",
    )
    yield Drawn(
        "difference",
        benchmark,
        charts.chart_bland_altman(pair.clinicians, pair.jury, bias, (low, high)),
        f"{about} Above 0 the jury is more generous.",
        "Bland and Altman: jury minus clinicians against the mean of both; "
        f"bias {fixed(bias)}, limits of agreement {interval(low, high) or 'undefined'}",
    )


def _distributions(content: Content, benchmark: str) -> Iterator[Drawn]:
    rows = [
        {
            "label": _named(
                row, "Clinicians" if row["rater"] == "clinicians" else scorer(row["rater"])
            ),
            "criterion": row["criterion"],
            "counts": row["counts"],
        }
        for row in content.of("distributions", benchmark)
        if row["rater"] != "jury" and row["counts"]
    ]
    if rows:
        yield Drawn(
            "scale",
            benchmark,
            charts.chart_distributions(rows),
            f"{_of(content, benchmark)}Scores as they were given, by criterion: the darker, the higher. "
            "Hidden repeats and replicates count each.",
            "Share of each score by rater and criterion",
            [{**row, "counts": ""} | dict(row["counts"]) for row in rows],
        )


def _influence(content: Content, benchmark: str) -> Iterator[Drawn]:
    rows = [
        {"label": label, "kind": kind, "change": row["change"]}
        for row in figures.influential(content, benchmark)
        for kind, _, label in [row["left_out"].partition(":")]
    ]
    if any(known(one["change"]) for one in rows):
        yield Drawn(
            "influence",
            benchmark,
            charts.chart_influence(rows),
            f"{_of(content, benchmark)}Change of the jury's ICC when one response (circle) or one instance (square) "
            "is left out; the largest changes.",
            "; ".join(f"{one['label']} {fixed(one['change'], 3)}" for one in rows),
            rows,
        )


def _named(row: Row, name: str) -> str:
    return f"{name} (simulated)" if is_simulated(row) else name


def _of(content: Content, benchmark: str) -> str:
    """Return what a caption begins with: whose chart it is, and whether raters are made up."""
    behind = content.about("jury", benchmark)
    made_up = "Simulated. " if any(map(is_simulated, behind)) else ""
    return made_up + (f"{place(benchmark)}. " if len(content.benchmarks) > 1 else "")
