"""A table, declared once: its caption, whom a row is about, its columns and their form.

`laid_out` turns rows into text; the writers (terminal, HTML, Markdown, LaTeX, CSV) take it from
there. A row is a frozen dataclass with notes (`calibration.values.Noted`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from calibration.codes import AnyCode, NoteCode
from calibration.messages.form import quoted
from calibration.tables.notes import Remark, TableNote, table_notes
from calibration.tables.numbers import (
    COMPARISONS,
    NAMES,
    PAGE,
    Typeface,
    all_simulated,
    chance,
    fixed,
    icc_interval,
    interval,
    known,
    marked,
    place,
    scorer,
    whole,
)
from calibration.values import Noted

FRAGILE = (NoteCode.FRAGILE_PAIRS, NoteCode.FRAGILE_REPEATS)
Cell = Callable[[Any, Typeface], str]


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, what shows a row's cell under it, and the fields of a row that it shows.

    Words stand left, figures right. `wide` columns are left out where there is little room.
    """

    heading: str
    cell: Cell
    fields: tuple[str, ...] = ()
    is_words: bool = False
    wide: bool = False


@dataclass(frozen=True)
class Group:
    """Rows of a table under one heading; no heading where there is one group only."""

    heading: str
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Table:
    """A table as text. The first column names its row; all others are figures or `words`."""

    caption: str
    columns: tuple[str, ...]
    groups: tuple[Group, ...]
    notes: tuple[TableNote, ...] = ()
    words: frozenset[str] = frozenset()


@dataclass(frozen=True)
class TableSpec:
    """How rows become a table.

    Attributes
    ----------
    caption : what the table is, as a title
    about, first : the field that names a row, and the heading above the names
    named : makes the name that is shown of it; `str` where it is no scorer's
    within : the field that tells rows of one name apart, such as a criterion; notes name it
    columns : the others, in order
    in_columns : codes of notes that are not told below the table: a column says the same
    tells : fields of which one must be known for the rows to make a table
    wanted, most : which rows it shows, and how many at the most
    unwanted : what holds for the rows that it does not show, if that is worth saying
    reading : makes a line on how its figures are to be read, the first below the table
    """

    caption: str
    about: str
    first: str
    columns: tuple[Column, ...]
    in_columns: frozenset[AnyCode] = frozenset()
    tells: tuple[str, ...] = ()
    wanted: Callable[[Any], bool] = lambda _: True
    most: int | None = None
    named: Callable[[str], str] = scorer
    within: str = ""
    unwanted: str = ""
    reading: Callable[[Sequence[Any]], str] = lambda _: ""

    def shown(self, rows: Sequence[Any]) -> list[Any]:
        """Return the rows that the table shows."""
        return [row for row in rows if self.wanted(row)][: self.most]

    def rest(self, rows: Sequence[Any]) -> str:
        """Return what holds for the rows that it does not show, with their names; "" for none."""
        names = [_called(self, row) for row in rows if not self.wanted(row)]
        return f"{self.unwanted}: {', '.join(names)}" if self.unwanted and names else ""

    def says(self, rows: Sequence[Any]) -> bool:
        """Tell whether any row has a figure; a table of dashes is none."""
        if not self.tells:
            return bool(rows)
        return any(known(getattr(row, name)) for row in rows for name in self.tells)


