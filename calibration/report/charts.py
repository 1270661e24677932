"""Charts of agreement, of juries and of models: rows in, an Altair chart out, in one style.

Rows are plain mappings. A chart carries only what it draws, for all it carries travels to the reader;
shape and label stand beside colour.
"""

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Literal, TypeAlias

import altair as alt
import numpy as np

from calibration.json_values import json_value
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
BETWEEN = "between"
JURY_WIDTH, JURY_HEIGHT = 620, 300
FAINT = 0.35
NAME_AWAY, NAME_BELOW, NAME_LIMIT = 8, 12, 320  # pixels
WAYS = ("clinicians", "jury", "corrected", "paper")
WAY_COLOURS = (INK, ACCENT, "#b35900", "#4d7f3f")
WAY_SHAPES = ("triangle-up", "circle", "diamond", "square")
RANKING_WIDTH, LANE, CELL = 520, 15, 30
# The share of the range from which words are white: both kinds then stand out by 4.5 to 1.
DARK, BLACK = 0.695, "#000000"
ROOM = 1.15


def chart_intervals(rows: Sequence[Row], title: str = "ICC(C,2), 95 %") -> alt.TopLevelMixin:
    """Draw figures and their intervals side by side, in the order given.

    Parameters
    ----------
    rows : mappings with `label`, `kind` (of KINDS), `value`, `low`, `high`
        Undefined numbers are None or NaN and leave a gap, never a 0. An end below -1 is drawn
        as a cut, marked by an arrow head.
    """
    shown = []
    for row in rows:
        drawn = {name: row[name] for name in ("label", "kind")}
        drawn |= {name: json_value(row[name]) for name in ("value", "low", "high")}
        cut, is_cut = cut_below(drawn, ("low", "high"), "value")
        shown.append(cut | {"is_cut": is_cut})
    y = alt.Y("label:N", sort=None, title=None)
    base = of_rows(shown).properties(width=WIDTH, height=alt.Step(ROW))
    own = told_apart("kind:N", KINDS, colours=COLOURS, shapes=SHAPES, legend=None)
    line = spans(base, title, y=y, color=own["color"])
    heads = base.transform_filter("datum.is_cut")
    head = marks(heads, shape="triangle-left", size=42).encode(x="low:Q", y=y, color=own["color"])
    return styled(zero("x") + line + marks(base, size=80).encode(x="value:Q", y=y, **own) + head)


def spans(base: alt.Chart, title: str, color: Any = None, **on: Any) -> alt.Chart:
    """Return the intervals of rows, `low` to `high`, as lines along x, whose title this is."""
    x = alt.X("low:Q", title=title, scale=alt.Scale(zero=False, nice=True))
    own = {"color": color} if color is not None else {}
    line: alt.Chart = base.mark_rule(strokeWidth=1.6).encode(x=x, x2="high:Q", **own, **on)
    return line


def marks(base: alt.Chart, **own: Any) -> alt.Chart:
    """Return a chart that marks its rows by filled points."""
    points: alt.Chart = base.mark_point(filled=True, opacity=1, **own)
    return points


def chart_scatter(clinicians: Array, jury: Array) -> alt.TopLevelMixin:
    """Draw the jury's means against the clinicians', in points, with the line of equality.

    Both have shape (n,) without NaN. Up to 1,500 responses each place has a circle, larger
    where several responses lie; above, responses are counted in 28 x 28 cells.
    """
    both = axis_ends(np.concatenate([clinicians, jury]))
    scale = alt.Scale(domain=both, nice=False)
    x = alt.X("x:Q", title="Clinicians' mean, points", scale=scale)
    y = alt.Y("y:Q", title="Jury's mean, points", scale=scale)
    ends = [{"a": end} for end in both]
    equal = of_rows(ends).mark_line(color=SOFT, strokeDash=[4, 3], strokeWidth=1)
    line = equal.encode(x=alt.X("a:Q", scale=scale), y=alt.Y("a:Q", scale=scale))
    return styled(line + cloud(clinicians, jury, x, y)).properties(width=SIDE, height=SIDE)


