"""Charts of agreement over time: the ICC of each period, and the falls added up.

Rows are plain mappings; a chart carries only what it draws. What was found is told by shape and
words too, never by colour alone.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from calibration.report.chart_style import ACCENT, INK, SOFT, of_rows, styled

Row = Mapping[str, Any]
WIDTH, HEIGHT = 560, 210
WARNING = "#b35900"
LOWEST = -1.0  # an ICC has no lower bound: an interval is drawn to here, its figures are beside it
KINDS = ("baseline", "watched", "too few")
SHAPES = ("square", "circle", "diamond")
ROOM = 1.12


def period_rows(rows: Sequence[Row], roles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the rows that `chart_periods` draws.

    Parameters
    ----------
    rows
        `periods` of `monitor --json`.
    roles
        Period -> role in the CUSUM; one without a role there is drawn as watched.
    """
    return [
        {
            "period": row["period"],
            "kind": _kind(row, roles.get(row["period"], "")),
            "icc": row["icc"],
            "low": row["boot_low"],
            "high": row["boot_high"],
            "instances": row["n_instances"],
        }
        for row in rows
    ]


def chart_periods(
    rows: Sequence[Row], threshold: float, target: float | None = None
) -> alt.TopLevelMixin:
    """Draw the ICC of every period with its interval, the least that is wanted, and the target.

    Parameters
    ----------
    rows
        From `period_rows`, in their order. Undefined figures are None and leave a gap.
    """
    shown = [_cut(row) for row in rows]
    x = _periods_axis()
    y = alt.Y(
        "low:Q",
        title="ICC(C,2), bootstrap 95 %",
        scale=alt.Scale(domain=_ends(shown, threshold), nice=False),
    )
    base = of_rows(shown).properties(width=WIDTH, height=HEIGHT)
    line = base.mark_rule(strokeWidth=1.6, color=ACCENT).encode(x=x, y=y, y2="high:Q")
    path = base.mark_line(strokeWidth=1, color=SOFT).encode(x=x, y="icc:Q")
    shape = alt.Shape("kind:N", title=None, scale=alt.Scale(domain=list(KINDS), range=list(SHAPES)))
    point = base.mark_point(filled=True, size=70, color=ACCENT, opacity=1)
    marks = line + path + point.encode(x=x, y="icc:Q", shape=shape)
    return _hushed(marks + _level(shown, threshold, f"least wanted {threshold:.2f}") + _aim(target))


def cusum_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows that `chart_cusum` draws, of `cusum` of `monitor --json`: those watched."""
    return [
        {
            "period": row["period"],
            "cusum": row["cusum"],
            "state": "alarm" if row["alarm"] else "no alarm",
        }
        for row in rows
        if row["role"] == "watched" and row["cusum"] is not None
    ]


def chart_cusum(rows: Sequence[Row], limit: float = 4.0) -> alt.TopLevelMixin:
    """Draw the falls added up, in standard errors, with the limit at which they raise an alarm."""
    most = max([limit, *(row["cusum"] for row in rows)]) * ROOM
    x = _periods_axis()
    y = alt.Y("cusum:Q", title="Falls added up, SE", scale=alt.Scale(domain=[0, most], nice=False))
    base = of_rows(rows).properties(width=WIDTH, height=HEIGHT - 60)
    states = ["no alarm", "alarm"]
    kept = {
        "shape": alt.Shape(
            "state:N", title=None, scale=alt.Scale(domain=states, range=["circle", "triangle-up"])
        ),
        "color": alt.Color(
            "state:N", title=None, scale=alt.Scale(domain=states, range=[ACCENT, WARNING])
        ),
    }
    path = base.mark_line(strokeWidth=1.4, color=SOFT).encode(x=x, y=y)
    point = base.mark_point(filled=True, size=80, opacity=1).encode(x=x, y=y, **kept)
    return _hushed(path + point + _level(rows, limit, f"alarm at {limit:g}"))


def _periods_axis() -> alt.X:
    return alt.X("period:N", sort=None, title=None, axis=alt.Axis(labelAngle=0, labelLimit=110))


def _level(rows: Sequence[Row], at: float, words: str) -> alt.LayerChart:
    """Return a dashed line across, with its name at the left end, above it."""
    base = of_rows([{"at": at, "words": words}])
    rule = base.mark_rule(color=WARNING, strokeDash=[6, 4], strokeWidth=1.4).encode(y="at:Q")
    named = base.mark_text(align="left", dx=6, dy=-7, color=WARNING, fontSize=11)
    found: alt.LayerChart = rule + named.encode(x=alt.value(0), y="at:Q", text="words:N")
    return found


def _aim(target: float | None) -> alt.LayerChart:
    """Return the target as a line across; nothing without one."""
    base = of_rows([] if target is None else [{"at": target, "words": f"target {target:.2f}"}])
    rule = base.mark_rule(color=INK, strokeDash=[1, 3], strokeWidth=1.2).encode(y="at:Q")
    named = base.mark_text(align="right", dx=-4, dy=-7, color=INK, fontSize=11)
    found: alt.LayerChart = rule + named.encode(x=alt.value(WIDTH), y="at:Q", text="words:N")
    return found


def _ends(rows: Sequence[Row], threshold: float) -> list[float]:
    """Return the ends of the axis: they hold every interval, the threshold and 1."""
    lows = [row["low"] for row in rows if row["low"] is not None]
    lows += [row["icc"] for row in rows if row["icc"] is not None]
    low = min([*lows, threshold, 0.0])
    return [max(LOWEST, math.floor(low * 5 - 0.25) / 5), 1.05]


def _kind(row: Row, role: str) -> str:
    if row["too_few"]:
        return "too few"
    return "baseline" if role == "baseline" else "watched"


def _cut(row: Row) -> dict[str, Any]:
    """Return a row with what lies below the lowest cut there; a figure below it is not drawn."""
    found = dict(row)
    for name in ("low", "high"):
        if found[name] is not None:
            found[name] = max(found[name], LOWEST)
    if found["icc"] is not None and found["icc"] < LOWEST:
        found["icc"] = None
    return found


def _hushed(chart: Any) -> alt.TopLevelMixin:
    """Return a chart in the common style; its description speaks for it, not each of its marks."""
    found: alt.TopLevelMixin = styled(chart).configure_mark(aria=False)
    return found
