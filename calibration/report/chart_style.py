"""The one style of all charts, on paper and on the screen, light and dark.

The colours are those of Okabe & Ito (2008), which readers with any common colour blindness can
tell apart; no chart needs them, for kinds differ in shape too. The page's style sheet turns INK,
SOFT and GRID to their dark counterparts by these very values.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from data.safe_text import visible

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


def of_rows(values: Sequence[Any]) -> alt.Chart:
    """Return a chart of plain rows, which are all that it carries.

    Of names no sign is left that nobody sees: what draws the charts ends the process at a control.
    Nor is a name one that every object of JavaScript has: Vega finds an operator in its place.
    """
    chart: alt.Chart = alt.Chart(alt.Data(values=[drawable(one) for one in values]))  # type: ignore[no-untyped-call] # altair's own gap
    return chart


def drawable(value: Any) -> Any:
    """Return a row, a list or a text with every sign visible; anything else as it is."""
    if isinstance(value, str):
        return visible(value) + "\N{NO-BREAK SPACE}" * (value in OF_EVERY_OBJECT)
    if isinstance(value, Mapping):
        return {key: drawable(one) for key, one in value.items()}
    return [*map(drawable, value)] if isinstance(value, list) else value


def zero(axis: str) -> alt.Chart:
    """Return a line at 0 across the x or the y axis."""
    rule: alt.Chart = of_rows([{"zero": 0}]).mark_rule(color=SOFT, strokeWidth=1)
    found: alt.Chart = rule.encode(x="zero:Q") if axis == "x" else rule.encode(y="zero:Q")
    return found


def styled(chart: Any) -> alt.TopLevelMixin:
    """Return a chart in the common style."""
    found: alt.TopLevelMixin = chart.configure(**STYLE)
    return found