def laid_out(
    spec: TableSpec,
    rows: Sequence[Noted],
    face: Typeface = PAGE,
    *,
    caption: str | None = None,
    grouped: bool = False,
    mark_each: bool = False,
    narrow: bool = False,
) -> Table:
    """Return rows as a table of text.

    Parameters
    ----------
    spec, rows, face : the table, its rows, and the signs of the medium
    caption : instead of the table's own
    grouped : put rows under their benchmarks
    mark_each : mark each row that rests on simulated raters, even where all do; else the caption
        says it once where all rows do
    narrow : leave out the columns that are for wide places
    """
    columns = [one for one in spec.columns if not (narrow and one.wide)]
    every = all_simulated(rows) and not mark_each and bool(rows)
    names = [_name(spec, row) if every else marked(_name(spec, row), row) for row in rows]
    heads = [place(str(getattr(row, "benchmark", ""))) if grouped else "" for row in rows]
    body = [
        (head, (name, *(one.cell(row, face) or face.none for one in columns)))
        for head, name, row in zip(heads, names, rows, strict=True)
    ]
    groups = tuple(
        Group(head, tuple(cells for _, cells in own))
        for head, own in groupby(body, key=lambda one: one[0])
    )
    remarks = [_remark(spec, row, head, every) for head, row in zip(heads, rows, strict=True)]
    reading = spec.reading(rows) if spec.says(rows) else ""
    title = spec.caption if caption is None else caption
    return Table(
        f"Simulated. {title}" if every else title,
        (spec.first, *(one.heading for one in columns)),
        groups,
        (*([TableNote(reading)] if reading else []), *table_notes(remarks, spec.in_columns)),
        frozenset(one.heading for one in columns if one.is_words),
    )


def _name(spec: TableSpec, row: Noted) -> str:
    return spec.named(f"{getattr(row, spec.about)}") + _fragile(row)


def _called(spec: TableSpec, row: Noted) -> str:
    """Return the name of a row as it stands in a sentence; somebody's own may hold a comma."""
    name = f"{getattr(row, spec.about)}"
    return spec.named(name) if name in NAMES else quoted(spec.named(name))


def _fragile(row: Noted) -> str:
    fragile = getattr(row, "scorer", "") in COMPARISONS and any(map(row.told, FRAGILE))
    return ", fragile" if fragile else ""


def _remark(spec: TableSpec, row: Noted, head: str, every: bool) -> Remark:
    """Return the notes of a row under its group, and its criterion where rows differ by it."""
    name = _called(spec, row) + _fragile(row)
    within = f"{getattr(row, spec.within)}" if spec.within else ""
    group = ", ".join(filter(None, (head, within)))
    return Remark(group, name if every else marked(name, row), row.notes)


def number(heading: str, name: str, digits: int = 2, *, wide: bool = False) -> Column:
    """Return a column of numbers with so many decimals."""
    return Column(
        heading, lambda row, face: fixed(getattr(row, name), digits, face), (name,), wide=wide
    )


def count(heading: str, name: str, *, wide: bool = False) -> Column:
    """Return a column of counts."""
    return Column(heading, lambda row, face: whole(getattr(row, name), face), (name,), wide=wide)


def probability(heading: str, name: str, *, wide: bool = False) -> Column:
    """Return a column of p values."""
    return Column(heading, lambda row, face: chance(getattr(row, name), face), (name,), wide=wide)


def between(heading: str, low: str, high: str, digits: int = 2, *, wide: bool = False) -> Column:
    """Return a column of intervals."""
    return Column(
        heading,
        lambda row, face: interval(getattr(row, low), getattr(row, high), digits, face),
        (low, high),
        wide=wide,
    )


def icc_between(
    heading: str, low: str, high: str, digits: int = 2, *, wide: bool = False
) -> Column:
    """Return a column of intervals of ICCs, or of differences of two; absurd ones in words."""
    return Column(
        heading,
        lambda row, face: icc_interval(getattr(row, low), getattr(row, high), digits, face),
        (low, high),
        wide=wide,
    )


def text(heading: str, name: str, *, wide: bool = False) -> Column:
    """Return a column of texts, shown as they are."""
    return Column(
        heading,
        lambda row, face: face.none if getattr(row, name) is None else f"{getattr(row, name)}",
        (name,),
        is_words=True,
        wide=wide,
    )


def share(heading: str, part: str, of: str, *, wide: bool = False) -> Column:
    """Return a column of "M of N"."""
    return Column(
        heading,
        lambda row, face: f"{whole(getattr(row, part), face)} of {whole(getattr(row, of), face)}",
        (part, of),
        wide=wide,
    )
