"""The picture of a taxonomy: how many benchmarks stand in each part, and where a study's own stand."""

from collections.abc import Sequence

import altair as alt

from calibration.report.chart_style import ACCENT, INK, ROW, SOFT, Row, of_rows, styled_as_one

WIDTH, LABEL = 300, 250  # pixels
LISTED, OWN = "listed", "this study"
SHAPES = ("square", "diamond")


def chart_coverage(rows: Sequence[Row], title: str = "Benchmarks") -> alt.TopLevelMixin:
    """Draw a bar for the listed benchmarks of each part and a diamond for a study's own.

    Parameters
    ----------
    rows : mappings with `category`, `part`, `listed` and `own`, both counts
        In the order drawn, categories apart. A part without a listed benchmark says "none".
    """
    most = max([1, *(max(row["listed"], row["own"]) for row in rows)])
    names = list(dict.fromkeys(row["category"] for row in rows))
    scale = alt.Scale(domain=[0, most], nice=False)
    parts = [
        _of_category(name, [row for row in rows if row["category"] == name], scale, title)
        for name in names
    ]
    return styled_as_one(alt.vconcat(*parts, spacing=8))


def _of_category(name: str, rows: Sequence[Row], scale: alt.Scale, title: str) -> alt.LayerChart:
    """Return the bars of one category under its name."""
    y = alt.Y("part:N", sort=None, title=None, axis=alt.Axis(labelLimit=LABEL, minExtent=LABEL))
    axis = alt.Axis(tickMinStep=1, format="d")
    base = of_rows(rows).properties(
        width=WIDTH,
        height=alt.Step(ROW),
        title=alt.TitleParams(name, anchor="start", fontSize=12, color=INK, frame="bounds"),
    )
    bar = base.mark_bar(color=ACCENT, height=11)
    none = base.transform_filter("datum.listed == 0").mark_text(align="left", dx=4, color=SOFT)
    own = base.transform_filter("datum.own > 0").mark_point(
        shape="diamond", filled=True, size=80, opacity=1, color="#b35900"
    )
    x = alt.X("listed:Q", title=title, scale=scale, axis=axis)
    layers: alt.LayerChart = (
        bar.encode(x=x, y=y)
        + none.encode(x=alt.datum(0), y=y, text=alt.value("none"))
        + own.encode(x="own:Q", y=y)
    )
    return layers
