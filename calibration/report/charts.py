"""Charts of agreement: rows in, an Altair chart out, in one style.

A chart carries only what it draws, for all it carries travels to the reader; shape and label stand
beside colour.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

import altair as alt
import numpy as np

from calibration.json_values import json_value
from calibration.scores import Array
from data.safe_text import visible

if TYPE_CHECKING:
    from calibration.monitoring import PeriodRow

Row: TypeAlias = Mapping[str, Any]
INK, SOFT, GRID, ACCENT, WARNING = "#1f2328", "#5c636b", "#dfe2e5", "#0072b2", "#b35900"
KINDS = ("jury", "juror", "metric", "clinicians")
COLOURS = (ACCENT, "#56a0cf", WARNING, INK)
SHAPES = ("diamond", "circle", "square", "triangle-up")
OF_PERIODS = {"baseline": "square", "watched": "circle", "too few": "diamond"}
OF_EVERY_OBJECT = {"constructor", "toString", "toLocaleString", "valueOf", "hasOwnProperty"}
OF_EVERY_OBJECT |= {"isPrototypeOf", "propertyIsEnumerable", "__proto__", "__defineGetter__"}
OF_EVERY_OBJECT |= {"__defineSetter__", "__lookupGetter__", "__lookupSetter__"}
WIDTH, SIDE, ROW = 460, 300, 22
STYLE: dict[str, Any] = {
    "background": "transparent",
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": SOFT,
        "gridColor": GRID,
        "domainColor": SOFT,
        "tickColor": SOFT,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelLimit": 260,
        "tickCount": 6,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": SOFT,
        "titleFontWeight": "normal",
        "symbolType": "circle",
        "orient": "bottom",
        "labelLimit": 160,
    },
    "mark": {"aria": False},
}
LOWEST = -1.0  # to here an interval of an ICC is drawn
MOST_PLACES = 1500  # above it, responses are put together on a grid: a page stays small
STEPS = 40
VEGA_LITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
TAG = re.compile(r"<[^>]*>")
ROLES = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
IDENTITY = re.compile(r'( id="|url\(#|href="#)')


def chart_intervals(rows: Sequence[Row], title: str = "ICC(C,2), 95 %") -> alt.TopLevelMixin:
    """Draw figures and their intervals side by side, in the order given.

    Parameters
    ----------
    rows : mappings with `label`, `kind` (of KINDS), `value`, `low`, `high`
        Undefined numbers are None or NaN and leave a gap, never a 0. An end below -1 is drawn
        as a cut, marked by an arrow head.
    """
    base = of_rows(_cut(row, "label", "kind") for row in rows)
    base = base.properties(width=WIDTH, height=alt.Step(ROW))
    y = alt.Y("label:N", sort=None, title=None)
    x = alt.X("low:Q", title=title, scale=alt.Scale(zero=False, nice=True))
    color = alt.Color(
        "kind:N", scale=alt.Scale(domain=list(KINDS), range=list(COLOURS)), legend=None
    )
    shape = alt.Shape(
        "kind:N", scale=alt.Scale(domain=list(KINDS), range=list(SHAPES)), legend=None
    )
    points = base.mark_point(filled=True, opacity=1, size=80)
    heads = base.transform_filter("datum.is_cut").mark_point(
        filled=True, opacity=1, shape="triangle-left", size=42
    )
    return styled(
        of_rows([{"zero": 0}]).mark_rule(color=SOFT, strokeWidth=1).encode(x="zero:Q")
        + base.mark_rule(strokeWidth=1.6).encode(x=x, x2="high:Q", y=y, color=color)
        + points.encode(x="value:Q", y=y, color=color, shape=shape)
        + heads.encode(x="low:Q", y=y, color=color)
    )


def chart_scatter(clinicians: Array, jury: Array) -> alt.TopLevelMixin:
    """Draw the jury's means against the clinicians', in points, with the line of equality.

    Both have shape (n,) without NaN. Each place has a circle, larger where several responses
    lie; of more than 1,500 responses those that lie within a fortieth of the range are one place,
    and its `near` is half of that in points.
    """
    points = np.column_stack([clinicians, jury])
    low, high = (float(points.min()), float(points.max())) if len(points) else (0.0, 1.0)
    room = 0.05 * (high - low) or 0.5
    step = (high - low) / STEPS if len(points) > MOST_PLACES else 0.0
    rounded = np.round(np.round(points / step) * step if step else points, 6)
    places, counts = np.unique(rounded, axis=0, return_counts=True)
    near = {"near": step / 2} if step else {}
    values = [
        {"x": float(a), "y": float(b), "responses": int(n)} | near
        for (a, b), n in zip(places, counts, strict=True)
    ]
    most = int(counts.max(initial=1))
    size = alt.Size(
        "responses:Q",
        title="Responses",
        scale=alt.Scale(domain=[1, most], range=[22, 22 + 30 * min(most, 12)]),
        legend=alt.Legend(values=sorted({1, (1 + most) // 2, most}), format="d")
        if most > 1
        else None,
    )
    scale = alt.Scale(domain=[low - room, high + room], nice=False)
    x = alt.X("x:Q", title="Clinicians' mean, points", scale=scale)
    y = alt.Y("y:Q", title="Jury's mean, points", scale=scale)
    equal = of_rows({"a": end} for end in (low - room, high + room))
    line = equal.mark_line(color=SOFT, strokeDash=[4, 3], strokeWidth=1)
    circles = of_rows(values).mark_circle(
        color=ACCENT, opacity=0.55, stroke=ACCENT, strokeWidth=0.6
    )
    drawn = line.encode(x=alt.X("a:Q", scale=scale), y=alt.Y("a:Q", scale=scale)) + circles.encode(
        x=x, y=y, size=size
    )
    return styled(drawn.properties(width=SIDE, height=SIDE))


def chart_periods(periods: Sequence["PeriodRow"], floor: float, target: float) -> alt.TopLevelMixin:
    """Draw the ICC of every period with its interval, the floor, and the target.

    Periods are in their order; what is undefined leaves a gap. `target` is NaN where there is none.
    """
    rows = []
    for row in periods:
        kind = "too few" if row.too_few else "baseline" if row.role == "baseline" else "watched"
        figures = {"value": row.icc, "low": row.low, "high": row.high}
        rows.append(_cut({"period": row.period, "kind": kind} | figures, "period", "kind"))
    ends = [row[name] for row in rows for name in ("low", "value") if row[name] is not None]
    low = max(LOWEST, math.floor(min([*ends, floor, 0.0]) * 5 - 0.25) / 5)
    scale = alt.Scale(domain=[low, 1.05], nice=False)
    x = alt.X("period:N", sort=None, title=None, axis=alt.Axis(labelAngle=0, labelLimit=110))
    y = alt.Y("low:Q", title="ICC(C,2), 95 %", scale=scale)
    there = [kind for kind in OF_PERIODS if any(row["kind"] == kind for row in rows)]
    shapes = alt.Scale(domain=there, range=[OF_PERIODS[kind] for kind in there])
    base = of_rows(rows).properties(width=560, height=210)
    point = base.mark_point(filled=True, size=70, color=ACCENT, opacity=1)
    drawn = (
        base.mark_rule(strokeWidth=1.6, color=ACCENT).encode(x=x, y=y, y2="high:Q")
        + base.mark_line(strokeWidth=1, color=SOFT).encode(x=x, y="value:Q")
        + point.encode(x=x, y="value:Q", shape=alt.Shape("kind:N", title=None, scale=shapes))
    )
    for name, at, color, dash, away in (
        ("floor", floor, WARNING, [6, 4], 10),
        ("target", target, INK, [1, 3], -7),
    ):
        if not math.isfinite(at):
            continue  # a mark of nothing has no name for who cannot see it
        level = of_rows([{"at": at, "words": f"{name} {at:.2f}"}])
        words = level.mark_text(align="left", dx=6, dy=away, color=color, fontSize=11)
        drawn += level.mark_rule(color=color, strokeDash=dash, strokeWidth=1.3).encode(y="at:Q")
        drawn += words.encode(x=alt.value(0), y="at:Q", text="words:N")
    return styled(drawn)


def of_rows(values: Iterable[Row]) -> alt.Chart:
    """Return a chart of plain rows, which are all that it carries.

    Of names no sign is left that nobody sees: what draws the charts ends the process at a control.
    Nor is a name one that every object of JavaScript has: Vega finds an operator in its place.
    """
    shown = [
        {
            key: visible(value) + "\N{NO-BREAK SPACE}" * (value in OF_EVERY_OBJECT)
            if isinstance(value, str)
            else value
            for key, value in row.items()
        }
        for row in values
    ]
    chart: alt.Chart = alt.Chart(alt.Data(values=shown))  # type: ignore[no-untyped-call] # altair's own gap
    return chart


def _cut(row: Row, *labels: str) -> dict[str, Any]:
    """Return a row as it is drawn: its interval cut at -1, a value below that left out."""
    value, low, high = (json_value(row[name]) for name in ("value", "low", "high"))
    is_cut = any(end is not None and end < LOWEST for end in (low, value))
    low, high = (None if end is None else max(end, LOWEST) for end in (low, high))
    value = None if value is not None and value < LOWEST else value
    figures = {"value": value, "low": low, "high": high, "is_cut": is_cut}
    return {name: row[name] for name in labels} | figures


def styled(chart: Any) -> alt.TopLevelMixin:
    """Return a chart in the common style, described as a whole and not mark by mark."""
    configured: alt.TopLevelMixin = chart.configure(**STYLE)
    return configured


def svg(chart: Any, name: str = "chart", label: str = "") -> str:
    """Return a chart as one <svg> element to stand in a page.

    Parameters
    ----------
    chart : altair chart
    name : str
        Prefix of its ids, so that the charts of one page do not use each other's.
    label : str
        Text for screen readers; the element is one image.
    """
    import vl_convert

    drawn = str(vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=VEGA_LITE))
    plain = TAG.sub(
        lambda tag: IDENTITY.sub(lambda match: f"{match[0]}{name}-", ROLES.sub("", tag[0])), drawn
    )
    element = f'<svg role="img" aria-label="{escape(label)}"'
    return plain.replace("<svg", element, 1).replace(' class="marks"', ' class="plot"', 1)
