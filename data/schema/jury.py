"""Tables of calls to jurors: what was asked, what came back and what it cost."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, Column, Index
from sqlmodel import AutoString, Field

from data.calls import Status
from data.schema.study import Table, now


class Purpose(StrEnum):
    """What a call asks a model for."""

    VERDICT = "verdict"
    REFERENCE = "reference"
    RUBRIC = "rubric"


class Attempt(Table, table=True):
    """One call to a juror, whatever it asks for.

    Append-only; a failure is a row too, with its reason. `tokens_in` counts all input, that read
    from a cache and written to one included, and `tokens_out` all output, reasoning included. `usd`
    is None where no price is known: unknown is not free. `usd_cached`, `usd_cache_write` and
    `usd_out` say what of it was for input read from a cache, written to one, and for output.

    Attributes
    ----------
    response, instance, improvement
        What it is about: the first for a verdict, the second for a reference, the third, with its
        round from 1, for a better rubric.
    rubric_sha256
        The rubric of the verdict, or the one to better.
    answer
        What was read but no rating: of a verdict whose scores are means, criterion -> `stated` (the
        point in the answer), `probabilities` (point -> 0 to 1, as served) and `mass` (their sum); of a
        reference `absent` and `facts`; of a better rubric its hash, `rubric`. None unless there is such.
    """

    __table_args__ = (
        Index("ix_attempt_key", "rater", "response", "replicate"),
        Index("ix_attempt_reference", "rater", "instance"),
        Index("ix_attempt_answers", "rater", "returned_model", "status", "number", "purpose"),
    )
    id: int | None = Field(default=None, primary_key=True)
    purpose: Purpose = Field(default=Purpose.VERDICT, sa_type=AutoString)
    rater: int = Field(foreign_key="rater.id")
    response: int | None = Field(default=None, foreign_key="response.id", index=True)
    instance: int | None = Field(default=None, foreign_key="instance.id", index=True)
    improvement: int | None = Field(default=None, foreign_key="improvement.id", index=True)
    round: int | None = None
    replicate: int = 0
    rubric_sha256: str | None = Field(default=None, foreign_key="rubric.sha256")
    status: Status = Field(sa_type=AutoString)
    reason: str = ""
    number: int = 1
    request_sha256: str = Field(max_length=64, index=True)
    sent: dict[str, Any] = Field(default_factory=dict, sa_type=JSON)
    raw: str = ""
    answer: dict[str, Any] | None = Field(
        default=None, sa_column=Column(JSON(none_as_null=True), nullable=True)
    )
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    tokens_cache_write: int | None = None
    tokens_reasoning: int | None = None
    usd: float | None = None
    usd_cached: float | None = None
    usd_cache_write: float | None = None
    usd_out: float | None = None
    price_source: str = ""
    latency_seconds: float = 0.0
    request_id: str = ""
    returned_model: str = ""
    at: datetime = Field(default_factory=now)


class Intent(Table, table=True):
    """A call that is about to be made or has been, and whose cost is not known yet.

    Stored before the call is sent and deleted with its answer, so that after a kill what is left
    are the calls that a vendor may have billed and the study knows nothing of. One whose answer
    never came, or did not say what it cost, stays.

    Attributes
    ----------
    response, instance
        What it is about: the one for a verdict, the other for a check of a reference.
    usd_most
        What it can cost at most, None where no price is known.
    counted
        When its worst case was counted against the cap of a run; None until then.
    """

    key: str = Field(primary_key=True, max_length=40)
    rater: int = Field(foreign_key="rater.id")
    response: int | None = Field(default=None, foreign_key="response.id")
    instance: int | None = Field(default=None, foreign_key="instance.id")
    replicate: int = 0
    usd_most: float | None = None
    at: datetime = Field(default_factory=now)
    counted: datetime | None = None


class BatchState(StrEnum):
    """How far a batch is; each is stored before the step that it names is taken.

    PREPARED: nothing has left. SUBMITTING: the provider was asked to take it and may have.
    SUBMITTED: it has its id. COLLECTED: all it said is stored, its files are still there.
    CLOSED: nothing more to do.
    """

    PREPARED = "prepared"
    SUBMITTING = "submitting"
    SUBMITTED = "submitted"
    COLLECTED = "collected"
    CLOSED = "closed"


UNANSWERED = "unanswered"  # a request whose answer is gone and may have been billed


class JuryBatch(Table, table=True):
    """Requests to one juror that are answered together, within a day and at a lower price.

    `marker` is random, stands in every custom id, and finds the batch again at a provider whose
    answer was lost. `sent` holds the settings all requests share, never a text; `counts` and
    `reason` are the provider's.
    """

    __tablename__ = "jury_batch"
    id: int = Field(default=None, primary_key=True)  # None until it is stored
    marker: str = Field(unique=True, max_length=32)
    rater: int = Field(foreign_key="rater.id", index=True)
    host: str
    state: BatchState = Field(sa_type=AutoString, index=True)
    provider_id: str = ""
    input_file: str = ""
    requests: int
    sent: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    counts: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    reason: str = ""
    prepared: datetime = Field(default_factory=now)
    asked: datetime | None = None
    submitted: datetime | None = None
    closed: datetime | None = None


class JuryRequest(Table, table=True):
    """One request in a batch. `outcome` is empty while nobody knows how it ended.

    An outcome is a `Status`, whose attempt is stored with it, or one of "expired", "canceled",
    "not_sent", which cost nothing, and "unanswered"; these leave no attempt.
    """

    __tablename__ = "jury_request"
    custom_id: str = Field(primary_key=True, max_length=64)
    batch: int = Field(foreign_key="jury_batch.id", index=True)
    response: int = Field(foreign_key="response.id", index=True)
    replicate: int = 0
    rubric_sha256: str = Field(foreign_key="rubric.sha256")
    request_sha256: str = Field(max_length=64)
    usd_most: float | None = None
    outcome: str = ""
