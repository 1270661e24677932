"""The report's charts with their captions and what a screen reader is told."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.report import charts
from calibration.report.chart_cloud import is_binned
from calibration.report.chart_style import KINDS
from calibration.report.content import Content
from calibration.report.svg import svg
from calibration.report.uneven import uneven
from calibration.tables.numbers import fixed, interval, known, marked, scorer, whole

MOST_INFLUENTIAL = 8


@dataclass(frozen=True)
class Figure:
    """A chart as SVG and its caption."""

    svg: str
    caption: str


def intervals(content: Content, benchmark: str) -> Iterator[Figure]:
    """Yield jury, jurors, metrics and clinicians side by side."""
    rows = [row for row in content.rows if row.benchmark == benchmark]
    drawn = [_interval(row) for row in rows if _kind(row) in KINDS and known(row.icc)]
    if not drawn:
        return
    missing = [scorer(row.scorer) for row in rows if _undefined(row)]
    caption = (
        "Agreement with the clinicians' mean, ICC(C,2): jury (diamond), single jurors (circles), "
        "metrics (squares). Clinicians by pairs (triangle) are one against one, and so not comparable "
        "with the others."
    )
    cut = [one["label"] for one in drawn if _low(one) < charts.LOWEST]
    if cut:
        caption += f" An arrow head: the interval goes on below {fixed(charts.LOWEST, 0)}."
    if missing:
        caption += f" Undefined, and not drawn: {', '.join(missing)}."
    said = "; ".join(
        f"{one['label']} {fixed(one['value'])} ({interval(one['low'], one['high']) or 'no interval'})"
        for one in drawn
    )
    yield Figure(svg(charts.chart_intervals(drawn), f"i-{benchmark_id(benchmark)}", said), caption)


def points(content: Content, benchmark: str) -> Iterator[Figure]:
    """Yield the two charts in points of the scale: scatter, and Bland and Altman's."""
    pair = content.paired.get(benchmark)
    if pair is None or not len(pair.jury):
        return
    n, name = len(pair.jury), benchmark_id(benchmark)
    far = next((row for row in content.of("other_measures", benchmark) if _is_jury(row)), None)
    bias, low, high = (_float(far, key) for key in ("bias", "limits_low", "limits_high"))
    cells = " Counted in cells of 28 by 28: the darker, the more." if is_binned(n) else ""
    size = "" if cells else " The larger a circle, the more responses lie there."
    scatter = charts.chart_scatter(pair.clinicians, pair.jury)
    said = f"{whole(n)} responses: the jury's mean against the clinicians' mean, in points"
    simulated = _simulated(content, benchmark)
    yield Figure(
        svg(scatter, f"s-{name}", said),
        f"{simulated}{whole(n)} responses, means in points of the scale; on the dashed line jury and clinicians "
        f"are equal.{cells}{size}",
    )
    apart = charts.chart_bland_altman(pair.clinicians, pair.jury, bias, (low, high))
    told = f"bias {fixed(bias)}, limits of agreement {interval(low, high) or 'undefined'}"
    yield Figure(
        svg(apart, f"b-{name}", f"jury minus clinicians against the mean of both, points: {told}"),
        f"{simulated}Bland and Altman: above 0 the jury is more generous than the clinicians. Where differences "
        f"are normal, 95 % of them lie between the two limits.{cells} {uneven(content, benchmark)}".strip(),
    )


def distributions(content: Content, benchmark: str) -> Iterator[Figure]:
    """Yield how clinicians and jurors use the scale."""
    rows = [
        {
            "label": _rater(row),
            "criterion": row.criterion,
            "counts": row.counts,
        }
        for row in content.of("distributions", benchmark)
        if row.rater != "jury" and row.counts
    ]
    if rows:
        said = "share of each score by rater and criterion; the means stand in the JSON"
        yield Figure(
            svg(charts.chart_distributions(rows), f"d-{benchmark_id(benchmark)}", said),
            f"{_simulated(content, benchmark)}Scores as they were given, by criterion: the darker, the higher. Hidden repeats and "
            "replicates count each. Grey: between the points of the scale.",
        )


def influence(content: Content, benchmark: str) -> Iterator[Figure]:
    """Yield what the jury's ICC hangs on."""
    rows = influential(content, benchmark)
    drawn = [
        {"label": row.left_out.partition(":")[2], "kind": row.left_out.partition(":")[0]}
        | {"change": row.change}
        for row in rows
    ]
    if any(known(one["change"]) for one in drawn):
        said = "; ".join(f"{one['label']} {fixed(one['change'], 3)}" for one in drawn)
        yield Figure(
            svg(charts.chart_influence(drawn), f"l-{benchmark_id(benchmark)}", said),
            f"{_simulated(content, benchmark)}Change of the jury's ICC when one response (circle) or one instance with all its "
            "responses (square) is left out; the largest changes.",
        )


def influential(content: Content, benchmark: str) -> list[Any]:
    """Return the rows of the largest changes of the jury's ICC."""
    rows = [row for row in content.of("influence", benchmark) if _is_jury(row) and row.left_out]
    return rows[:MOST_INFLUENTIAL]


def benchmark_id(benchmark: str) -> str:
    """Return a benchmark's name as part of an id: letters and digits only, others by number."""
    return "".join(one if one.isascii() and one.isalnum() else f"_{ord(one)}" for one in benchmark)


def _interval(row: Any) -> dict[str, Any]:
    name = marked(scorer(row.scorer), row)
    ends = {"low": row.boot_low, "high": row.boot_high}
    return {"label": name, "kind": _kind(row), "value": row.icc} | ends


def _rater(row: Any) -> str:
    name = "Clinicians" if row.rater == "clinicians" else scorer(row.rater)
    return marked(name, row)


def _simulated(content: Content, benchmark: str) -> str:
    """Return the word that a caption begins with where raters behind the chart are not real."""
    return "Simulated. " if any(row.simulated for row in content.about("jury", benchmark)) else ""


def _kind(row: Any) -> str:
    return str(row.scorer).partition(":")[0]


def _undefined(row: Any) -> bool:
    return _kind(row) in KINDS and not known(row.icc)


def _low(one: Any) -> float:
    return float(one["low"]) if known(one["low"]) else float(one["value"])


def _is_jury(row: Any) -> bool:
    return bool(row.scorer == "jury")


def _float(row: Any | None, key: str) -> float:
    value: Any = getattr(row, key, None)
    return float(value) if known(value) else np.nan
