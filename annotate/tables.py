"""Figures as tables: HTML that a screen reader can walk through, numbers aligned, and CSV."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from calibration.decision import Decision
from calibration.tables.numbers import DASH, whole
from calibration.tables.spec import Group, Table, TableNote
from calibration.writers import escaped, html_table

Row = Mapping[str, Any]
Cell = Callable[[Row], str]
STYLE = (files("annotate") / "tables.css").read_text("utf-8")


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and what shows a row's cell under it; words stand left, figures right."""

    heading: str
    cell: Cell
    is_words: bool = False


def words(heading: str, name: str) -> Column:
    """Return a column of texts, shown as they are."""
    return Column(heading, lambda row: DASH if row.get(name) is None else f"{row[name]}", True)


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


def of_decision(decision: Decision) -> str:
    """Return the answer for `st.html`: the decision, why, on how much it rests, what to do next."""
    lines = "".join(f"<p>{escaped(sentence)}</p>" for sentence in decision.sentences)
    rests = f'<p class="mj-caption">Rests on: {escaped(decision.on)}</p>' if decision.basis else ""
    action = f"<p><b>Next:</b> {escaped(decision.action)}</p>" if decision.next else ""
    return (
        f'{style()}<section class="mj-decision mj-{decision.kind.value}" role="status">'
        f"<h2>{escaped(decision.headline)}</h2>{lines}{rests}{action}</section>"
    )


def style() -> str:
    """Return the style sheet of tables and of what stands around them."""
    return f"<style>{STYLE}</style>"
