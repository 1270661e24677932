"""Charts that compare models: ranking, means by category, and cost; rows in, a chart out."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from calibration.report.chart_style import ACCENT, INK, RAMP, SOFT, of_rows, styled

Row = Mapping[str, Any]
WAYS = ("clinicians", "jury", "corrected")
COLOURS = (INK, ACCENT, "#b35900")
SHAPES = ("triangle-up", "circle", "diamond")
WIDTH, LANE, CELL = 520, 15, 30
# The share of the range from which words are white: both kinds then stand out by 4.5 to 1.
DARK, BLACK = 0.695, "#000000"
ROOM = 1.15
TOLD = [
    alt.Tooltip("model:N", title="Model"),
    alt.Tooltip("place:N", title="Category"),
    alt.Tooltip("words:N", title="Mean"),
    alt.Tooltip("rests:N", title="On"),
]


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
    colour = alt.Color(
        "by:N", title=None, scale=alt.Scale(domain=ways, range=[COLOURS[n] for n in picked])
    )
    shape = alt.Shape(
        "by:N", title=None, scale=alt.Scale(domain=ways, range=[SHAPES[n] for n in picked])
    )
    step = alt.Step(LANE, **{"for": "offset"}) if len(ways) > 1 else alt.Step(2 * LANE)
    base = of_rows(rows).properties(width=WIDTH, height=step)
    line = base.mark_rule(strokeWidth=1.6).encode(
        x=x, x2="high:Q", y=y, yOffset=offset, color=colour
    )
    point = base.mark_point(filled=True, size=70, opacity=1)
    return _hushed(line + point.encode(x="value:Q", y=y, yOffset=offset, color=colour, shape=shape))


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
        cell, words = (one.encode(tooltip=TOLD) for one in (cell, words))
    return _hushed(cell + words)


def chart_cost(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Draw what each model cost against how often it wins, each point with its model's name.

    Parameters
    ----------
    rows : mappings with `model`, `usd`, `win_rate`
    """
    most = max([*(row["usd"] for row in rows), 0.0]) * ROOM or 1.0
    x = alt.X("usd:Q", title="Cost, US dollars", scale=alt.Scale(domain=[0, most], nice=False))
    y = alt.Y("win_rate:Q", title="Win rate", scale=alt.Scale(domain=[0, 1.05], nice=False))
    base = of_rows([{name: row[name] for name in ("model", "usd", "win_rate")} for row in rows])
    point = base.mark_point(filled=True, size=80, color=ACCENT, opacity=1).encode(x=x, y=y)
    words = base.mark_text(align="left", dx=8, color=SOFT, fontSize=11)
    drawn = point + words.encode(x=x, y=y, text="model:N")
    return _hushed(drawn.properties(width=WIDTH, height=260))


def _hushed(chart: Any) -> alt.TopLevelMixin:
    """Return a chart in the common style; its description speaks for it, not each of its marks."""
    found: alt.TopLevelMixin = styled(chart).configure_mark(aria=False)
    return found
