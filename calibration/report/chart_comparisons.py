"""Charts that compare juries or models: agreement, ranks, means by category and cost; rows in, a chart out."""

from collections.abc import Sequence

import altair as alt

from calibration.report.chart_style import (
    ACCENT,
    INK,
    RAMP,
    SOFT,
    Row,
    of_rows,
    styled,
    styled_as_one,
    told_apart,
)

JURY_WIDTH, JURY_HEIGHT = 620, 300
FAINT = 0.35
NAME_AWAY, NAME_BELOW, NAME_LIMIT = 8, 12, 320  # pixels
WAYS = ("clinicians", "jury", "corrected", "paper")
COLOURS = (INK, ACCENT, "#b35900", "#4d7f3f")
SHAPES = ("triangle-up", "circle", "diamond", "square")
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
    colours, shapes = ([every[place] for place in picked] for every in (COLOURS, SHAPES))
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
