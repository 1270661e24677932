"""The tables of a report: captions, headings and cells as text, ready for any format."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from calibration.scores import COMBINED
from calibration.tables.numbers import (
    SIMULATED,
    chance,
    fixed,
    interval,
    is_simulated,
    known,
    marked,
    scorer,
    whole,
)

Row = Mapping[str, Any]
Cell = Callable[[Row], str]
SCORED = "scored "
SEVERAL = re.compile(r"^\d+ responses from \d+ instances?: ")
KIND = re.compile(r"(?:^|(?<=[\s(]))(?:metric|juror):(?=\w)")  # before a scorer's name
COMPARISONS = ("clinicians", "like_for_like", "intra_rater")  # each may rest on a handful
FRAGILE = "fragile: "  # begins a note; the row's name says it too
EMPTY = "\N{EN DASH}"


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
    notes: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Shape:
    """How rows become a table: whom a row is about, and a cell for each heading.

    Notes that begin like one of `in_columns` are left out: a column says the same.
    """

    about: str
    first: str
    columns: Mapping[str, Cell]
    words: tuple[str, ...] = ()
    in_columns: tuple[str, ...] = ()

    def table(self, caption: str, rows: Sequence[Row], grouped: bool = False) -> Table:
        """Return the rows as a table, in groups by benchmark where they are of several.

        Where all rows rest on simulated raters the caption says so, else the rows that do.
        """
        every = all(map(is_simulated, rows))
        names = [self._named(row) if every else self._marked(row) for row in rows]
        titled = f"Simulated. {caption}" if every else caption
        return self._laid_out(titled, rows, names, grouped)

    def marked(self, caption: str, rows: Sequence[Row]) -> Table:
        """Return the rows in groups by benchmark, each that rests on simulated raters marked."""
        return self._laid_out(caption, rows, [self._marked(row) for row in rows], grouped=True)

    def _laid_out(
        self, caption: str, rows: Sequence[Row], names: Sequence[str], grouped: bool
    ) -> Table:
        heads = [place(str(row["benchmark"])) if grouped else "" for row in rows]
        body = [
            (head, (name, *(cell(row) or EMPTY for cell in self.columns.values())))
            for head, name, row in zip(heads, names, rows, strict=True)
        ]
        groups = tuple(
            Group(head, tuple(cells for _, cells in own))
            for head, own in groupby(body, key=lambda one: one[0])
        )
        said = [Said(*one) for one in zip(heads, names, map(self._notes, rows), strict=True)]
        columns = (self.first, *self.columns)
        return Table(caption, columns, groups, tuple(told(said)), frozenset(self.words))

    def _named(self, row: Row) -> str:
        return scorer(f"{row[self.about]}") + (", fragile" if is_fragile(row) else "")

    def _marked(self, row: Row) -> str:
        return marked(self._named(row), row)

    def _notes(self, row: Row) -> tuple[str, ...]:
        left_out = (SIMULATED, SCORED, *self.in_columns)
        notes = [one for one in row["note"].split("; ") if one and not one.startswith(left_out)]
        if is_fragile(row):
            notes = [one.removeprefix(FRAGILE) for one in notes]
        plain = (KIND.sub("", one) for one in notes)
        return tuple(SEVERAL.sub("several responses of an instance: ", one) for one in plain)


def is_fragile(row: Row) -> bool:
    """Tell whether a comparison like for like, a pair or a repeat rests on a handful."""
    return row.get("scorer") in COMPARISONS and FRAGILE in row["note"]


def place(benchmark: str) -> str:
    """Return a benchmark as a heading."""
    return "All benchmarks combined" if benchmark == COMBINED else benchmark


@dataclass(frozen=True)
class Said:
    """What is noted of one row: its group's heading, its name and the notes."""

    group: str
    name: str
    notes: tuple[str, ...]


def told(rows: Sequence[Said]) -> Iterator[str]:
    """Yield each note once, with the rows it holds for, or alone where it holds for all."""
    holds: dict[str, dict[tuple[str, str], None]] = {}
    for row in rows:
        for note in row.notes:
            holds.setdefault(note, {})[row.group, row.name] = None
    everybody = dict.fromkeys((row.group, row.name) for row in rows)
    for note, who in holds.items():
        whole_table = who.keys() == everybody.keys() and len(everybody) > 1
        yield note if whole_table else f"{_whom(who, everybody)}: {note}"


def _whom(who: Iterable[tuple[str, str]], everybody: Iterable[tuple[str, str]]) -> str:
    """Return rows by name, group by group; a group alone where all its rows are meant.

    The same rows in every group are named once.
    """
    who = [*who]
    parts = []
    if everywhere := _in_every_group(who, {group for group, _ in everybody}):
        return f"{', '.join(everywhere)}, everywhere"
    for group, own in groupby(who, key=lambda one: one[0]):
        names = [name for _, name in own]
        all_of_it = len(names) > 1 and len(names) == sum(one[0] == group for one in everybody)
        listed = "" if group and all_of_it else ", ".join(names)
        parts.append(", ".join(filter(None, (group, listed))))
    return "; ".join(parts)


def _in_every_group(who: Sequence[tuple[str, str]], groups: set[str]) -> Sequence[str]:
    """Return the rows that are meant, if those of every group of several have the same names."""
    own = {group: [name for heading, name in who if heading == group] for group in groups}
    first = own[who[0][0]]
    same = len(groups) > 1 and all(names == first for names in own.values())
    return first if same else ()


def number(name: str, digits: int = 2) -> Cell:
    """Return what shows a number with so many decimals."""
    return lambda row: fixed(row[name], digits)


def count(name: str) -> Cell:
    """Return what shows a count."""
    return lambda row: whole(row[name])


def probability(name: str) -> Cell:
    """Return what shows a p value."""
    return lambda row: chance(row[name])


def between(low: str, high: str) -> Cell:
    """Return what shows an interval."""
    return lambda row: interval(row[low], row[high])


def text(name: str) -> Cell:
    """Return what shows a value as it is."""
    return lambda row: EMPTY if row[name] is None else f"{row[name]}"


def scored(row: Row) -> str:
    """Return how many responses a figure rests on, and of how many."""
    if row["scorer"] == "clinicians":
        return f"{whole(row['n_responses'])} shared"
    total = row["n_responses"] + (row["n_missing"] if known(row["n_missing"]) else 0)
    return f"{whole(row['n_responses'])} of {whole(total)}"
