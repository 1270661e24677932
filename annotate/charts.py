"""Show a chart in the reports' style, with its figures as a table and files to download.

A chart is a Vega-Lite specification made beside the server: whoever imports Altair in this
process makes every rater's page slower. On the screen it has the colours of
the theme; files are drawn from the chart itself, on white paper.
"""

import html
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from annotate import compute, tables
from calibration.tables.numbers import fixed

Row = Mapping[str, Any]
PICKED = "picked"
DIGITS = 3
MOST_LISTED = 200
# Nothing but what is drawn at its own size: Streamlit would squeeze axes and labels into the width.
FRAME = {
    "autosize": {"type": "pad", "contains": "padding"},
    "padding": {"left": 4, "right": 12, "top": 6, "bottom": 4},
}
# The pairs of the HTML report's style sheet, and a second blue.
PAPER = {"light": "#ffffff", "dark": "#15181c"}
DARK = {
    "#1f2328": "#e6e9ec",
    "#5c636b": "#a3abb3",
    "#dfe2e5": "#33393f",
    "#0072b2": "#6cb6e6",
    "#56a0cf": "#4b8db8",
    "#b35900": "#e69f55",
}


def show(
    chart: Mapping[str, Any], name: str, caption: str, alt: str, rows: Sequence[Row] | None = None
) -> list[Row]:
    """Show a chart with its caption; its figures and files are one click away.

    Parameters
    ----------
    chart : specification
        What `pickable` made so answers to a click.
    name
        Unique on the page; files and controls are named by it.
    caption, alt
        In words: under the chart, and to who cannot see it.
    rows
        The plotted figures where they are not the chart's own longest rows.

    Returns
    -------
    list of mappings
        What the reader clicked on.
    """
    spec = _as_one_image(chart) | FRAME
    listed = plotted(spec) if rows is None else [*rows]
    is_dark = st.context.theme.type == "dark"
    shown = on_screen(spec, is_dark)
    with st.container(key=f"chart-{name}"):
        if "params" in spec:
            event: Any = st.vega_lite_chart(
                *(None, shown), theme=None, width="content", key=name, alt=alt, on_select="rerun"
            )
            picked = event.selection.get(PICKED) or []
        else:
            st.vega_lite_chart(None, shown, theme=None, width="content", alt=alt)
            picked = []
        st.html(f'<p class="mj-caption">{html.escape(caption)}</p>{tables.style()}')
        with st.expander("Figures as a table, and files"):
            st.html(_as_table(listed, caption))
            _files(spec, name, listed)
    return [mark for mark in picked if isinstance(mark, Mapping)]


def pickable(spec: Mapping[str, Any], mark: str, *fields: str) -> dict[str, Any]:
    """Return a layered chart in which marks of a kind, in their first layer, answer to a click."""
    view, layers = "picking", [dict(layer) for layer in spec["layer"]]
    next(layer for layer in layers if _mark(layer) == mark)["name"] = view
    chosen = {"type": "point", "fields": [*fields], "toggle": False}
    return {
        **spec,
        "layer": layers,
        "params": [{"name": PICKED, "select": chosen, "views": [view]}],
    }


def plotted(spec: Mapping[str, Any]) -> list[Row]:
    """Return the rows that a chart draws: the longest that it carries, the first of those."""
    return max(_rows(spec), key=len, default=[])


def _files(spec: Mapping[str, Any], name: str, rows: Sequence[Row]) -> None:
    """Show the download buttons; a file is made when its button is pressed."""
    with st.container(horizontal=True, gap="small"):
        for kind, mime, make in (
            (
                "svg",
                "image/svg+xml",
                partial(compute.call, "annotate.vega:svg", spec, lane="figures"),
            ),
            ("png", "image/png", partial(compute.call, "annotate.vega:png", spec, lane="figures")),
            ("csv", "text/csv", partial(tables.csv_of, rows)),
        ):
            st.download_button(
                *(kind.upper(), make, f"{name}.{kind}", mime),
                key=f"{name}-{kind}",
                on_click="ignore",
            )


def _as_table(rows: Sequence[Row], caption: str) -> str:
    """Return plotted rows as a table; many are cut, and the CSV has all."""
    names = [*dict.fromkeys(name for row in rows for name in row)]
    columns = [_column(name, [row.get(name) for row in rows]) for name in names]
    not_listed = len(rows) - MOST_LISTED
    notes = [f"{not_listed} more rows are in the CSV."] if not_listed > 0 else []
    return tables.table(rows[:MOST_LISTED], columns, f"Figures of the chart. {caption}", notes)


def _column(name: str, values: Sequence[Any]) -> tables.Column:
    """Return how a plotted value is shown: counts as they are, other numbers with three decimals."""
    if not any(isinstance(value, float) for value in values):
        return tables.words(name.replace("_", " "), name)
    return tables.Column(
        name.replace("_", " "),
        lambda row: (
            fixed(row.get(name), DIGITS)
            if isinstance(row.get(name), int | float | None)
            else str(row[name])
        ),
    )


def _rows(part: Any) -> list[list[Row]]:
    if isinstance(part, list):
        return [rows for item in part for rows in _rows(item)]
    if not isinstance(part, Mapping):
        return []
    data = part.get("data")
    own = [data["values"]] if isinstance(data, Mapping) and "values" in data else []
    return own + [rows for key, value in part.items() if key != "data" for rows in _rows(value)]


def _as_one_image(part: Any) -> Any:
    """Return a chart that is one image with one name: its marks are not read out one by one."""
    if isinstance(part, list):
        return [_as_one_image(item) for item in part]
    if not isinstance(part, Mapping):
        return part
    marked = {key: value if key == "data" else _as_one_image(value) for key, value in part.items()}
    if "mark" in marked and "encoding" in marked:
        mark = marked["mark"]
        marked["mark"] = (
            {"type": mark, "aria": False} if isinstance(mark, str) else mark | {"aria": False}
        )
    return marked


def _mark(layer: Mapping[str, Any]) -> str:
    mark = layer.get("mark", "")
    return str(mark.get("type", "") if isinstance(mark, Mapping) else mark)


def on_screen(spec: Mapping[str, Any], is_dark: bool) -> dict[str, Any]:
    """Return a chart in the colours of the theme, on its paper.

    It brings the paper along: should the system turn dark while it is shown, it stays readable
    until the page is drawn anew.
    """
    themed = _darkened(spec) if is_dark else dict(spec)
    paper = PAPER["dark" if is_dark else "light"]
    return themed | {"config": {**themed.get("config", {}), "background": paper}}


def _darkened(part: Any) -> Any:
    """Return a part of a chart in the colours for a dark page; rows stay unchanged."""
    if isinstance(part, list):
        return [*map(_darkened, part)]
    if isinstance(part, Mapping):
        return {key: value if key == "data" else _darkened(value) for key, value in part.items()}
    return DARK.get(part.lower(), part) if isinstance(part, str) else part
