"""The data dictionary of an exported study: every column of every file, from `dictionary.toml`."""

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from data.importers.package import columns

_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
TABLES: dict[str, str] = {
    name: words.replace("{call}", _TOLD["call"].strip()) for name, words in _TOLD["tables"].items()
}
FILES: dict[str, str] = _TOLD["files"]
TYPES = {
    int: "whole number",
    float: "number",
    str: "text",
    bool: "0 or 1",
    datetime: "time, ISO 8601",
    dict: "JSON object",
    list: "JSON list",
}
NEVER = "never empty"
ABOUT = (
    "UTF-8, commas, one header row; a file in a folder begins with the mark (BOM) by which Excel knows "
    "UTF-8, a file in a package has none. A text that a spreadsheet would compute, one that begins with "
    "= + - @, a tab or a carriage return, has one ' before it, which `medjury study import` takes off "
    "again; numbers such as -5 are as they are. Keys join tables/ files to each other."
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of one file, in words; `missing` says what an empty cell means."""

    file: str
    column: str
    type: str
    unit: str
    meaning: str
    missing: str


HEADER = tuple(one.name for one in fields(Column))


def dictionary(files: Iterable[str]) -> list[Column]:
    """Return every column of the named files of an export, in their order."""
    return [one for name in files for one in _of(name)]


def dictionary_rows(files: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the dictionary as rows, in the columns of `HEADER`."""
    return (astuple(one) for one in dictionary(files))


def dictionary_markdown(files: Iterable[str]) -> str:
    """Return the dictionary as a page, a table a file."""
    parts = [f"# Data dictionary\n\n{ABOUT}\n"]
    for name in files:
        rows = [
            f"| `{one.column}` | {one.type} | {one.unit} | {one.meaning} | {one.missing} |"
            for one in _of(name)
        ]
        head = "| column | type | unit | meaning | empty |\n| --- | --- | --- | --- | --- |"
        parts.append(f"## {name}\n\n{head}\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _of(file: str) -> Iterator[Column]:
    if file in FILES:
        for name, kind, meaning, unit, empty in _lines(FILES[file], 5):
            yield Column(file, name, kind, unit, meaning, empty or NEVER)
        return
    table = file.removeprefix("tables/").removesuffix(".csv")
    types = columns(table)
    said = {name: rest for name, *rest in _lines(TABLES[table], 4)}
    for name, (python, _) in types.items():
        meaning, unit, empty = said[name]
        kind = ", ".join(python) if issubclass(python, StrEnum) else TYPES[python]
        yield Column(file, name, kind, unit, meaning, empty or NEVER)


def _lines(text: str, parts: int) -> Iterator[list[str]]:
    """Yield a line's parts; those left out at its end are empty."""
    for line in text.strip().splitlines():
        found = [part.strip() for part in line.split("|")]
        yield found + [""] * (parts - len(found))
