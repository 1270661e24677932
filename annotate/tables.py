"""Figures as tables: HTML that a screen reader can walk through, numbers aligned, and CSV."""

import csv
import html
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from calibration.decision import Decision
from calibration.tables.notes import TableNote, parted
from calibration.tables.numbers import DASH, chance, fixed, interval, whole
from calibration.tables.spec import Table
from data.formula import guarded_name

Row = Mapping[str, Any]
Cell = Callable[[Row], str]
STYLE = (files("annotate") / "tables.css").read_text("utf-8")
SCRIPT = (files("annotate") / "tables.js").read_text("utf-8")


class Markup(str):
    """HTML that is ready: what is of others in it is escaped."""


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and what shows a row's cell under it; words stand left, figures right."""

    heading: str
    cell: Cell
    is_words: bool = False


def words(heading: str, name: str) -> Column:
    """Return a column of texts, shown as they are."""
    return Column(heading, lambda row: DASH if row.get(name) is None else f"{row[name]}", True)


def number(heading: str, name: str, digits: int = 2) -> Column:
    """Return a column of numbers with so many decimals; a dash where undefined."""
    return Column(heading, lambda row: fixed(row.get(name), digits))


def count(heading: str, name: str) -> Column:
    """Return a column of counts."""
    return Column(heading, lambda row: whole(row.get(name)))


def between(heading: str, low: str, high: str, digits: int = 2) -> Column:
    """Return a column of intervals; a dash where undefined."""
    return Column(heading, lambda row: interval(row.get(low), row.get(high), digits) or DASH)


def probability(heading: str, name: str) -> Column:
    """Return a column of p values."""
    return Column(heading, lambda row: chance(row.get(name)))


def table(
    rows: Sequence[Row], columns: Sequence[Column], caption: str, notes: Sequence[str] = ()
) -> str:
    """Return rows as a table for `st.html`; the first column names its row.

    Everything is escaped. Notes stand below it as a list.
    """
    cells = [[one.cell(row) for one in columns] for row in rows]
    groups = [{"heading": "", "rows": cells}]
    named = [one.heading for one in columns]
    left = {one.heading for one in columns if one.is_words}
    return of_report(
        {"caption": caption, "columns": named, "groups": groups, "notes": notes, "words": left}
    )


def of_report(told: Mapping[str, Any]) -> str:
    """Return a `calibration.report.tables.Table`, as a mapping, as a table for `st.html`."""
    heads = "".join(
        f'<th scope="col"{_side(one, told)}>{escaped(one)}</th>' for one in told["columns"]
    )
    body = "".join(_group(one, told) for one in told["groups"])
    return (
        f'{style()}<div class="mj-scroll" role="region" tabindex="0" '
        f'aria-label="{escaped(told["caption"])}"><table class="mj-figures">'
        f"<caption>{escaped(told['caption'])}</caption><thead><tr>{heads}</tr></thead>"
        f"{body}</table></div>{noted(told['notes'])}"
    )


def of_table(table: Table) -> str:
    """Return a table that is laid out, with its notes, for `st.html`."""
    groups = [{"heading": one.heading, "rows": one.rows} for one in table.groups]
    shown = {"caption": table.caption, "columns": table.columns, "groups": groups}
    return of_report(shown | {"notes": table.notes, "words": table.words})


def of_decision(decision: Decision) -> str:
    """Return the answer for `st.html`: the decision, why, on how much it rests, what to do next."""
    lines = "".join(f"<p>{escaped(one)}</p>" for one in decision.sentences)
    rests = f'<p class="mj-caption">Rests on: {escaped(decision.on)}</p>' if decision.basis else ""
    action = f"<p><b>Next:</b> {escaped(decision.action)}</p>" if decision.next else ""
    return (
        f'{style()}<section class="mj-decision mj-{decision.kind.value}" role="status">'
        f"<h2>{escaped(decision.headline)}</h2>{lines}{rests}{action}</section>"
    )


def sortable(key: str, rows: Sequence[Row], columns: Sequence[Column], caption: str) -> None:
    """Show a table whose headings sort it, in the browser: by number where a column has numbers."""
    shown = table(rows, columns, caption)
    _mount()(key=key, data=[shown])


@cache
def _mount() -> Callable[..., object]:
    """Return the component, which Streamlit is told of once."""
    import streamlit as st

    found: Callable[..., object] = st.components.v2.component(
        "medjury_sortable", js=SCRIPT, isolate_styles=False
    )
    return found


def noted(notes: Sequence[TableNote | str]) -> str:
    """Return notes as a list, of many only those that warn, the others folded; nothing for none."""
    every = [one if isinstance(one, TableNote) else TableNote(one) for one in notes]
    loud, quiet = ([one.text for one in part] for part in parted(every))
    more = f"{len(quiet)} more notes: further intervals, and what they rest on"
    folded = (
        f'<details class="mj-folded"><summary class="mj-caption">{more}</summary>'
        f"{listed(quiet)}</details>"
    )
    return listed(loud) + (folded if quiet else "")


def listed(notes: Sequence[str]) -> str:
    """Return all notes as a list."""
    items = "".join(f"<li>{escaped(one)}</li>" for one in notes)
    return f'<ul class="mj-notes">{items}</ul>' if items else ""


def csv_of(rows: Sequence[Row]) -> str:
    """Return rows as CSV, in full precision, empty where undefined.

    A text that a spreadsheet would run as a formula gets a ' in front, as in an export.
    """
    names = [*dict.fromkeys(name for row in rows for name in row)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([[_harmless(row.get(name)) for name in names] for row in rows])
    return out.getvalue()


def style() -> str:
    """Return the style sheet of tables and of what stands around them."""
    return f"<style>{STYLE}</style>"


def escaped(text: object) -> str:
    """Return a text as HTML shows it word for word; what is HTML already, as it is."""
    return text if isinstance(text, Markup) else html.escape(str(text))


def link(text: str, to: str) -> Markup:
    """Return a link to another screen."""
    return Markup(f'<a href="{html.escape(to)}" target="_self">{html.escape(text)}</a>')


def _group(group: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    """Return rows under their heading, which is none where there is one group only."""
    span = len(told["columns"])
    head = (
        f'<tr><th scope="rowgroup" colspan="{span}" class="mj-group">{escaped(group["heading"])}'
        "</th></tr>"
        if group["heading"]
        else ""
    )
    return f"<tbody>{head}{''.join(_row(cells, told) for cells in group['rows'])}</tbody>"


def _row(cells: Sequence[str], told: Mapping[str, Any]) -> str:
    rest = "".join(
        f"<td{_side(name, told)}>{escaped(cell)}</td>"
        for name, cell in zip(told["columns"][1:], cells[1:], strict=True)
    )
    return f'<tr><th scope="row">{escaped(cells[0])}</th>{rest}</tr>'


def _side(column: str, told: Mapping[str, Any]) -> str:
    return ' class="mj-word"' if column in told["words"] else ""


def _harmless(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, list | tuple | set):
        value = ", ".join(map(str, value))
    return guarded_name(value) if isinstance(value, str) else value
