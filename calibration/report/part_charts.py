"""The charts of a report as such, with their captions, for a page that can answer to a click."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.report import charts, figures
from calibration.report.chart_cloud import is_binned
from calibration.report.chart_style import KINDS
from calibration.report.content import Content
from calibration.report.uneven import uneven
from calibration.tables.numbers import fixed, interval, known, marked, place, scorer


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
    rows: Sequence[Mapping[str, Any]] = ()


def drawn(content: Content) -> Iterator[Drawn]:
    """Yield every chart of a report, of the benchmarks whose details it shows."""
    yield from _criteria(content)
    for benchmark in content.shown:
        yield from intervals(content, benchmark)
        yield from _points(content, benchmark)
        yield from _distributions(content, benchmark)
        yield from _influence(content, benchmark)


def intervals(content: Content, benchmark: str) -> Iterator[Drawn]:
    """Yield the chart of every scorer's ICC on one benchmark, or on all combined."""
    rows = [
        {
            "label": marked(scorer(row.scorer), row),
            "kind": str(row.scorer).partition(":")[0],
            "value": row.icc,
            "low": row.boot_low,
            "high": row.boot_high,
        }
        for row in content.rows
        if row.benchmark == benchmark and known(row.icc)
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


def _criteria(content: Content) -> Iterator[Drawn]:
    several = len(content.benchmarks) > 1
    rows = [
        {
            "label": f"{row.criterion}, {place(row.benchmark)}" if several else row.criterion,
            "kind": "jury",
            "value": row.icc,
            "low": row.boot_low,
            "high": row.boot_high,
        }
        for row in content.criteria
        if known(row.icc)
    ]
    if rows:
        made_up = "Simulated. " if any(row.simulated for row in content.criteria) else ""
        yield Drawn(
            "criteria",
            "",
            charts.chart_intervals(rows),
            f"{made_up}The jury's ICC with the clinicians' mean, criterion by criterion.",
            "; ".join(f"{one['label']} {fixed(one['value'])}" for one in rows),
            rows,
        )


def _points(content: Content, benchmark: str) -> Iterator[Drawn]:
    pair = content.paired.get(benchmark)
    if pair is None or not len(pair.jury):
        return
    far = [row for row in content.of("other_measures", benchmark) if row.scorer == "jury"]
    names = ("bias", "limits_low", "limits_high")
    bias, low, high = (
        float(getattr(far[0], name)) if far and known(getattr(far[0], name)) else np.nan
        for name in names
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
        f"{about} Above 0 the jury is more generous. {uneven(content, benchmark)}".strip(),
        "Bland and Altman: jury minus clinicians against the mean of both; "
        f"bias {fixed(bias)}, limits of agreement {interval(low, high) or 'undefined'}",
    )


def _distributions(content: Content, benchmark: str) -> Iterator[Drawn]:
    rows = [
        {
            "label": marked("Clinicians" if row.rater == "clinicians" else scorer(row.rater), row),
            "criterion": row.criterion,
            "counts": row.counts,
        }
        for row in content.of("distributions", benchmark)
        if row.rater != "jury" and row.counts
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
        {"label": label, "kind": kind, "change": row.change}
        for row in figures.influential(content, benchmark)
        for kind, _, label in [row.left_out.partition(":")]
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


def _of(content: Content, benchmark: str) -> str:
    """Return what a caption begins with: whose chart it is, and whether raters are made up."""
    behind = content.about("jury", benchmark)
    made_up = "Simulated. " if any(row.simulated for row in behind) else ""
    return made_up + (f"{place(benchmark)}. " if len(content.benchmarks) > 1 else "")
