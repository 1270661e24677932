"""A table, declared once: its columns and their form, and the notes below it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
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
QUIET = {  # they only add figures
    *("mixed_model", "held_iccs", "corrected", "held_on", "population_few", "population_undefined"),
    *("pairs_too_few", "given_again", "given_again_each", "own_means", "first_scores"),
}
FRAGILE = ("fragile_pairs", "fragile_repeats")
Cell = Callable[[Any, Typeface], str]
Named = tuple[str, str]  # a row's group and its name
RowNotes = tuple[str, str, Sequence[Note]]  # the same, and the row's notes
ICC_SCALE = (
    "1 is exactly together, even if one side is always stricter; 0 is no more than chance; the 2 "
    "says that two columns of scores are compared"
)
ICC_WORDS = f"ICC(C,2) says how far the scores of two sides rise and fall together: {ICC_SCALE}."
INTERVAL = (
    "95 % interval of the figure before it: how far it moves with other instances like these."
)
P = "Chance of a difference at least this large if there were none."
P_HOLM = (
    "Chance of a difference this large if there were none, made larger for the number of rows "
    "tested in this table (Holm), so that one in many is not taken for a finding."
)


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
    """A heading, and what shows a row's cell under it.

    Words stand left, figures right. `wide` columns are left out where there is little room. `help`
    is a sentence for somebody who has not met the statistic.
    """

    heading: str
    cell: Cell
    _: KW_ONLY
    is_words: bool = False
    wide: bool = False
    help: str = ""


@dataclass(frozen=True)
class Group:
    """Rows of a table under one heading; no heading where there is one group only."""

    heading: str
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Table:
    """A table as text. The first column names its row; all others are figures or `words`.

    `help` is heading -> sentence, of the columns that have one.
    """

    caption: str
    columns: tuple[str, ...]
    groups: tuple[Group, ...]
    notes: tuple[TableNote, ...] = ()
    words: frozenset[str] = frozenset()
    help: Mapping[str, str] = field(default_factory=dict)


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
    wanted : which rows it shows
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
    named: Callable[[str], str] = scorer
    within: str = ""
    unwanted: str = ""
    reading: Callable[[Sequence[Any]], str] = lambda _: ""

    def shown(self, rows: Sequence[Any]) -> list[Any]:
        """Return the rows that the table shows."""
        return [row for row in rows if self.wanted(row)]

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
    names = [spec.named(f"{getattr(row, spec.about)}") + _fragile(row) for row in rows]
    names = names if every else [*map(marked, names, rows)]
    heads = [place(str(getattr(row, "benchmark", ""))) if grouped else "" for row in rows]
    body = [
        (head, (name, *(one.cell(row, face) or face.none for one in columns)))
        for head, name, row in zip(heads, names, rows, strict=True)
    ]
    groups = tuple(
        Group(head, tuple(cells for _, cells in own))
        for head, own in groupby(body, key=lambda one: one[0])
    )
    remarks = [
        (
            ", ".join(filter(None, (head, f"{getattr(row, spec.within)}" if spec.within else ""))),
            named if every else marked(named, row),
            row.notes,
        )
        for head, row in zip(heads, rows, strict=True)
        for named in [_called(spec, row) + _fragile(row)]
    ]
    reading = spec.reading(rows) if spec.says(rows) else ""
    title = spec.caption if caption is None else caption
    return Table(
        f"Simulated. {title}" if every else title,
        (spec.first, *(one.heading for one in columns)),
        groups,
        (*([TableNote(reading)] if reading else []), *table_notes(remarks, spec.in_columns)),
        frozenset(one.heading for one in columns if one.is_words),
        {one.heading: one.help for one in columns if one.help},
    )


def _called(spec: TableSpec, row: Noted) -> str:
    """Return the name of a row as it stands in a sentence; somebody's own may hold a comma."""
    name = f"{getattr(row, spec.about)}"
    return spec.named(name) if name in NAMES else quoted(spec.named(name))


def _fragile(row: Noted) -> str:
    fragile = getattr(row, "scorer", "") in COMPARISONS and any(map(row.told, FRAGILE))
    return ", fragile" if fragile else ""


def number(heading: str, name: str, digits: int = 2, **own: Any) -> Column:
    """Return a column of numbers with so many decimals; here and below, `own` is for `Column`."""
    return Column(heading, lambda row, face: fixed(getattr(row, name), digits, face), **own)


