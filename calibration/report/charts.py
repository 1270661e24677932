"""Charts of agreement in one style: rows in, an Altair chart out; shape and label beside colour.

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
    told_apart,
    zero,
)
from calibration.scores import Array

BETWEEN = "between"
WIDE, HIGH = 460, 300
DASHES = ([1, 0], [1, 0], [2, 3], [6, 3])  # of KINDS, so that no line is told by colour alone
MOST_MARKED = 30  # places on a line; with more it is a curve, and marks would hide it


def chart_intervals(
    rows: Sequence[Row], title: str = "ICC(C,2), bootstrap 95 %"
) -> alt.TopLevelMixin:
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


def chart_influence(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Draw what leaving one response or instance out does to the ICC, in the order given.

    Parameters
    ----------
    rows : mappings with `label`, `kind` ("response" or "instance"), `change`
        Undefined changes (no ICC is left) are None or NaN and have no dot.
    """
    values = [
        {"label": row["label"], "kind": row["kind"], "change": json_value(row["change"])}
        for row in rows
    ]
    base = of_rows(values).properties(width=WIDTH - 60, height=alt.Step(ROW))
    y = alt.Y("label:N", sort=None, title=None)
    x = alt.X("change:Q", title="Change of the jury's ICC when left out")
    kinds = ["response", "instance"]
    shape = alt.Shape(
        "kind:N", title=None, scale=alt.Scale(domain=kinds, range=["circle", "square"])
    )
    stem = base.mark_rule(color=SOFT, strokeWidth=1).encode(x=x, x2=alt.datum(0), y=y)
    dot = base.mark_point(filled=True, size=64, color=ACCENT, opacity=1).encode(
        x=x, y=y, shape=shape
    )
    return styled(zero("x") + stem + dot)


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
