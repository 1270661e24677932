"""The tables of a study.

Only `data.store` writes them and only `data.queries` reads them. Who wrote a
response stands in a table of its own, Authorship, which nothing that serves
raters ever reads.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, CheckConstraint, Column, Index, MetaData, UniqueConstraint
from sqlalchemy.orm import registry
from sqlmodel import AutoString, Field, SQLModel

NAMING = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


def now() -> datetime:
    """Return the present time, aware, in UTC."""
    return datetime.now(UTC)


class Kind(StrEnum):
    """What a rater is."""

    CLINICIAN = "clinician"
    JUROR = "juror"
    METRIC = "metric"


class State(StrEnum):
    """How far an assignment has come."""

    OPEN = "open"
    DONE = "done"


class Status(StrEnum):
    """How a call to a juror ended; only OK makes ratings."""

    OK = "ok"
    INVALID_JSON = "invalid_json"
    MISSING_CRITERION = "missing_criterion"
    OUT_OF_RANGE = "out_of_range"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    CONTENT_FILTER = "content_filter"
    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    AUTH = "auth"
    QUOTA = "quota"
    BUDGET_STOPPED = "budget_stopped"
    EMPTY_RESPONSE = "empty_response"
    REQUEST_FAILED = "request_failed"


class Table(SQLModel, registry=registry(metadata=MetaData(naming_convention=NAMING))):
    """Base of all tables, with names for every constraint so that migrations can move them."""


class RubricText(Table, table=True):
    """A rubric as it stood when it was first used, by the SHA-256 of its text."""

    __tablename__ = "rubric"
    sha256: str = Field(primary_key=True, max_length=64)
    name: str
    version: str
    body: str
    added: datetime = Field(default_factory=now)


class Benchmark(Table, table=True):
    """A named set of instances rated on one rubric."""

    name: str = Field(primary_key=True)
    category: str = ""
    subcategory: str = ""
    rubric_sha256: str = Field(foreign_key="rubric.sha256")


class Instance(Table, table=True):
    """One question put to the models: its material, its task and, if there is one, a reference."""

    __table_args__ = (UniqueConstraint("benchmark", "instance_id"),)
    id: int | None = Field(default=None, primary_key=True)
    benchmark: str = Field(foreign_key="benchmark.name", index=True)
    instance_id: str
    context: str
    prompt: str
    reference: str | None = None
    checklist: str | None = None


class Response(Table, table=True):
    """One answer to an instance, without its author."""

    id: int | None = Field(default=None, primary_key=True)
    response_id: str = Field(unique=True)
    instance: int = Field(foreign_key="instance.id", index=True)
    text: str


class Authorship(Table, table=True):
    """Who wrote a response. Nothing that serves raters reads this table."""

    response: int = Field(foreign_key="response.id", primary_key=True)
    model: str


class Rater(Table, table=True):
    """A clinician, a juror or a metric.

    `profile` is what makes a juror that juror (provider, model, settings); a
    juror of the same name with another profile is refused.
    """

    id: int | None = Field(default=None, primary_key=True)
    kind: Kind = Field(sa_type=AutoString)
    handle: str = Field(unique=True)
    family: str = ""
    pseudonym: str = ""
    specialty: str = ""
    simulated: bool = False
    profile: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))


class Access(Table, table=True):
    """A clinician's way in: the code's public half, and the hash of its secret half."""

    lookup: str = Field(primary_key=True)
    rater: int = Field(foreign_key="rater.id", index=True)
    secret_hash: str
    created: datetime = Field(default_factory=now)
    revoked: datetime | None = None


class Rating(Table, table=True):
    """One score by one rater on one criterion of one response.

    Append-only: a changed mind is a new row, and of rows that agree in response,
    rater, criterion, rubric, pass and replicate the one with the highest id counts.
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


class Assignment(Table, table=True):
    """A response a clinician is to rate, its place in their order, and the draft so far.

    `code` is random: it is the only name of the response that reaches a browser.
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
    done_at: datetime | None = None


class Attempt(Table, table=True):
    """One call to a juror: what was sent, what came back and what it cost.

    `usd` is None where no price is known: unknown is not free.
    """

    __table_args__ = (Index("ix_attempt_key", "rater", "response", "replicate"),)
    id: int | None = Field(default=None, primary_key=True)
    rater: int = Field(foreign_key="rater.id")
    response: int = Field(foreign_key="response.id", index=True)
    rubric_sha256: str = Field(foreign_key="rubric.sha256")
    replicate: int = 0
    number: int = 1
    request_sha256: str = Field(max_length=64, index=True)
    sent: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    raw: str = ""
    status: Status = Field(sa_type=AutoString)
    reason: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None
    usd: float | None = None
    price_source: str = ""
    latency_seconds: float = 0.0
    request_id: str = ""
    returned_model: str = ""
    at: datetime = Field(default_factory=now)


class Event(Table, table=True):
    """Who did what when; each row carries the hash of the one before."""

    id: int | None = Field(default=None, primary_key=True)
    at: datetime = Field(default_factory=now)
    actor: str
    action: str
    detail: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    previous: str = Field(max_length=64)
    sha256: str = Field(max_length=64, unique=True)


class Report(Table, table=True):
    """A calibration frozen with a fingerprint of the data it was computed from."""

    id: int | None = Field(default=None, primary_key=True)
    at: datetime = Field(default_factory=now)
    fingerprint: str = Field(max_length=64)
    body: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))


class Setting(Table, table=True):
    """What holds for the whole study, such as the key that signs sessions."""

    key: str = Field(primary_key=True)
    value: str