def chart_bland_altman(
    clinicians: Array, jury: Array, bias: float, limits: tuple[float, float]
) -> alt.TopLevelMixin:
    """Draw jury minus clinicians against the mean of both, with bias and limits of agreement.

    Columns as in `chart_scatter`; `bias` and `limits` in points, NaN where undefined: then
    their lines are left out.
    """
    gap = jury - clinicians
    named = [("bias", bias), ("lower limit", limits[0]), ("upper limit", limits[1])]
    lines = [
        {"at": value, "name": f"{name} {value:+.2f}".replace("-", "\N{MINUS SIGN}")}
        for name, value in named
        if np.isfinite(value)
    ]
    every = [*gap, *(one["at"] for one in lines), 0.0]
    x = alt.X("x:Q", title="Mean of both, points", scale=alt.Scale(zero=False))
    scale = alt.Scale(domain=axis_ends(every))
    y = alt.Y("y:Q", title="Jury minus clinicians, points", scale=scale)
    base = of_rows(lines)
    rules = base.mark_rule(color=INK, strokeDash=[5, 3]).encode(y="at:Q")
    words = base.mark_text(align="left", baseline="middle", dx=5, color=INK, fontSize=10.5)
    named_lines = rules + words.encode(x=alt.value(SIDE), y="at:Q", text="name:N")
    drawn = zero("y") + cloud((jury + clinicians) / 2, gap, x, y) + named_lines
    return styled(drawn).properties(width=SIDE, height=SIDE)


