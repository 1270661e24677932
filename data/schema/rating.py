"""What raters said, and what clinicians are to rate."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, CheckConstraint, Column, Index, UniqueConstraint
from sqlmodel import AutoString, Field

from data.schema.base import Table, now


class State(StrEnum):
    """How far an assignment has come.

    UNRATED: the clinician could not rate it (not enough context), which is counted.
    RECUSED: the clinician may not or cannot; the place is free for another one.
    """

    OPEN = "open"
    DONE = "done"
    UNRATED = "unrated"
    RECUSED = "recused"


class Rating(Table, table=True):
    """One score by one rater on one criterion of one response.

    Append-only: a changed mind is a new row, and of rows that agree in response,
    rater, criterion, rubric, pass and replicate the one with the highest id counts.
    `batch` names the act that wrote it, whose event holds its digest.
    """

    __table_args__ = (Index("ix_rating_key", "response", "rater", "criterion"),)
    id: int | None = Field(default=None, primary_key=True)
    response: int = Field(foreign_key="response.id")
    rater: int = Field(foreign_key="rater.id", index=True)
    criterion: str
    score: float
    rubric_sha256: str | None = Field(default=None, foreign_key="rubric.sha256")
    pass_: int = Field(default=0)
    replicate: int = Field(default=0)
    comment: str = ""
    at: datetime = Field(default_factory=now)
    batch: str | None = Field(default=None, index=True)


class Assignment(Table, table=True):
    """A response a clinician is to rate, its place in their order, and the draft so far.

    `code` is random: it is the only name of the response that reaches a browser.
    `revision` counts submissions, `submitted_seq` is the draft's number at the last; `previous` is the composite that the clinician gave to
    the response before this one, when this one was first submitted.
    """

    __table_args__ = (
        UniqueConstraint("rater", "response", "pass_"),
        CheckConstraint("seconds_active >= 0", name="seconds"),
    )
    id: int | None = Field(default=None, primary_key=True)
    code: str = Field(unique=True)
    rater: int = Field(foreign_key="rater.id", index=True)
    response: int = Field(foreign_key="response.id", index=True)
    position: int
    pass_: int = Field(default=0)
    state: State = Field(default=State.OPEN, sa_type=AutoString)
    draft: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    draft_seq: int = 0
    seconds_active: float = 0.0
    opened_at: datetime | None = None
    reference_opened_at: datetime | None = None
    done_at: datetime | None = None
    revision: int = 0
    submitted_seq: int = 0
    previous: float | None = None


class Remark(Table, table=True):
    """What a clinician says of a showing apart from scores: a flag, a recusal and its reason.

    Append-only. `revision` counts the submissions of the assignment before this one.
    """

    id: int | None = Field(default=None, primary_key=True)
    assignment: int = Field(foreign_key="assignment.id", index=True)
    kind: str
    text: str = ""
    revision: int = 0
    at: datetime = Field(default_factory=now)
    batch: str | None = Field(default=None, index=True)


class Span(Table, table=True):
    """A stretch of the text as shown, in characters, with the error a clinician sees in it.

    Append-only; those of an assignment's newest revision count.
    """

    id: int | None = Field(default=None, primary_key=True)
    assignment: int = Field(foreign_key="assignment.id", index=True)
    criterion: str
    start: int
    end: int
    text: str
    error: str
    note: str = ""
    revision: int = 0
    at: datetime = Field(default_factory=now)
    batch: str | None = Field(default=None, index=True)


class Expert(Table, table=True):
    """An expert's score of a training response on one criterion, and why."""

    __table_args__ = (UniqueConstraint("response", "criterion"),)
    id: int | None = Field(default=None, primary_key=True)
    response: int = Field(foreign_key="response.id", index=True)
    criterion: str
    score: float
    why: str = ""


class Drill(Table, table=True):
    """A clinician's answer in the training round; it never counts as a rating."""

    id: int | None = Field(default=None, primary_key=True)
    rater: int = Field(foreign_key="rater.id", index=True)
    response: int = Field(foreign_key="response.id")
    round: int = 0
    scores: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    at: datetime = Field(default_factory=now)
