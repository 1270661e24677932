"""Many responses in one frame: places with their counts, or cells where there are too many."""

from typing import Any

import altair as alt
import numpy as np

from calibration.report.chart_style import ACCENT, of_rows
from calibration.scores import Array

MOST_POINTS = 1500  # above it, responses are counted in cells: a page stays small
CELLS = 28


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
    found: alt.Chart = mark.encode(x=on_x, y=on_y, size=size)
    return found


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
    found: alt.Chart = mark.encode(x=on_x, x2="x2:Q", y=on_y, y2="y2:Q", opacity=shade)
    return found


def axis_ends(values: Any) -> tuple[float, float]:
    """Return the ends of an axis that holds all values with some room."""
    held = np.asarray(values, dtype=np.float64)
    low, high = (float(held.min()), float(held.max())) if len(held) else (0.0, 1.0)
    room = 0.05 * (high - low) or 0.5
    return low - room, high + room
