"""Charts of agreement over time: the ICC of each period, and the falls that are scanned for.

A chart carries only what it draws. What was found is told by shape and words too, never by colour
alone.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

import altair as alt

from calibration.json_values import json_value
from calibration.monitoring import PeriodRow
from calibration.report.charts import (
    ACCENT,
    INK,
    LOWEST,
    SOFT,
    Row,
    cut_below,
    of_rows,
    styled_as_one,
    told_apart,
)

WIDTH, HEIGHT = 560, 210
WARNING = "#b35900"
SHAPES = {"baseline": "square", "watched": "circle", "too few": "diamond"}  # by kind of period
ROOM = 1.12


def chart_periods(periods: Sequence[PeriodRow], floor: float, target: float) -> alt.TopLevelMixin:
    """Draw the ICC of every period with its interval, the floor, and the target.

    Parameters
    ----------
    periods
        In their order; undefined figures leave a gap.
    target
        NaN where there is none.
    """
    shown = [cut_below(_drawn(row), ("low", "high"), "icc")[0] for row in periods]
    kinds = {row["kind"] for row in shown}
    x = _periods_axis()
    y = alt.Y(
        "low:Q",
        title="ICC(C,2), 95 %",
        scale=alt.Scale(domain=_ends(shown, floor), nice=False),
    )
    base = of_rows(shown).properties(width=WIDTH, height=HEIGHT)
    line = base.mark_rule(strokeWidth=1.6, color=ACCENT).encode(x=x, y=y, y2="high:Q")
    path = base.mark_line(strokeWidth=1, color=SOFT).encode(x=x, y="icc:Q")
    there = {kind: shape for kind, shape in SHAPES.items() if kind in kinds}
    scale = alt.Scale(domain=[*there], range=[*there.values()])
    shape = alt.Shape("kind:N", title=None, scale=scale)
    point = base.mark_point(filled=True, size=70, color=ACCENT, opacity=1)
    marks = line + path + point.encode(x=x, y="icc:Q", shape=shape)
    level = _across(floor, f"floor {floor:.2f}", WARNING, 0, strokeDash=[6, 4], strokeWidth=1.4)
    aim = _across(target, f"target {target:.2f}", INK, WIDTH, strokeDash=[1, 3], strokeWidth=1.2)
    return styled_as_one(marks + level + aim)


def chart_falls(periods: Sequence[PeriodRow]) -> alt.TopLevelMixin:
    """Draw the largest fall at each end, with the limit at which it raises an alarm, a step a year.

    Only the watched of the periods are drawn.
    """
    rows = [_fallen(row) for row in periods if row.role == "watched"]
    figures = [row[name] for row in rows for name in ("fall", "limit") if row[name] is not None]
    ends = [min(0.0, *figures), max(figures) * ROOM]
    x = _periods_axis()
    y = alt.Y("fall:Q", title="Fall, standard errors", scale=alt.Scale(domain=ends, nice=False))
    base = of_rows(rows).properties(width=WIDTH, height=HEIGHT - 60)
    states = ["no alarm", "alarm"]
    told = told_apart(
        "state:N", states, colours=(ACCENT, WARNING), shapes=("circle", "triangle-up"), title=None
    )
    path = base.mark_line(strokeWidth=1.4, color=SOFT).encode(x=x, y=y)
    point = base.mark_point(filled=True, size=80, opacity=1).encode(x=x, y=y, **told)
    limit = of_rows(rows).mark_line(
        color=WARNING, strokeDash=[6, 4], strokeWidth=1.4, interpolate="step"
    )
    first = rows[0]["limit"]
    step = limit.encode(x=_periods_axis(), y="limit:Q")
    return styled_as_one(path + point + _across(first, f"alarm at {first:.2f}", WARNING, 0, step))


def _periods_axis() -> alt.X:
    return alt.X("period:N", sort=None, title=None, axis=alt.Axis(labelAngle=0, labelLimit=110))


def _across(
    at: float, words: str, colour: str, x: float, rule: alt.Chart | None = None, **line: Any
) -> alt.LayerChart:
    """Return a line across with its name above it, at the left end or, of the target, at the right."""
    base = of_rows([{"at": at, "words": words}] if math.isfinite(at) else [])
    align: Literal["left", "right"] = "right" if x else "left"
    dx = -4 if x else 6
    text = base.mark_text(align=align, dx=dx, dy=-7, color=colour, fontSize=11)
    drawn = rule or base.mark_rule(color=colour, **line).encode(y="at:Q")
    found: alt.LayerChart = drawn + text.encode(x=alt.value(x), y="at:Q", text="words:N")
    return found


def _drawn(row: PeriodRow) -> dict[str, Any]:
    kind = "too few" if row.too_few else "baseline" if row.role == "baseline" else "watched"
    figures = {"icc": row.icc, "low": row.low, "high": row.high}
    return {
        "period": row.period,
        "kind": kind,
        **{name: json_value(value) for name, value in figures.items()},
        "instances": row.n_instances,
    }


def _fallen(row: PeriodRow) -> dict[str, Any]:
    state = "alarm" if (row.scan or 0.0) >= (row.limit or math.inf) else "no alarm"
    return {"period": row.period, "fall": row.scan, "limit": row.limit, "state": state}


def _ends(rows: Sequence[Row], floor: float) -> list[float]:
    """Return the ends of the axis: they hold every interval, the floor and 1."""
    lows = [row["low"] for row in rows if row["low"] is not None]
    lows += [row["icc"] for row in rows if row["icc"] is not None]
    low = min([*lows, floor, 0.0])
    return [max(LOWEST, math.floor(low * 5 - 0.25) / 5), 1.05]
