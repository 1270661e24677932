"""Charts of agreement, of juries and of models: rows in, an Altair chart out; shape and label beside colour.

Rows are plain mappings. A chart carries only what it draws, for all it carries travels to the reader.
"""

from collections.abc import Sequence

import altair as alt
import numpy as np

from calibration.json_values import json_value
from calibration.report.chart_style import (
    ACCENT,
    COLOURS,
    INK,
    KINDS,
    RAMP,
    ROW,
    SHAPES,
    SIDE,
    SOFT,
    WIDTH,
    Row,
    axis_ends,
    cloud,
    cut_below,
    drawable,
    of_rows,
    styled,
    styled_as_one,
    told_apart,
    zero,
)
from calibration.scores import Array

BETWEEN = "between"
WIDE, HIGH = 460, 300
DASHES = ([1, 0], [1, 0], [2, 3], [6, 3])  # of KINDS, so that no line is told by colour alone
MOST_MARKED = 30  # places on a line; with more it is a curve, and marks would hide it
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
COST = "Cost, US dollars"
TOOLTIPS = [
    alt.Tooltip("model:N", title="Model"),
    alt.Tooltip("place:N", title="Category"),
    alt.Tooltip("words:N", title="Mean"),
    alt.Tooltip("rests:N", title="On"),
]


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
    x = alt.X("low:Q", title=title, scale=alt.Scale(zero=False, nice=True))
    base = of_rows(shown).properties(width=WIDTH, height=alt.Step(ROW))
    kinds = told_apart("kind:N", KINDS, colours=COLOURS, shapes=SHAPES, legend=None)
    line = base.mark_rule(strokeWidth=1.6).encode(x=x, x2="high:Q", y=y, color=kinds["color"])
    point = base.mark_point(filled=True, size=80, opacity=1).encode(x="value:Q", y=y, **kinds)
    head = base.transform_filter("datum.is_cut").mark_point(
        shape="triangle-left", filled=True, size=42, opacity=1
    )
    return styled(zero("x") + line + point + head.encode(x="low:Q", y=y, color=kinds["color"]))


