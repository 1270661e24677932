"""The data dictionary of an exported study: every column of every file."""

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from enum import StrEnum

from data.importers.package_cells import columns
from data.queries.dictionary_tables import TABLES

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
# column | type | meaning | unit | when it is empty
FILES = {
    "ratings.csv": """
response_id | text | the response that is rated
rater | text | who rates
kind | clinician, juror, metric | what the rater is
criterion | text | what is rated; for a metric, its figure
score | number | the score that counts; a row exists only where one was given | points of the scale
comment | text | the rater's words | | none
rated_at | time, ISO 8601 | when | UTC
pass | whole number | 0, or 1 for a hidden repeat
replicate | whole number | number of a juror's repeated answer, from 0
""",
    "readings.csv": """
response_id | text | the response that is assigned
rater | text | the clinician
pass | whole number | 0, or 1 for a hidden repeat
position | whole number | place in this clinician's order
state | open, done, unrated, recused | how far it has come
opened_at | time, ISO 8601 | first shown | UTC | never opened
done_at | time, ISO 8601 | last submitted | UTC | not submitted
seconds_active | number | time at work on it, idle time left out | seconds
reference_opened_at | time, ISO 8601 | reference first opened | UTC | never opened
revision | whole number | submissions so far
previous | number | composite this clinician gave just before | points of the scale | none before, or not complete
flags | text | flags of the newest submission, with blanks between | | none
remark | text | the words with it | | none
""",
    "spans.csv": """
response_id | text | the response in which it is marked
rater | text | the clinician
pass | whole number | 0, or 1 for a hidden repeat
criterion | text | the criterion it belongs to
start | whole number | first marked character of the text as shown | characters
end | whole number | the one after the last | characters
text | text | what is marked
error | text | the kind of error seen in it
note | text | the clinician's words | | none
revision | whole number | submissions before this mark
counts | 0 or 1 | 1 in the newest submission
at | time, ISO 8601 | when | UTC
""",
    "events.csv": """
id | whole number | its number
at | time, ISO 8601 | when | UTC
actor | text | who
action | text | what was done
detail | JSON object | particulars, with digests of the rows written
previous | text | SHA-256 of the event before; zeros for the first
sha256 | text | SHA-256 over at, actor, action, detail and previous
""",
    "authors.csv": """
response_id | text | the response
model | text | who wrote it
""",
}


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
    parts = [
        "# Data dictionary\n\nUTF-8, commas, one header row. Keys join tables/ files to each other.\n"
    ]
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
        yield Column(file, name, _type(python), unit, meaning, empty or NEVER)


def _lines(text: str, parts: int) -> Iterator[list[str]]:
    """Yield a line's parts; those left out at its end are empty."""
    for line in text.strip().splitlines():
        found = [part.strip() for part in line.split("|")]
        yield found + [""] * (parts - len(found))


def _type(kind: type) -> str:
    return ", ".join(kind) if issubclass(kind, StrEnum) else TYPES[kind]
