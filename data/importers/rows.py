"""Rows as every importer yields them, whatever the format they came in, validated by pydantic."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    SkipValidation,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from data.card import THIRD, Kind, Order
from data.errors import BadRow

Tick = Callable[[int], None]
UNNAMED = "(not quoted: it is no name)"
QUOTED = {
    *("instance_id", "benchmark", "response_id", "model", "rater", "kind", "criterion", "score"),
    *("rated_at", "pass", "replicate", "pair_id", "preference", "shown_first"),
}
LONGEST_QUOTED = 40  # a UUID in quotation marks has 38
NAME = re.compile(r"(?=.{1,40}$)[^\W\d][\w./()-]*(?: [\w./()-]+){0,3}")
T = TypeVar("T")
BATCH = 400
MOST_REPLICATES = 10_000
# Column -> what it takes, where that is more than not to be empty.
ALLOWED = {
    "benchmark": "must not be empty; or give --benchmark NAME",
    "response": "an empty response cannot be rated; leave the row out",
    "shown_first": "must be first or second, or empty where it is not known",
    "replicate": f"must be a whole number from 0 to {MOST_REPLICATES}",
    "critical": "must be yes or no",
    "point": "has over 1,000 characters",
    "weight": "must be above 0 and at most 1,000",
}
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
TextOrNone = Annotated[
    str | None, BeforeValidator(lambda text: text if text and text.strip() else None)
]


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

    def refused(self, error: ValidationError) -> BadRow:
        """Return pydantic's first error of this row as file, row, column: value: allowed."""
        first = error.errors(include_url=False)[0]
        column = str(first["loc"][0]).rstrip("_")
        value = "" if first["type"] == "missing" else first["input"]
        if first["type"] == "value_error":
            allowed = first["msg"].removeprefix("Value error, ")
        elif column in ALLOWED:
            allowed = ALLOWED[column]
        elif expected := first.get("ctx", {}).get("expected"):
            allowed = f"must be {expected}".replace("'", "")
        else:
            allowed = "must not be empty"
        return self.wrong(column, value, allowed)


def is_name(column: str) -> bool:
    """Tell whether a text looks like a column's name, and not like a patient's text."""
    return column == "" or NAME.fullmatch(column.removeprefix("group:")) is not None


@lru_cache(maxsize=1024)  # the criteria of one response mostly have the same
def _utc(value: str | datetime | None) -> datetime | None:
    """Return a time in UTC; one without a zone is taken as UTC."""
    if not value:
        return None
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else value
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except ValueError as error:
        raise ValueError("must be like 2026-05-31T14:00:00+02:00") from error
    except OverflowError as error:
        raise ValueError("is before the first year, or after 9999") from error


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

    origin: SkipValidation[Origin]
    instance_id: Text
    benchmark: Text
    context: str
    prompt: str
    reference: TextOrNone
    response_id: Text
    model: Text
    response: Annotated[str, Field(pattern=r"\S")]
    checklist: TextOrNone = None
    groups: tuple[tuple[str, str], ...] = ()
    id_made: bool = False


class RatingRow(NamedTuple):
    """One score; `score` is still as the file has it, checked only against the rubric.

    A tuple, since a file may have millions: a pydantic dataclass takes three times as long to make.
    """

    origin: SkipValidation[Origin]
    response_id: Text
    rater: Text
    kind: Kind
    criterion: Text
    score: str
    comment: str = ""
    rated_at: Annotated[datetime | None, BeforeValidator(_utc)] = None
    pass_: int = 0
    replicate: Annotated[int, Field(ge=0, le=MOST_REPLICATES)] = 0
    shown_first: Order = ""


class EmptyCell(NamedTuple):
    """A cell of a file of ratings without a score: what was said of it before counts no longer."""

    response_id: str
    rater: str
    criterion: str
    pass_: int
    replicate: int


RESPONSE, RATING = TypeAdapter(ResponseRow), TypeAdapter(RatingRow)


def response_row(origin: Origin, values: Mapping[str, Any]) -> ResponseRow:
    """Return validated values as a row; refuse them by file, row and column."""
    row = validated(RESPONSE, origin, {"origin": origin, **values})
    if not (row.context.strip() or row.prompt.strip()):
        raise origin.wrong("context", "", "context or prompt must say what was asked")
    return row


def rating_row(origin: Origin, values: Mapping[str, Any]) -> RatingRow:
    """Return validated values as a row; refuse them by file, row and column."""
    row = validated(RATING, origin, {"origin": origin, **values})
    if row.pass_ >= THIRD and row.kind != Kind.CLINICIAN:
        raise origin.wrong("pass", str(row.pass_), "only clinicians settle differences")
    return row


def validated(form: TypeAdapter[T], origin: Origin, values: Mapping[str, Any]) -> T:
    """Return values in a form of pydantic's, or refuse them by file, row and column."""
    try:
        return form.validate_python(values)
    except ValidationError as error:
        raise origin.refused(error) from error


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


def benchmark_of(origin: Origin, own: str, given: str | None) -> str:
    """Return a row's benchmark: its own, or the one that is given; refuse one that is another."""
    if given and own not in ("", given):
        raise origin.wrong("benchmark", own, f"--benchmark says {given!r}")
    return own or given or ""


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
    lines = []
    for item in items or ():
        if isinstance(item, Mapping):
            points = item.get("points", 0)
            worth = f"{points:+g}" if isinstance(points, int | float) else str(points)
            lines.append(f"({worth}) {item.get('criterion', '')}")
    return "\n".join(lines)
