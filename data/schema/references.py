"""What jurors say of references."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Column, Index
from sqlmodel import AutoString, Field

from data.schema.base import Table, now
from data.schema.jury import Status


class ReferenceCheck(Table, table=True):
    """One call that asked a juror whether a reference states facts its source does not hold.

    Append-only; a failure is a row too, with its reason. `absent` is None unless the status is
    OK, and `facts` are then those the juror names. `usd` is None where no price is known.
    """

    __tablename__ = "reference_check"
    __table_args__ = (Index("ix_reference_check_key", "rater", "instance"),)
    id: int | None = Field(default=None, primary_key=True)
    instance: int = Field(foreign_key="instance.id", index=True)
    rater: int = Field(foreign_key="rater.id")
    absent: bool | None = None
    facts: list[Any] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    status: Status = Field(sa_type=AutoString)
    reason: str = ""
    number: int = 1
    request_sha256: str = Field(max_length=64)
    sent: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    raw: str = ""
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
