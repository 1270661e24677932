"""Figures as tables: HTML that a screen reader can walk through, numbers aligned, and CSV."""

import csv
import html
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from calibration.decision import Decision
from calibration.tables.numbers import DASH, fixed, whole
from calibration.tables.spec import Group, Table, TableNote
from calibration.writers import Markup, escaped, html_notes, html_table
from data.safe_text import guarded_name

Row = Mapping[str, Any]
Cell = Callable[[Row], str]
EACH_BENCHMARK = "Benchmark by benchmark"
NOTES = "How to read this table"
MOST_OPEN = 16  # rows: more are looked up rather than read
STYLE = (files("annotate") / "tables.css").read_text("utf-8")
SCRIPT = (files("annotate") / "tables.js").read_text("utf-8")


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


def table(
    rows: Sequence[Row], columns: Sequence[Column], caption: str, notes: Sequence[str] = ()
) -> str:
    """Return rows as a table for `st.html`; the first column names its row.

    Everything is escaped. Notes stand below it as a list.
    """
    cells = tuple(tuple(column.cell(row) for column in columns) for row in rows)
    shown = Table(
        caption,
        tuple(column.heading for column in columns),
        (Group("", cells),),
        tuple(map(TableNote, notes)),
        frozenset(column.heading for column in columns if column.is_words),
    )
    return of_table(shown)


def of_table(table: Table) -> str:
    """Return a table that is laid out, with its notes, for `st.html`."""
    return style() + html_table(table, on_screen=True)


def of_tables(several: Sequence[Table]) -> str:
    """Return tables for `st.html`: the first open, each other closed under what it is.

    Of a long one that is grouped the last group stands open, which is all groups combined.
    """
    opened = "".join(map(of_long_table, several[:1]))
    return opened + "".join(folded(one.caption, of_table(one)) for one in several[1:])


def of_long_table(table: Table) -> str:
    """Return a table with its notes; where it is long, its groups but the last are closed."""
    rows = sum(len(group.rows) for group in table.groups)
    if len(table.groups) == 1 or rows <= MOST_OPEN:
        return of_table(table)
    *each, last = table.groups
    others = replace(table, groups=tuple(each), notes=())
    return of_table(replace(table, groups=(last,))) + folded(EACH_BENCHMARK, of_table(others))


def folded(label: str, body: str, *, is_open: bool = False) -> str:
    """Return HTML that is closed until somebody opens it, under a label that says what it is.

    A browser finds words in it and opens it by itself. Where nothing is in it, nothing is there.
    """
    if not body:
        return ""
    state = " open" if is_open else ""
    summary = f"<summary>{html.escape(label)}</summary>"
    return f'{style()}<details class="mj-folded"{state}>{summary}{body}</details>'


def of_decision(decision: Decision) -> str:
    """Return the answer for `st.html`: the decision, why, on how much it rests, what to do next."""
    lines = "".join(f"<p>{escaped(sentence)}</p>" for sentence in decision.sentences)
    rests = f'<p class="mj-caption">Rests on: {escaped(decision.on)}</p>' if decision.basis else ""
    action = f"<p><b>Next:</b> {escaped(decision.action)}</p>" if decision.next else ""
    return (
        f'{style()}<section class="mj-decision mj-{decision.kind.value}" role="status">'
        f"<h2>{escaped(decision.headline)}</h2>{lines}{rests}{action}</section>"
    )


def of_verdict(headline: str, lines: Sequence[str], *, is_good: bool) -> str:
    """Return what came of a question for `st.html`: a sentence, and what is to be known of it."""
    first, *more = (escaped(f"{line[:1].upper()}{line[1:]}") for line in (headline, *lines))
    told = "".join(f"<p>{line}</p>" for line in more)
    kind = "mj-reached" if is_good else "mj-unreached"
    return f'{style()}<section class="mj-decision {kind}" role="status"><h2>{first}</h2>{told}</section>'


def with_notes_folded(table: Table) -> str:
    """Return a table for `st.html` with its notes closed below it."""
    notes = folded(NOTES, noted(table.notes))
    return of_table(replace(table, notes=())) + notes


def beside(table: Table) -> str:
    """Return a table for `st.html` with its notes at its right, where there is room for them."""
    return f'<div class="mj-beside">{of_table(replace(table, notes=()))}<div>{noted(table.notes)}</div></div>'


def sortable(key: str, table: Table) -> None:
    """Show a table whose headings sort it, in the browser: by number where a column has numbers."""
    _mount()(key=key, data=[of_table(table)])


@cache
def _mount() -> Callable[..., object]:
    """Return the component, which Streamlit is told of once."""
    import streamlit as st

    component: Callable[..., object] = st.components.v2.component(
        "medjury_sortable", js=SCRIPT, isolate_styles=False
    )
    return component


def noted(notes: Sequence[TableNote | str]) -> str:
    """Return notes as a list, of many only those that warn, the others folded; nothing for none."""
    every = [note if isinstance(note, TableNote) else TableNote(note) for note in notes]
    return html_notes(every, on_screen=True)


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


def link(text: str, to: str) -> Markup:
    """Return a link to another screen."""
    return Markup(f'<a href="{html.escape(to)}" target="_self">{html.escape(text)}</a>')


def _harmless(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, list | tuple | set):
        value = ", ".join(map(str, value))
    return guarded_name(value) if isinstance(value, str) else value
