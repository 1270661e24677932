"""Columns `group:NAME` of a file of responses: what a response belongs to beside its benchmark."""

import re
from collections.abc import Iterable

from data.importers.rows import Origin
from data.importers.table import Cells, TableFile

PREFIX = "group:"
NAMED = re.compile(r"[^\W\d][\w.-]{0,39}")
LONGEST_VALUE = 60  # characters: a longer one is a text, and may be a patient's
RESERVED = "specialty"  # clinicians have one; it groups them by itself
AUTHORS = {"model", "author", "system", "llm", "provider", "vendor", "developer", "generator"}


class GroupColumns:
    """The group columns of a file, checked by name; `of` reads a row's values.

    Raises
    ------
    BadFile
        If a column names an author or what rates, has no proper name, or is there twice.
    """

    def __init__(self, table: TableFile) -> None:
        self.columns: dict[str, str] = {}
        for column in table.columns:
            if is_group(column):
                self._take(table, column)

    def of(self, origin: Origin, cells: Cells) -> tuple[tuple[str, str], ...]:
        """Return each group's name with the row's value; an empty cell is in no group."""
        if later := [key for key in cells if is_group(key) and key not in self.columns.values()]:
            known = later[0].strip()[:LONGEST_VALUE]
            raise origin.wrong(
                "group", "", f"the first row has no {known!r}; give it there, or null"
            )
        found = []
        for name, column in self.columns.items():
            value = cells.get(column, "").strip()
            if len(value) > LONGEST_VALUE or not value.isprintable():
                raise origin.wrong(
                    "group", "", f"{PREFIX}{name} takes a short name, such as de or over 65"
                )
            if value:
                found.append((name, value))
        return tuple(found)

    def _take(self, table: TableFile, column: str) -> None:
        name = column.strip()[len(PREFIX) :].strip().lower()
        if not NAMED.fullmatch(name):
            raise table.wrong("a column group:NAME takes a name of letters, digits, _ . -")
        if name in self.columns:
            raise table.wrong(f"the column {PREFIX}{name} is there twice")
        if names_author(name):
            raise table.wrong(
                f"the column {PREFIX}{name} would tell who wrote a response; the author belongs in the "
                "column model, which nobody who rates or computes agreement sees",
            )
        if name == RESERVED:
            raise table.wrong(f"{PREFIX}{name} is the clinicians' own: name the column otherwise")
        self.columns[name] = column


def is_group(column: str) -> bool:
    """Tell whether a column means to be a group."""
    return column.strip().lower().startswith(PREFIX)


def names_author(name: str) -> bool:
    """Tell whether a group's name says that it is the responses' authors."""
    parts = set(re.split(r"[\W_]+", name.lower()))
    return bool({one.removesuffix("s") for one in parts} & AUTHORS)


def tells_authors(pairs: Iterable[tuple[str, str]]) -> bool:
    """Tell whether values correspond one to one with authors, or are authors' names.

    Parameters
    ----------
    pairs : value and author of each response that has the group
    """
    both = set(pairs)
    values, authors = {value for value, _ in both}, {author for _, author in both}
    if {one.casefold() for one in values} & {one.casefold() for one in authors}:
        return True
    return len(authors) > 1 and len(both) == len(values) == len(authors)
