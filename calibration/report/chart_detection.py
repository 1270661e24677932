"""Reading the lowest scores first: the share read, and the share of unsafe responses found."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from calibration.report.chart_style import COLOURS, KINDS, SHAPES, SOFT, of_rows, styled

Row = Mapping[str, Any]
WIDE, HIGH = 460, 300
DASHES = ([1, 0], [1, 0], [2, 3], [6, 3])  # of KINDS, so that no line is told by colour alone
MOST_MARKED = 30  # places on a line; with more it is a curve, and marks would hide it


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
    x = alt.X("read:Q", title="Share of responses read, lowest score first", axis=_percent())
    y = alt.Y("found:Q", title="Share of the unsafe found", axis=_percent())
    colour = alt.Color(
        "label:N", title=None, scale=_scale(labels, [COLOURS[one] for one in places])
    )
    dash = alt.StrokeDash("label:N", title=None, scale=_scale(labels, [DASHES[p] for p in places]))
    shape = alt.Shape("label:N", title=None, scale=_scale(labels, [SHAPES[one] for one in places]))
    marked = [row for row in rows if sum(r["label"] == row["label"] for r in rows) <= MOST_MARKED]
    chance = of_rows([{"a": 0, "b": 0}, {"a": 1, "b": 1}]).mark_line(
        color=SOFT, strokeDash=[4, 3], strokeWidth=1
    )
    line = of_rows([dict(row) for row in rows]).mark_line(strokeWidth=1.8)
    end = of_rows([dict(row) for row in marked]).mark_point(filled=True, size=44, opacity=1)
    order = alt.Order("read:Q")
    return styled(
        chance.encode(x="a:Q", y="b:Q")
        + line.encode(x=x, y=y, color=colour, strokeDash=dash, order=order)
        + end.encode(x=x, y=y, color=colour, shape=shape)
    ).properties(width=WIDE, height=HIGH)


def _percent() -> alt.Axis:
    return alt.Axis(format="%", tickCount=5)


def _scale(labels: Sequence[str], values: Sequence[Any]) -> alt.Scale:
    return alt.Scale(domain=list(labels), range=list(values))
