"""Files of responses, one row a response, with columns `group:NAME`; and of pairs, with both responses."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from data.importers.ratings import pair_id_of
from data.importers.rows import (
    UNNAMED,
    Origin,
    ResponseRow,
    benchmark_of,
    is_name,
    made_id,
    meant,
    response_row,
)
from data.importers.table import Cells, TableFile
from data.safe_text import unguarded

REQUIRED = ("instance_id", "model", "response")
TEXTS = ("context", "prompt", "reference", "checklist")
NAMES = ("instance_id", "model", "response_id", "benchmark")
ALL = "instance_id, benchmark, context, prompt, reference, response_id, model, response"
ID_MADE = "id_made"  # of rows that a tool's reader makes: "yes" where it made the id
COLUMNS = ("benchmark", "response_id", *REQUIRED, *TEXTS)
SIDES = ("first", "second")
PAIRS_NEED = ("instance_id", "first_model", "first", "second_model", "second")
PAIR_COLUMNS = ("pair_id", "benchmark", *TEXTS[:3], *PAIRS_NEED, "first_id", "second_id")
GROUP = "group:"
GROUP_NAME = re.compile(r"[^\W\d][\w.-]{0,39}")
LONGEST_GROUP = 60  # characters: a longer one is a text, and may be a patient's
RESERVED = "specialty"  # clinicians have one; it groups them by itself
AUTHORS = {"model", "author", "system", "llm", "provider", "vendor", "developer", "generator"}


class ResponseFile:
    """A file of responses; iterating gives one `ResponseRow` a row.

    Parameters
    ----------
    table
        The file.
    benchmark
        The benchmark of rows that name none. A row that names another is refused.

    Attributes
    ----------
    ignored
        Columns of the file that mean nothing here, of JSON Lines those of the rows read so far.
    not_taken
        Ignored column -> its values that are not empty, in the rows read so far.
    meant
        Ignored column -> the absent one that it is probably meant to be.
    groups
        Name -> its column `group:NAME`.
    contexts
        Rows read so far that have a context.

    Raises
    ------
    BadFile
        If a column that is needed is missing.
    BadRow
        While iterating, at the first row that is wrong.
    """

    def __init__(self, table: TableFile, benchmark: str | None = None) -> None:
        self.table, self.benchmark = table, benchmark
        self.ignored: tuple[str, ...] = ()
        self.not_taken = Counter[str]()
        self.meant: dict[str, str] = {}
        self.contexts = 0
        self.groups = _group_columns(table)
        self._ignore(table.columns)
        _refuse_without(table, REQUIRED, "responses", benchmark, ALL)

    def __iter__(self) -> Iterator[ResponseRow]:
        self.not_taken.clear()
        for origin, cells in self.table:
            self._ignore(cells)
            self.not_taken.update(name for name in self.ignored if cells.get(name, "").strip())
            row = _row(origin, cells, self.benchmark, self._groups(origin, cells))
            self.contexts += bool(row.context.strip())
            yield row

    def responses(self) -> Iterator[ResponseRow]:
        """Yield the rows."""
        return iter(self)

    def _ignore(self, names: Iterable[str]) -> None:
        """Keep the names of unknown columns; later rows of JSON Lines may add some."""
        for name in names:
            named = name if is_name(name) or name in self.table.columns else UNNAMED
            if name in (*COLUMNS, ID_MADE) or name in self.groups.values() or named in self.ignored:
                continue
            self.ignored += (named,)
            absent = [name for name in COLUMNS if name not in self.table.columns]
            if close := meant(name, absent):
                self.meant[name] = close

    def _groups(self, origin: Origin, cells: Cells) -> tuple[tuple[str, str], ...]:
        """Return each group's name with the row's value; an empty cell is in no group."""
        if later := [key for key in cells if is_group(key) and key not in self.groups.values()]:
            shown = later[0].strip()[:LONGEST_GROUP]
            raise origin.wrong(
                "group", "", f"the first row has no {shown!r}; give it there, or null"
            )
        values = {name: cells.get(column, "").strip() for name, column in self.groups.items()}
        for name, value in values.items():
            if len(value) > LONGEST_GROUP or not value.isprintable():
                raise origin.wrong(
                    "group", "", f"{GROUP}{name} takes a short name, such as de or over 65"
                )
        return tuple((name, value) for name, value in values.items() if value)


def _refuse_without(
    table: TableFile, needed: Iterable[str], things: str, benchmark: str | None, all_columns: str
) -> None:
    """Refuse a file that lacks a column that is needed."""
    missing = [name for name in needed if name not in table.columns]
    if not {"context", "prompt"} & set(table.columns):
        missing.append("context")
    if missing:
        raise table.wrong(
            f"column {missing[0]!r} is missing (a file of {things} has {all_columns}; {table.header}); "
            "columns of other names need a map"
        )
    if benchmark is None and "benchmark" not in table.columns:
        raise table.wrong("column 'benchmark' is missing; add it or give --benchmark NAME")


@dataclass(frozen=True, slots=True)
class PairRow:
    """A pair with the rows of its two responses."""

    origin: Origin
    pair_id: str
    rows: tuple[ResponseRow, ResponseRow]

    @property
    def names(self) -> tuple[str, str, str]:
        """The ids of the pair and of its responses."""
        first, second = self.rows
        return self.pair_id, first.response_id, second.response_id


class PairFile:
    """A file of pairs; iterating gives one `PairRow` a row.

    Ids that it does not give are made: a pair's from its texts, a response's from its pair.

    Attributes
    ----------
    ignored
        Columns of the file that mean nothing here.

    Raises
    ------
    BadFile
        If a column that is needed is missing.
    BadRow
        While iterating, at the first row that is wrong.
    """

    def __init__(self, table: TableFile, benchmark: str | None = None) -> None:
        self.table, self.benchmark, self.contexts = table, benchmark, 0
        self.ignored = tuple(one for one in table.columns if one not in (*PAIR_COLUMNS, ID_MADE))
        self.not_taken, self.meant = Counter[str](), dict[str, str]()
        _refuse_without(table, PAIRS_NEED, "pairs", benchmark, ", ".join(PAIR_COLUMNS))

    def __iter__(self) -> Iterator[PairRow]:
        self.not_taken.clear()
        for origin, cells in self.table:
            self.not_taken.update(name for name in self.ignored if cells.get(name, "").strip())
            benchmark = benchmark_of(origin, _name(cells, "benchmark"), self.benchmark)
            texts = [cells.get(side, "") for side in SIDES]
            pair_id = _name(cells, "pair_id")
            pair_id = pair_id or pair_id_of(benchmark, _name(cells, "instance_id"), *texts)
            shared = {name: cells.get(name, "") for name in PAIR_COLUMNS}
            first, second = (
                _row(
                    origin,
                    shared
                    | {"response_id": _name(cells, f"{side}_id") or f"{pair_id}-{side}"}
                    | {"model": cells.get(f"{side}_model", ""), "response": text},
                    self.benchmark,
                )
                for side, text in zip(SIDES, texts, strict=True)
            )
            if first.response_id == second.response_id:
                raise origin.wrong(
                    "second_id", second.response_id, "is the first one's; ids must differ"
                )
            self.contexts += bool(first.context.strip())
            yield PairRow(origin, pair_id, (first, second))

    def responses(self) -> Iterator[ResponseRow]:
        """Yield the rows of both responses of each pair."""
        return (row for pair in self for row in pair.rows)


def _row(
    origin: Origin,
    cells: Cells,
    benchmark: str | None,
    groups: tuple[tuple[str, str], ...] = (),
) -> ResponseRow:
    values: dict[str, Any] = {name: cells.get(name, "") for name in (*TEXTS, "response")}
    values |= {name: _name(cells, name) for name in NAMES}
    values["benchmark"] = benchmark_of(origin, values["benchmark"], benchmark)
    values["id_made"] = not values["response_id"] or cells.get(ID_MADE) == "yes"
    values["response_id"] = values["response_id"] or made_id(
        values["benchmark"], cells.get("instance_id", ""), values["response"]
    )
    return response_row(origin, values | {"groups": groups})


def _name(cells: Cells, column: str) -> str:
    return unguarded(cells.get(column, "").strip())


def _group_columns(table: TableFile) -> dict[str, str]:
    """Return the name of each group -> its column; refuse one that names an author or what rates."""
    columns: dict[str, str] = {}
    for column in filter(is_group, table.columns):
        name = column.strip()[len(GROUP) :].strip().lower()
        if not GROUP_NAME.fullmatch(name):
            raise table.wrong("a column group:NAME takes a name of letters, digits, _ . -")
        if name in columns:
            raise table.wrong(f"the column {GROUP}{name} is there twice")
        if names_author(name):
            raise table.wrong(
                f"the column {GROUP}{name} would tell who wrote a response; the author belongs in the "
                "column model, which nobody who rates or computes agreement sees",
            )
        if name == RESERVED:
            raise table.wrong(f"{GROUP}{name} is the clinicians' own: name the column otherwise")
        columns[name] = column
    return columns


def is_group(column: str) -> bool:
    """Tell whether a column is a group column."""
    return column.strip().lower().startswith(GROUP)


def names_author(name: str) -> bool:
    """Tell whether a group's name stands for authors."""
    parts = set(re.split(r"[\W_]+", name.lower()))
    return bool({part.removesuffix("s") for part in parts} & AUTHORS)


def tells_authors(pairs: Iterable[tuple[str, str]]) -> bool:
    """Tell whether values correspond one to one with authors, or are authors' names.

    Parameters
    ----------
    pairs : value and author of each response that has the group
    """
    distinct = set(pairs)
    values, authors = {value for value, _ in distinct}, {author for _, author in distinct}
    if {value.casefold() for value in values} & {value.casefold() for value in authors}:
        return True
    return len(authors) > 1 and len(distinct) == len(values) == len(authors)
