"""What every table of calls to a model has: what was asked, what came back and what it cost."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON
from sqlmodel import AutoString, Field

from data.calls import Status
from data.schema.study import Table, now


class ModelCall(Table):
    """The columns of one call; each kind of call has a table, and in it what the call was about.

    Append-only; a failure is a row too, with its reason. `tokens_in` counts all input, that read
    from a cache and written to one included, and `tokens_out` all output, reasoning included. `usd`
    is None where no price is known: unknown is not free.
    """

    id: int | None = Field(default=None, primary_key=True)
    rater: int = Field(foreign_key="rater.id")
    status: Status = Field(sa_type=AutoString)
    reason: str = ""
    number: int = 1
    request_sha256: str = Field(max_length=64)
    sent: dict[str, Any] = Field(default_factory=dict, sa_type=JSON)
    raw: str = ""
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