def icc(name: str = "icc", digits: int = 3, **own: Any) -> Column:
    """Return a column of the ICC of two sides."""
    return number("ICC(C,2)", name, digits, help=ICC_WORDS, **own)


def signed(heading: str, name: str, **own: Any) -> Column:
    """Return a column of differences with their sign."""

    def cell(row: Any, face: Typeface) -> str:
        value = getattr(row, name)
        sign = "+" if known(value) and value > 0 else ""
        return f"{sign}{fixed(value, 2, face)}"

    return Column(heading, cell, **own)


def count(heading: str, name: str, **own: Any) -> Column:
    """Return a column of counts."""
    return Column(heading, lambda row, face: whole(getattr(row, name), face), **own)


def probability(heading: str, name: str, **own: Any) -> Column:
    """Return a column of p values; one with "Holm" in its heading is corrected so."""
    words = P_HOLM if "Holm" in heading else P
    return Column(
        heading, lambda row, face: chance(getattr(row, name), face), **{"help": words} | own
    )


def between(heading: str, low: str, high: str, digits: int = 2, **own: Any) -> Column:
    """Return a column of 95 % intervals."""
    return Column(
        heading,
        lambda row, face: interval(getattr(row, low), getattr(row, high), digits, face),
        **{"help": INTERVAL} | own,
    )


def icc_between(heading: str, low: str, high: str, digits: int = 2, **own: Any) -> Column:
    """Return a column of intervals of ICCs, or of differences of two; absurd ones in words."""
    return Column(
        heading,
        lambda row, face: icc_interval(getattr(row, low), getattr(row, high), digits, face),
        **{"help": INTERVAL} | own,
    )


def text(heading: str, name: str, **own: Any) -> Column:
    """Return a column of texts, shown as they are."""

    def cell(row: Any, face: Typeface) -> str:
        value = getattr(row, name)
        return face.none if value is None else f"{value}"

    return Column(heading, cell, is_words=True, **own)


def share(heading: str, part: str, of: str, **own: Any) -> Column:
    """Return a column of "M of N"."""
    return Column(
        heading,
        lambda row, face: f"{whole(getattr(row, part), face)} of {whole(getattr(row, of), face)}",
        **own,
    )


def table_notes(rows: Sequence[RowNotes], left_out: Collection[str] = ()) -> tuple[TableNote, ...]:
    """Return each note once, with the rows it holds for, or alone where it holds for all.

    `rows` are group, name and notes, in the order of the table.
    """
    holds: dict[str, dict[tuple[str, str], Note]] = {}
    for group, name, notes in rows:
        for note in notes:
            if note.code not in IN_EVERY_TABLE and note.code not in left_out:
                holds.setdefault(note.general or str(note), {})[group, name] = note
    everybody = [*dict.fromkeys((group, name) for group, name, _ in rows)]
    shown = []
    for words, own in holds.items():
        for_all = len(own) == len(everybody) > 1
        line = words if for_all else f"{_whom([*own], everybody)}: {words}"
        first = next(iter(own.values()))
        shown.append(TableNote(line, all(map(is_quiet, own.values())), first.code))
    return tuple(shown)


def parted(notes: Sequence[TableNote]) -> tuple[list[TableNote], list[TableNote]]:
    """Return the notes that warn, and those that only add figures; all warn where there are few."""
    quiet = [note for note in notes if note.is_quiet and len(notes) > FEW_NOTES]
    return [note for note in notes if note not in quiet], quiet


def is_quiet(note: Note) -> bool:
    """Tell whether a note only adds figures, and warns of nothing."""
    if note.code == "undefined_resamples":
        return bool(note["lost"] <= FEW_LOST * note["resamples"])
    return note.code in QUIET


def _whom(rows: Sequence[Named], everybody: Sequence[Named]) -> str:
    """Return rows by name, group by group; a group alone where all its rows are meant.

    The same rows in every group are named once.
    """
    groups = {group for group, _ in everybody}
    own = {group: [name for heading, name in rows if heading == group] for group in groups}
    first = own[rows[0][0]]
    if len(groups) > 1 and all(names == first for names in own.values()):
        return f"{', '.join(first)}, everywhere"
    return "; ".join(_groups(rows, everybody))


def _groups(rows: Sequence[Named], everybody: Sequence[Named]) -> Iterator[str]:
    for group, own in groupby(rows, key=lambda row: row[0]):
        names = [name for _, name in own]
        in_group = sum(heading == group for heading, _ in everybody)
        is_all = group and 1 < len(names) == in_group
        yield ", ".join(filter(None, (group, *([] if is_all else names))))
