"""Jury against clinicians, response by response: two charts, and which responses lie where."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import streamlit as st

from annotate import charts, tables
from annotate.figures.shown import Chart, Pair
from calibration.tables.numbers import fixed

MOST_FAR, MOST_PICKED = 15, 50
NEAR = 1e-5


def show(drawn: Sequence[Chart], pairs: Sequence[Pair]) -> None:
    """Show both charts of each benchmark side by side, what was clicked on, and who is far apart."""
    if not drawn:
        st.html("<p class=\"mj-lead\">No response has both a jury's and a clinician's mean.</p>")
    for number, benchmark in enumerate(dict.fromkeys(one.benchmark for one in drawn)):
        rows = rows_of(next(one for one in pairs if one.benchmark == benchmark))
        own = [one for one in drawn if one.benchmark == benchmark]
        picked: dict[str, Mapping[str, Any]] = {}
        with st.container(key=f"beside-{number}"):
            places = st.columns(len(own), gap="medium")
        for one, place in zip(own, places, strict=True):
            with place:
                picked |= {row["response"]: row for row in _shown(one, rows)}
        if picked:
            found = [*picked.values()]
            more = len(found) - MOST_PICKED
            notes = [f"{more} more lie there."] if more > 0 else []
            st.html(_listed(found[:MOST_PICKED], "What you clicked on", notes))
        far = sorted(rows, key=lambda row: -abs(row["gap"]))[:MOST_FAR]
        st.html(_listed(far, "Farthest apart", []))


def rows_of(pair: Pair) -> list[dict[str, Any]]:
    """Return a row for each response: both means, and their difference, in points."""
    return [
        {"response": name, "clinicians": ours, "jury": theirs, "gap": theirs - ours}
        for name, ours, theirs in zip(pair.responses, pair.clinicians, pair.jury, strict=True)
    ]


def lying_at(
    rows: Sequence[Mapping[str, Any]], mark: Mapping[str, Any], *, is_scatter: bool
) -> Iterator[Mapping[str, Any]]:
    """Yield the responses of a place, or of a cell where the mark has two ends."""
    for row in rows:
        middle = (row["jury"] + row["clinicians"]) / 2
        x, y = (row["clinicians"], row["jury"]) if is_scatter else (middle, row["gap"])
        far_x, far_y = mark.get("x2", mark["x"]), mark.get("y2", mark["y"])
        if mark["x"] - NEAR <= x <= far_x + NEAR and mark["y"] - NEAR <= y <= far_y + NEAR:
            yield row


def _shown(one: Chart, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Show a chart; return the responses that were clicked on."""
    drawn = charts.plotted(one.spec)
    ends = [name for name in ("x", "y", "x2", "y2") if drawn and name in drawn[0]]
    mark = "rect" if "x2" in ends else "circle"
    spec = charts.pickable(one.spec, mark, *ends)
    marks = charts.show(spec, f"{one.name}-{one.benchmark}", one.caption, one.alt, rows)
    is_scatter = one.name == "scatter"
    return [row for mark in marks for row in lying_at(rows, mark, is_scatter=is_scatter)]


def _listed(rows: Sequence[Mapping[str, Any]], caption: str, notes: Sequence[str]) -> str:
    """Return responses as a table, each a link to the workbench."""
    columns = [
        tables.Column(
            "Response",
            lambda row: tables.link(
                row["response"], f"/workbench?response={quote(row['response'], safe='')}"
            ),
        ),
        tables.number("Clinicians, points", "clinicians"),
        tables.number("Jury, points", "jury"),
        tables.Column("Jury minus clinicians", lambda row: _signed(row["gap"])),
    ]
    return tables.table(rows, columns, caption, notes)


def _signed(value: float) -> str:
    said = fixed(value)
    return f"+{said}" if value > 0 and said.strip("0.") else said
