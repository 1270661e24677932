"""Rows as every importer yields them, whatever the format they came in."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from data.errors import BadRow
from data.schema import Kind

Tick = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a row stands, for messages: the file's name and the row's number in it."""

    file: str
    row: int

    def __str__(self) -> str:
        return f"{self.file} row {self.row}"

    def wrong(self, column: str, value: object, allowed: str) -> BadRow:
        """Return the error that says which value of this row is wrong and what is allowed."""
        shown = repr(value) if len(repr(value)) <= 80 else repr(value)[:77] + "..."
        return BadRow(f"{self}, column {column}: {shown}: {allowed}; nothing was imported")


@dataclass(frozen=True, slots=True)
class ResponseRow:
    """One response with its instance; texts verbatim, `response_id` made if the file has none."""

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


@dataclass(frozen=True, slots=True)
class RatingRow:
    """One score; `score` is still as the file has it, checked only against the rubric."""

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