def chart_distributions(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Draw how often each point of the scale was given: a bar a rater, a column a criterion.

    Parameters
    ----------
    rows : mappings with `label`, `criterion` and `counts` (point -> how often; "between" for
        scores that are on no point). A rater without scores has no bar.
    """
    rows = drawable([*rows])
    shares = [
        {"label": row["label"], "criterion": row["criterion"], "point": point, "order": place}
        | {"share": count / sum(row["counts"].values())}
        for row in rows
        for place, (point, count) in enumerate(row["counts"].items())
        if count
    ]
    points = list(dict.fromkeys(point for row in rows for point in row["counts"]))
    used = [one for one in points if any(share["point"] == one for share in shares)]
    colours = [SOFT if one == BETWEEN else ramp(place, points) for place, one in enumerate(points)]
    domain = [one for one in points if one != BETWEEN or one in used]
    names = list(dict.fromkeys(row["criterion"] for row in rows))
    bars = of_rows(shares).mark_bar(stroke="#ffffff", strokeWidth=0.6)
    drawn = bars.encode(
        x=alt.X("share:Q", title=None, axis=alt.Axis(format="%", tickCount=3), stack="zero"),
        y=alt.Y("label:N", sort=list(dict.fromkeys(row["label"] for row in rows)), title=None),
        color=alt.Color(
            "point:O",
            title="Score",
            sort=domain,
            scale=alt.Scale(domain=domain, range=colours[: len(domain)]),
            legend=alt.Legend(symbolType="square", columns=12),
        ),
        order="order:Q",
    )
    width = max(90, 520 // max(len(names), 1) - 20)
    sized = drawn.properties(width=width, height=alt.Step(ROW))
    return styled(sized.facet(column=alt.Column("criterion:N", sort=names, title=None), spacing=14))


def ramp(place: int, points: Sequence[str]) -> str:
    """Return the colour of a point of the scale: the higher, the darker."""
    steps = max(len([one for one in points if one != BETWEEN]) - 1, 1)
    ends = [[int(one[k : k + 2], 16) for k in (1, 3, 5)] for one in RAMP]
    mixed = [
        round(low + (high - low) * place / steps)
        for low, high in zip(ends[0], ends[1], strict=True)
    ]
    return "#" + "".join(f"{min(max(one, 0), 255):02x}" for one in mixed)


def chart_jury_costs(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Draw every jury by what a response costs and how well it agrees; the best value stands out.

    Parameters
    ----------
    rows : mappings with `jury`, `usd`, `icc`, `low`, `high`, `on_front`, `made_up`
        Of known cost and ICC. The front has its intervals, a line through it and its juries'
        names; it differs from the rest in shape, and the rest is faint. Where any price is made up, the axis says so.
    """
    made_up = ", made up" if any(row["made_up"] for row in rows) else ""
    every = [{name: row[name] for name in ("jury", "usd", "icc")} for row in rows]
    names = ("jury", "usd", "icc", "low", "high")
    front = [{name: row[name] for name in names} for row in rows if row["on_front"]]
    costs = alt.Axis(format="$~g")
    x = alt.X("usd:Q", title=f"Cost of a response, US dollars{made_up}", axis=costs)
    y = alt.Y("icc:Q", title="ICC(C,2) with the clinicians", scale=alt.Scale(zero=False))
    tooltip = [
        alt.Tooltip("jury:N", title="Jury"),
        alt.Tooltip("icc:Q", title="ICC(C,2)", format=".3f"),
        alt.Tooltip("usd:Q", title="US dollars", format="$.4f"),
    ]
    at = {"x": "usd:Q", "y": "icc:Q"}
    best = of_rows(front)
    others = of_rows(every).mark_circle(size=30, color=SOFT, opacity=FAINT)
    drawn = (
        others.encode(x=x, y=y, tooltip=tooltip)
        + best.mark_line(interpolate="step-after", color=ACCENT, strokeWidth=1.2).encode(**at)
        + best.mark_rule(color=INK, strokeWidth=1).encode(x="usd:Q", y="low:Q", y2="high:Q")
        + marks(best, shape="diamond", size=90, color=ACCENT).encode(**at, tooltip=tooltip)
    )
    # Names are written towards the middle, below and above their line: they cannot meet.
    amounts = [row["usd"] for row in front]
    middle = (min(amounts) + max(amounts)) / 2 if front else 0
    sides: dict[Literal["left", "right"], tuple[int, int]]
    sides = {"left": (NAME_AWAY, NAME_BELOW), "right": (-NAME_AWAY, -NAME_AWAY)}
    for align, (dx, dy) in sides.items():
        of_side = of_rows([row for row in front if (row["usd"] <= middle) == (align == "left")])
        words = of_side.mark_text(align=align, dx=dx, dy=dy, limit=NAME_LIMIT, color=INK)
        drawn += words.encode(**at, text="jury:N")
    return styled(drawn).properties(width=JURY_WIDTH, height=JURY_HEIGHT)


def chart_first(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Draw the first juries: ICC with its interval, and beside it the ICC expected on new responses.

    Parameters
    ----------
    rows : mappings with `jury`, `icc`, `low`, `high`, `expected`
        In the order to be shown. None leaves a gap.
    """
    base = of_rows(rows).properties(width=430, height=alt.Step(24))
    y = alt.Y("jury:N", sort=None, title=None, axis=alt.Axis(labelLimit=330))
    line = spans(base, "ICC(C,2) with the clinicians", y=y, color=alt.value(ACCENT))
    observed = marks(base, shape="diamond", size=80, color=ACCENT).encode(x="icc:Q", y=y)
    expected = base.mark_point(shape="circle", filled=False, size=70, color=INK, strokeWidth=1.8)
    return styled(line + observed + expected.encode(x="expected:Q", y=y))


def chart_ranking(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """Draw a figure of every model with its interval, the ways of scoring under one another.

    Parameters
    ----------
    rows : mappings with `model`, `by` (of WAYS), `value`, `low`, `high`
        Models in the order to be shown. None leaves a gap, never a 0.
    """
    ways = [way for way in WAYS if any(row["by"] == way for row in rows)]
    y = alt.Y("model:N", sort=None, title=None, axis=alt.Axis(labelLimit=220))
    offset = alt.YOffset("by:N", scale=alt.Scale(domain=ways))
    picked = [WAYS.index(way) for way in ways]
    colours, shapes = ([every[place] for place in picked] for every in (WAY_COLOURS, WAY_SHAPES))
    own = told_apart("by:N", ways, colours=colours, shapes=shapes, title=None)
    step = alt.Step(LANE, **{"for": "offset"}) if len(ways) > 1 else alt.Step(2 * LANE)
    base = of_rows(rows).properties(width=RANKING_WIDTH, height=step)
    line = spans(base, title, y=y, yOffset=offset, color=own["color"])
    point = marks(base, size=70).encode(x="value:Q", y=y, yOffset=offset, **own)
    return styled_as_one(line + point)


def chart_heatmap(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """Draw models against categories, each cell with its figure in it; the darker, the higher.

    Parameters
    ----------
    rows : mappings with `model`, `place`, `value`, and `rests` where that is to be told
        None is a cell without a colour that says so. `rests` says what a figure rests on.
    """
    known = [row["value"] for row in rows if row["value"] is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    shown = [
        {name: row[name] for name in ("model", "place", "value", "rests") if name in row}
        | {
            "words": "none" if row["value"] is None else f"{row['value']:.2f}",
            "dark": row["value"] is not None and row["value"] > low + DARK * (high - low),
        }
        for row in rows
    ]
    places = list(dict.fromkeys(row["place"] for row in rows))
    wide = min(230, max(96, 690 // max(len(places), 1)))
    base = of_rows(shown).properties(width=wide * len(places), height=alt.Step(CELL))
    x = alt.X(
        "place:N",
        sort=None,
        title=None,
        axis=alt.Axis(orient="top", labelAngle=0, labelLimit=wide - 8, ticks=False, domain=False),
    )
    y = alt.Y("model:N", sort=None, title=None, axis=alt.Axis(ticks=False, domain=False))
    shade = alt.Color(
        "value:Q",
        title=title,
        scale=alt.Scale(domain=[low, high], range=list(RAMP)),
        legend=alt.Legend(orient="bottom", gradientLength=180, format=".2f"),
    )
    cell = base.mark_rect(stroke="#ffffff", strokeWidth=2).encode(x=x, y=y, color=shade)
    ink = alt.condition("datum.dark", alt.value("#ffffff"), alt.value(BLACK))
    words = base.mark_text(fontSize=11.5).encode(x=x, y=y, text="words:N", color=ink)
    if any("rests" in row for row in rows):
        titles = {"model:N": "Model", "place:N": "Category", "words:N": "Mean", "rests:N": "On"}
        tooltips = [alt.Tooltip(field, title=title) for field, title in titles.items()]
        cell, words = (layer.encode(tooltip=tooltips) for layer in (cell, words))
    return styled_as_one(cell + words)


def chart_model_costs(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Draw what each model cost against how often it wins, each point with its model's name.

    Rows are mappings with `model`, `usd`, `win_rate`.
    """
    most = max([*(row["usd"] for row in rows), 0.0]) * ROOM or 1.0
    x = alt.X("usd:Q", title="Cost, US dollars", scale=alt.Scale(domain=[0, most], nice=False))
    y = alt.Y("win_rate:Q", title="Win rate", scale=alt.Scale(domain=[0, 1.05], nice=False))
    base = of_rows([{name: row[name] for name in ("model", "usd", "win_rate")} for row in rows])
    point = marks(base, size=80, color=ACCENT).encode(x=x, y=y)
    words = base.mark_text(align="left", dx=8, dy=-7, color=SOFT, fontSize=11)
    drawn = point + words.encode(x=x, y=y, text="model:N")
    return styled_as_one(drawn.properties(width=RANKING_WIDTH, height=260))


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
    rule = of_rows([{"zero": 0}]).mark_rule(color=SOFT, strokeWidth=1)
    line: alt.Chart = rule.encode(**{axis: "zero:Q"})
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
