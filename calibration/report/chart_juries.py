"""Juries by agreement and money: rows in, a chart out."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from calibration.report.chart_style import ACCENT, INK, SOFT, of_rows, styled

Row = Mapping[str, Any]
WIDE, HIGH = 620, 300
FAINT = 0.35


def chart_cost(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Draw every jury by what a response costs and how well it agrees; the best value stands out.

    Parameters
    ----------
    rows : mappings with `jury`, `usd`, `icc`, `low`, `high`, `on_front`, `made_up`
        Of known cost and ICC. The front has its intervals, and a line through it; it differs
        from the rest in shape, and the rest is faint. Where any price is made up, the axis says so.
    """
    made_up = ", made up" if any(row["made_up"] for row in rows) else ""
    every = [{"jury": row["jury"], "usd": row["usd"], "icc": row["icc"]} for row in rows]
    names = ("jury", "usd", "icc", "low", "high")
    front = [{name: row[name] for name in names} for row in rows if row["on_front"]]
    costs = alt.Axis(format="$~g")
    x = alt.X("usd:Q", title=f"Cost of a response, US dollars{made_up}", axis=costs)
    y = alt.Y("icc:Q", title="ICC(C,2) with the clinicians", scale=alt.Scale(zero=False))
    told = [
        alt.Tooltip("jury:N", title="Jury"),
        alt.Tooltip("icc:Q", title="ICC(C,2)", format=".3f"),
        alt.Tooltip("usd:Q", title="US dollars", format="$.4f"),
    ]
    rest = of_rows(every).mark_circle(size=30, color=SOFT, opacity=FAINT)
    best = of_rows(front).properties(width=WIDE, height=HIGH)
    line = best.mark_line(interpolate="step-after", color=ACCENT, strokeWidth=1.2)
    span = best.mark_rule(color=INK, strokeWidth=1)
    head = best.mark_point(shape="diamond", filled=True, size=90, color=ACCENT, opacity=1)
    low = alt.Y("low:Q")
    return styled(
        rest.encode(x=x, y=y, tooltip=told)
        + line.encode(x="usd:Q", y="icc:Q")
        + span.encode(x="usd:Q", y=low, y2="high:Q")
        + head.encode(x="usd:Q", y="icc:Q", tooltip=told)
    ).properties(width=WIDE, height=HIGH)


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
    seen = base.mark_point(shape="diamond", filled=True, size=80, color=ACCENT, opacity=1)
    expected = base.mark_point(shape="circle", filled=False, size=70, color=INK, strokeWidth=1.8)
    return styled(line + seen.encode(x="icc:Q", y=y) + expected.encode(x="expected:Q", y=y))
