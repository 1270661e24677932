"""Tables of calls to jurors, about responses and about references."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, Column, Index
from sqlmodel import AutoString, Field

from data.schema.model_calls import ModelCall
from data.schema.study import Table, now


class Attempt(ModelCall, table=True):
    """One call to a juror for a verdict on a response.

    `usd_cached`, `usd_cache_write` and `usd_out` say what of `usd` was for input read from a cache,
    written to one, and for output. `distribution` is None but for a juror whose scores are means of
    distributions: criterion -> `stated` (the point in the answer), `probabilities` (point -> 0 to 1,
    as served) and `mass` (their sum).
    """

    __table_args__ = (Index("ix_attempt_key", "rater", "response", "replicate"),)
    response: int = Field(foreign_key="response.id", index=True)
    rubric_sha256: str = Field(foreign_key="rubric.sha256")
    replicate: int = 0
    request_sha256: str = Field(max_length=64, index=True)
    distribution: dict[str, Any] | None = Field(
        default=None, sa_column=Column(JSON(none_as_null=True), nullable=True)
    )


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


class ReferenceCheck(ModelCall, table=True):
    """One call that asked a juror whether a reference states facts its source does not hold.

    Append-only; a failure is a row too, with its reason. `absent` is None unless the status is
    OK, and `facts` are then those the juror names. `usd` is None where no price is known.
    """

    __tablename__ = "reference_check"
    __table_args__ = (Index("ix_reference_check_key", "rater", "instance"),)
    instance: int = Field(foreign_key="instance.id", index=True)
    absent: bool | None = None
    facts: list[Any] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