def chart_scatter(clinicians: Array, jury: Array) -> alt.TopLevelMixin:
    """Draw the jury's means against the clinicians', in points, with the line of equality.

    Both have shape (n,) without NaN. Up to 1,500 responses each place has a circle, larger
    where several responses lie; above, responses are counted in 28 x 28 cells.
    """
    both = axis_ends(np.concatenate([clinicians, jury]))
    scale = alt.Scale(domain=both, nice=False)
    x = alt.X("x:Q", title="Clinicians' mean, points", scale=scale)
    y = alt.Y("y:Q", title="Jury's mean, points", scale=scale)
    equal = of_rows([{"a": end} for end in both]).mark_line(
        color=SOFT, strokeDash=[4, 3], strokeWidth=1
    )
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
    y = alt.Y(
        "y:Q", title="Jury minus clinicians, points", scale=alt.Scale(domain=axis_ends(every))
    )
    base = of_rows(lines)
    rules = base.mark_rule(color=INK, strokeDash=[5, 3]).encode(y="at:Q")
    words = base.mark_text(align="left", baseline="middle", dx=5, color=INK, fontSize=10.5)
    at = alt.value(SIDE)
    drawn = zero("y") + cloud((jury + clinicians) / 2, gap, x, y) + rules
    return styled(drawn + words.encode(x=at, y="at:Q", text="name:N")).properties(
        width=SIDE, height=SIDE
    )


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
    many = len(dict.fromkeys(row["criterion"] for row in rows))
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
    sized = drawn.properties(width=max(90, 520 // max(many, 1) - 20), height=alt.Step(ROW))
    names = list(dict.fromkeys(row["criterion"] for row in rows))
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


def chart_detection(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Draw what reading in each scorer's order finds; the dashed line is reading in any order.

    Parameters
    ----------
    rows : mappings with `label`, `kind` (of KINDS), `read`, `found` (shares, 0 to 1), in order
        A place where a tie of equal scores ends; between two places the order is chance.
    """
    labels = list(dict.fromkeys(row["label"] for row in rows))
    kinds = [next(row["kind"] for row in rows if row["label"] == label) for label in labels]
    places = [KINDS.index(kind) for kind in kinds]
    percent = alt.Axis(format="%", tickCount=5)
    x = alt.X("read:Q", title="Share of responses read, lowest score first", axis=percent)
    y = alt.Y("found:Q", title="Share of the unsafe found", axis=percent)
    colours, shapes = ([every[place] for place in places] for every in (COLOURS, SHAPES))
    own = told_apart("label:N", labels, colours=colours, shapes=shapes, title=None)
    dashes = alt.Scale(domain=labels, range=[DASHES[place] for place in places])
    dash = alt.StrokeDash("label:N", title=None, scale=dashes)
    marked = [row for row in rows if sum(r["label"] == row["label"] for r in rows) <= MOST_MARKED]
    chance = of_rows([{"a": 0, "b": 0}, {"a": 1, "b": 1}]).mark_line(
        color=SOFT, strokeDash=[4, 3], strokeWidth=1
    )
    line = of_rows([dict(row) for row in rows]).mark_line(strokeWidth=1.8)
    end = of_rows([dict(row) for row in marked]).mark_point(filled=True, size=44, opacity=1)
    order = alt.Order("read:Q")
    return styled(
        chance.encode(x="a:Q", y="b:Q")
        + line.encode(x=x, y=y, color=own["color"], strokeDash=dash, order=order)
        + end.encode(x=x, y=y, **own)
    ).properties(width=WIDE, height=HIGH)


def chart_jury_costs(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Draw every jury by what a response costs and how well it agrees; the best value stands out.

    Parameters
    ----------
    rows : mappings with `jury`, `usd`, `icc`, `low`, `high`, `on_front`, `made_up`
        Of known cost and ICC. The front has its intervals, a line through it and its juries'
        names; it differs from the rest in shape, and the rest is faint. Where any price is made up, the axis says so.
    """
    made_up = ", made up" if any(row["made_up"] for row in rows) else ""
    every = [{"jury": row["jury"], "usd": row["usd"], "icc": row["icc"]} for row in rows]
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
    others = of_rows(every).mark_circle(size=30, color=SOFT, opacity=FAINT)
    best = of_rows(front).properties(width=JURY_WIDTH, height=JURY_HEIGHT)
    line = best.mark_line(interpolate="step-after", color=ACCENT, strokeWidth=1.2)
    span = best.mark_rule(color=INK, strokeWidth=1)
    head = best.mark_point(shape="diamond", filled=True, size=90, color=ACCENT, opacity=1)
    low = alt.Y("low:Q")
    costs_of = [row["usd"] for row in front]
    middle = (min(costs_of) + max(costs_of)) / 2 if front else 0
    left = of_rows([row for row in front if row["usd"] <= middle])
    right = of_rows([row for row in front if row["usd"] > middle])
    # Names are written towards the middle, below and above their line: they cannot meet.
    below = left.mark_text(align="left", dx=NAME_AWAY, dy=NAME_BELOW, limit=NAME_LIMIT, color=INK)
    above = right.mark_text(
        align="right", dx=-NAME_AWAY, dy=-NAME_AWAY, limit=NAME_LIMIT, color=INK
    )
    place = {"x": "usd:Q", "y": "icc:Q", "text": "jury:N"}
    return styled(
        others.encode(x=x, y=y, tooltip=tooltip)
        + line.encode(x="usd:Q", y="icc:Q")
        + span.encode(x="usd:Q", y=low, y2="high:Q")
        + head.encode(x="usd:Q", y="icc:Q", tooltip=tooltip)
        + below.encode(**place)
        + above.encode(**place)
    ).properties(width=JURY_WIDTH, height=JURY_HEIGHT)


def chart_first(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Draw the first juries: ICC with its interval, and beside it the ICC expected on new responses.

    Parameters
    ----------
    rows : mappings with `jury`, `icc`, `low`, `high`, `expected`
        In the order to be shown. None leaves a gap.
    """
    base = of_rows([dict(row) for row in rows]).properties(width=430, height=alt.Step(24))
    y = alt.Y("jury:N", sort=None, title=None, axis=alt.Axis(labelLimit=330))
    x = alt.X("low:Q", title="ICC(C,2) with the clinicians", scale=alt.Scale(zero=False))
    line = base.mark_rule(color=ACCENT, strokeWidth=1.6).encode(x=x, x2="high:Q", y=y)
    observed = base.mark_point(shape="diamond", filled=True, size=80, color=ACCENT, opacity=1)
    expected = base.mark_point(shape="circle", filled=False, size=70, color=INK, strokeWidth=1.8)
    return styled(line + observed.encode(x="icc:Q", y=y) + expected.encode(x="expected:Q", y=y))


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
    x = alt.X("low:Q", title=title, scale=alt.Scale(zero=False, nice=True))
    picked = [WAYS.index(way) for way in ways]
    colours, shapes = ([every[place] for place in picked] for every in (WAY_COLOURS, WAY_SHAPES))
    own = told_apart("by:N", ways, colours=colours, shapes=shapes, title=None)
    step = alt.Step(LANE, **{"for": "offset"}) if len(ways) > 1 else alt.Step(2 * LANE)
    base = of_rows(rows).properties(width=RANKING_WIDTH, height=step)
    line = base.mark_rule(strokeWidth=1.6).encode(
        x=x, x2="high:Q", y=y, yOffset=offset, color=own["color"]
    )
    point = base.mark_point(filled=True, size=70, opacity=1)
    return styled_as_one(line + point.encode(x="value:Q", y=y, yOffset=offset, **own))


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
        cell, words = (layer.encode(tooltip=TOOLTIPS) for layer in (cell, words))
    return styled_as_one(cell + words)


def chart_model_costs(rows: Sequence[Row], cost: str = COST) -> alt.TopLevelMixin:
    """Draw what each model cost against how often it wins, each point with its model's name.

    Parameters
    ----------
    rows : mappings with `model`, `usd`, `win_rate`
    cost : what the amounts are
    """
    most = max([*(row["usd"] for row in rows), 0.0]) * ROOM or 1.0
    x = alt.X("usd:Q", title=cost, scale=alt.Scale(domain=[0, most], nice=False))
    y = alt.Y("win_rate:Q", title="Win rate", scale=alt.Scale(domain=[0, 1.05], nice=False))
    base = of_rows([{name: row[name] for name in ("model", "usd", "win_rate")} for row in rows])
    point = base.mark_point(filled=True, size=80, color=ACCENT, opacity=1).encode(x=x, y=y)
    words = base.mark_text(align="left", dx=8, dy=-7, color=SOFT, fontSize=11)
    drawn = point + words.encode(x=x, y=y, text="model:N")
    return styled_as_one(drawn.properties(width=RANKING_WIDTH, height=260))
