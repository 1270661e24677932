"""Rows as every importer yields them, whatever the format they came in."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from data.errors import BadRow
from data.schema import Kind

Tick = Callable[[int], None]
UNNAMED = "(not quoted: it is no name)"
QUOTED = {
    *("instance_id", "benchmark", "response_id", "model", "rater", "kind", "criterion", "score"),
    *("rated_at", "pass", "replicate"),
}
LONGEST_QUOTED = 40  # a UUID in quotation marks has 38
NAME = re.compile(r"(?=.{1,40}$)[^\W\d][\w./()-]*(?: [\w./()-]+){0,3}")
T = TypeVar("T")
BATCH = 400


class Origin(NamedTuple):
    """Where a row stands, for messages: the file's name and the row's number in it."""

    file: str
    row: int

    def __str__(self) -> str:
        return f"{self.file} row {self.row}"

    def wrong(self, column: str, value: object, allowed: str) -> BadRow:
        """Return the error that says which value of this row is wrong and what is allowed.

        The value is quoted only in columns of names and numbers, and only where it is short: a
        text may be a patient's, and so may whatever slipped into another column by a shift.
        """
        shown = repr(value)
        quoted = (
            f": {shown}" if (column in QUOTED or not value) and len(shown) <= LONGEST_QUOTED else ""
        )
        named = column if is_name(column) else UNNAMED
        return BadRow(f"{self}, column {named}{quoted}: {allowed}; nothing was imported")


def is_name(column: str) -> bool:
    """Tell whether a text looks like a column's name, and not like a patient's text."""
    return column == "" or NAME.fullmatch(column.removeprefix("group:")) is not None


def meant(name: str, known: Iterable[str]) -> str:
    """Return the known column closest to a name; "" if none is close."""
    if len(name) > LONGEST_QUOTED:
        return ""
    plain = re.sub(r"[\W_]+", "_", name.strip().lower())
    return next(iter(get_close_matches(plain, list(known), n=1)), "")


@dataclass(frozen=True, slots=True)
class ResponseRow:
    """One response with its instance; texts verbatim, `id_made` where the file has no `response_id`.

    `groups` pairs the name of each subgrouping with the response's value, where it has one.
    """

    origin: Origin
    instance_id: str
    benchmark: str
    context: str
    prompt: str
    reference: str | None
    response_id: str
    model: str
    response: str
    checklist: str | None = None
    groups: tuple[tuple[str, str], ...] = ()
    id_made: bool = False


class RatingRow(NamedTuple):
    """One score; `score` is still as the file has it, checked only against the rubric.

    A tuple, since a file may have millions: a frozen dataclass takes four times as long to make.
    """

    origin: Origin
    response_id: str
    rater: str
    kind: Kind
    criterion: str
    score: str
    comment: str = ""
    rated_at: datetime | None = None
    pass_: int = 0
    replicate: int = 0


@dataclass(frozen=True, slots=True)
class JurorRecord:
    """A juror as the study keeps it; `profile` holds all that decides what it answers."""

    handle: str
    profile: Mapping[str, Any]
    family: str = ""
    simulated: bool = False


def made_id(*parts: str) -> str:
    """Return an id made from parts, always the same for the same parts.

    Of a response: benchmark, instance and text, and what tells apart what a model answered anew. Its
    author is no part: who has the texts could make the id of each model, and compare.
    """
    body = "\0".join(parts).encode("utf-8", "surrogatepass")
    return "r" + hashlib.sha256(body).hexdigest()[:15]


def filled(origin: Origin, cells: Mapping[str, str], column: str) -> str:
    """Return a cell without the blanks around it; refuse an empty one."""
    value = cells.get(column, "").strip()
    if not value:
        raise origin.wrong(column, value, "must not be empty")
    return value


def batches(rows: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """Yield lists of at most `size` rows, in order."""
    remaining = iter(rows)
    while batch := list(islice(remaining, size)):
        yield batch


def checklist_of(items: Iterable[Any] | None) -> str:
    """Return a checklist as lines, each with its points."""
    points = [item for item in items or () if isinstance(item, Mapping)]
    return "\n".join(f"({_worth(point)}) {point.get('criterion', '')}" for point in points)


def _worth(point: Mapping[str, Any]) -> str:
    points = point.get("points", 0)
    return f"{points:+g}" if isinstance(points, int | float) else str(points)
