"""A table, declared once: its columns and their form, and the notes below it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from calibration.notes import Note, Noted, quoted
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

FEW_LOST = 0.05  # of the resamples: with fewer lost an interval means what it says
FEW_NOTES = 6  # so many are read at a glance
IN_EVERY_TABLE = ("simulated", "coverage")  # the caption and a column say it
QUIET = (  # they only add figures
    "mixed_model",
    "held_iccs",
    "corrected",
    "held_on",
    "population_few",
    "population_undefined",
    "pairs_too_few",
    "shared_ac2",
    "single_scores",
    "given_again",
    "given_again_each",
    "own_means",
    "first_scores",
)
FRAGILE = ("fragile_pairs", "fragile_repeats")
Cell = Callable[[Any, Typeface], str]


@dataclass(frozen=True, slots=True)
class RowNotes:
    """The notes of one row, under its group's heading and its name."""

    group: str
    name: str
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class TableNote:
    """A note below a table: its words, with the rows it holds for.

    `is_quiet` tells whether it only adds figures; `code` is None of what is no note on a figure.
    """

    text: str
    is_quiet: bool = False
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, what shows a row's cell under it, and the fields of a row that it shows.

    Words stand left, figures right. `wide` columns are left out where there is little room. `help`
    is a sentence for somebody who has not met the statistic.
    """

    heading: str
    cell: Cell
    fields: tuple[str, ...] = ()
    is_words: bool = False
    wide: bool = False
    help: str = ""

    def meaning(self, sentence: str) -> "Column":
        """Return the column with its help."""
        return replace(self, help=sentence)


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
    in_columns: frozenset[str] = frozenset()
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


def _remark(spec: TableSpec, row: Noted, head: str, every: bool) -> RowNotes:
    """Return the notes of a row under its group, and its criterion where rows differ by it."""
    name = _called(spec, row) + _fragile(row)
    within = f"{getattr(row, spec.within)}" if spec.within else ""
    group = ", ".join(filter(None, (head, within)))
    return RowNotes(group, name if every else marked(name, row), row.notes)


def number(heading: str, name: str, digits: int = 2, *, wide: bool = False) -> Column:
    """Return a column of numbers with so many decimals."""
    return Column(
        heading, lambda row, face: fixed(getattr(row, name), digits, face), (name,), wide=wide
    )


def signed(heading: str, name: str, *, wide: bool = False) -> Column:
    """Return a column of differences with their sign."""

    def cell(row: Any, face: Typeface) -> str:
        value = getattr(row, name)
        sign = "+" if known(value) and value > 0 else ""
        return f"{sign}{fixed(value, 2, face)}"

    return Column(heading, cell, (name,), wide=wide)


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


def table_notes(rows: Sequence[RowNotes], left_out: Collection[str] = ()) -> tuple[TableNote, ...]:
    """Return each note once, with the rows it holds for, or alone where it holds for all."""
    holds: dict[str, dict[tuple[str, str], Note]] = {}
    for row in rows:
        for note in row.notes:
            if note.code not in IN_EVERY_TABLE and note.code not in left_out:
                holds.setdefault(note.general or str(note), {})[row.group, row.name] = note
    everybody = [*dict.fromkeys((row.group, row.name) for row in rows)]
    return tuple(_note(words, own, everybody) for words, own in holds.items())


def parted(notes: Sequence[TableNote]) -> tuple[list[TableNote], list[TableNote]]:
    """Return the notes that warn, and those that only add figures; all warn where there are few."""
    quiet = [note for note in notes if note.is_quiet and len(notes) > FEW_NOTES]
    return [note for note in notes if note not in quiet], quiet


def is_quiet(note: Note) -> bool:
    """Tell whether a note only adds figures, and warns of nothing."""
    if note.code == "undefined_resamples":
        return bool(note["lost"] <= FEW_LOST * note["resamples"])
    return note.code in QUIET


def _note(
    words: str, own: dict[tuple[str, str], Note], everybody: Sequence[tuple[str, str]]
) -> TableNote:
    for_all = len(own) == len(everybody) > 1
    text = words if for_all else f"{_whom([*own], everybody)}: {words}"
    notes = [*own.values()]
    return TableNote(text, all(map(is_quiet, notes)), notes[0].code)


def _whom(rows: Sequence[tuple[str, str]], everybody: Sequence[tuple[str, str]]) -> str:
    """Return rows by name, group by group; a group alone where all its rows are meant.

    The same rows in every group are named once.
    """
    if everywhere := _in_every_group(rows, {group for group, _ in everybody}):
        return f"{', '.join(everywhere)}, everywhere"
    return "; ".join(_groups(rows, everybody))


def _groups(rows: Iterable[tuple[str, str]], everybody: Sequence[tuple[str, str]]) -> Iterator[str]:
    for group, own in groupby(rows, key=lambda row: row[0]):
        names = [name for _, name in own]
        all_of_it = len(names) > 1 and len(names) == sum(
            heading == group for heading, _ in everybody
        )
        listed = "" if group and all_of_it else ", ".join(names)
        yield ", ".join(filter(None, (group, listed)))


def _in_every_group(rows: Sequence[tuple[str, str]], groups: Collection[str]) -> Sequence[str]:
    """Return the rows that are meant, if those of every group of several have the same names."""
    own = {group: [name for heading, name in rows if heading == group] for group in groups}
    first = own[rows[0][0]]
    same = len(groups) > 1 and all(names == first for names in own.values())
    return first if same else ()
