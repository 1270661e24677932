"""The one style of all charts, light and dark; clouds of many responses; and charts as inline SVG."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, TypeAlias

import altair as alt
import numpy as np

from calibration.scores import Array
from data.safe_text import visible

Row: TypeAlias = Mapping[str, Any]
INK, SOFT, GRID, ACCENT = "#1f2328", "#5c636b", "#dfe2e5", "#0072b2"
KINDS = ("jury", "juror", "metric", "clinicians")
COLOURS = (ACCENT, "#56a0cf", "#b35900", "#1f2328")
SHAPES = ("diamond", "circle", "square", "triangle-up")
RAMP = ("#cfe0ee", "#0a4f7d")  # light to dark: it prints in grey
OF_EVERY_OBJECT = {"constructor", "toString", "toLocaleString", "valueOf", "hasOwnProperty"}
OF_EVERY_OBJECT |= {"isPrototypeOf", "propertyIsEnumerable", "__proto__", "__defineGetter__"}
OF_EVERY_OBJECT |= {"__defineSetter__", "__lookupGetter__", "__lookupSetter__"}
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
WIDTH, SIDE, ROW = 460, 300, 22
STYLE: dict[str, Any] = {
    "background": "transparent",
    "font": FONT,
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
    "header": {"labelColor": INK, "labelFontSize": 11, "title": None},
}
LOWEST = -1.0  # to here an interval of an ICC is drawn
MOST_POINTS = 1500  # above it, responses are counted in cells: a page stays small
CELLS = 28
VEGA_LITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
TAG = re.compile(r"<[^>]*>")
ROLES = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
IDENTITY = re.compile(r'( id="|url\(#|href="#)')


def of_rows(values: Sequence[Any]) -> alt.Chart:
    """Return a chart of plain rows, which are all that it carries.

    Of names no sign is left that nobody sees: what draws the charts ends the process at a control.
    Nor is a name one that every object of JavaScript has: Vega finds an operator in its place.
    """
    chart: alt.Chart = alt.Chart(alt.Data(values=[drawable(value) for value in values]))  # type: ignore[no-untyped-call] # altair's own gap
    return chart


def drawable(value: Any) -> Any:
    """Return a row, a list or a text with every sign visible; anything else as it is."""
    if isinstance(value, str):
        return visible(value) + "\N{NO-BREAK SPACE}" * (value in OF_EVERY_OBJECT)
    if isinstance(value, Mapping):
        return {key: drawable(item) for key, item in value.items()}
    return [*map(drawable, value)] if isinstance(value, list) else value


def told_apart(
    field: str, names: Sequence[str], *, colours: Sequence[str], shapes: Sequence[str], **own: Any
) -> dict[str, Any]:
    """Return the channels that tell the names of a field apart, by colour and by shape."""
    scales = {"color": (alt.Color, colours), "shape": (alt.Shape, shapes)}
    return {
        name: channel(field, scale=alt.Scale(domain=list(names), range=list(values)), **own)
        for name, (channel, values) in scales.items()
    }


def cut_below(row: Row, names: Sequence[str], value: str) -> tuple[dict[str, Any], bool]:
    """Return a row as it is drawn, and whether anything of it was cut.

    An ICC has no lower bound: the ends of its interval, `names`, are cut at -1, and a `value`
    below is left out.
    """
    shown = dict(row)
    is_cut = any(shown[name] is not None and shown[name] < LOWEST for name in (names[0], value))
    for name in names:
        shown[name] = max(shown[name], LOWEST) if shown[name] is not None else None
    if shown[value] is not None and shown[value] < LOWEST:
        shown[value] = None
    return shown, is_cut


def zero(axis: str) -> alt.Chart:
    """Return a line at 0 across the x or the y axis."""
    rule: alt.Chart = of_rows([{"zero": 0}]).mark_rule(color=SOFT, strokeWidth=1)
    line: alt.Chart = rule.encode(x="zero:Q") if axis == "x" else rule.encode(y="zero:Q")
    return line


def styled(chart: Any) -> alt.TopLevelMixin:
    """Return a chart in the common style."""
    configured: alt.TopLevelMixin = chart.configure(**STYLE)
    return configured


def styled_as_one(chart: Any) -> alt.TopLevelMixin:
    """Return a chart in the common style, described as a whole and not mark by mark."""
    described: alt.TopLevelMixin = styled(chart).configure_mark(aria=False)
    return described


def is_binned(responses: int) -> bool:
    """Tell whether so many responses are drawn as counts in cells."""
    return responses > MOST_POINTS


def cloud(x: Array, y: Array, on_x: alt.X, on_y: alt.Y) -> alt.Chart:
    """Return places with their counts, or cells where there are too many responses."""
    if is_binned(len(x)):
        return _cells(x, y, on_x, on_y)
    places, counts = np.unique(np.round(np.column_stack([x, y]), 6), axis=0, return_counts=True)
    values = [
        {"x": float(a), "y": float(b), "responses": int(n)}
        for (a, b), n in zip(places, counts, strict=True)
    ]
    most = int(counts.max()) if len(counts) else 1
    size = alt.Size(
        "responses:Q",
        title="Responses",
        scale=alt.Scale(domain=[1, most], range=[22, 22 + 30 * min(most, 12)]),
        legend=alt.Legend(values=sorted({1, (1 + most) // 2, most}), format="d")
        if most > 1
        else None,
    )
    mark = of_rows(values).mark_circle(color=ACCENT, opacity=0.55, stroke=ACCENT, strokeWidth=0.6)
    drawn: alt.Chart = mark.encode(x=on_x, y=on_y, size=size)
    return drawn


def _cells(x: Array, y: Array, on_x: alt.X, on_y: alt.Y) -> alt.Chart:
    counts, across, up = np.histogram2d(x, y, bins=CELLS)
    values = [
        {"x": across[i], "x2": across[i + 1], "y": up[j], "y2": up[j + 1]}
        | {"responses": int(counts[i, j])}
        for i, j in np.argwhere(counts)
    ]
    most = int(counts.max())
    shade = alt.Opacity(
        "responses:Q",
        title="Responses in a cell",
        scale=alt.Scale(domain=[0, most], range=[0.06, 1]),
        legend=alt.Legend(
            values=sorted({1, (1 + most) // 2, most}), symbolType="square", format="d"
        ),
    )
    mark = of_rows(values).mark_rect(color=ACCENT)
    drawn: alt.Chart = mark.encode(x=on_x, x2="x2:Q", y=on_y, y2="y2:Q", opacity=shade)
    return drawn


def axis_ends(values: Any) -> tuple[float, float]:
    """Return the ends of an axis that holds all values with some room."""
    numbers = np.asarray(values, dtype=np.float64)
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0)
    room = 0.05 * (high - low) or 0.5
    return low - room, high + room


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
    plain = TAG.sub(lambda tag: _plain(tag[0], name), drawn)
    element = f'<svg role="img" aria-label="{escape(label)}"'
    return plain.replace("<svg", element, 1).replace(' class="marks"', ' class="plot"', 1)


def _plain(tag: str, name: str) -> str:
    """Return a tag without the parts that would be read out one by one, its ids made its own."""
    return IDENTITY.sub(lambda match: match[0] + name + "-", ROLES.sub("", tag))
