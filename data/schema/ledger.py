"""Which juries were ever held against the clinicians."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Column
from sqlmodel import Field

from data.schema.base import Table, now


class Composition(Table, table=True):
    """A jury that was evaluated on some responses in some way, and how often.

    What makes it another composition stands in `key`, a digest: its jurors in whatever order,
    how many of them a response needs, the benchmark (or "combined"), which of its instances
    (empty: all), the criterion (empty: the composite) and the method. Times, `icc` (None where
    undefined), `n_responses` and `fingerprint` are those of the last evaluation; each earlier
    one is an event. `compared` names all that it was ever compared with.
    """

    key: str = Field(primary_key=True, max_length=64)
    jurors: list[Any] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    needed: int
    benchmark: str
    instances: str = ""
    criterion: str = ""
    method: str
    simulated: bool = False
    compared: list[Any] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    icc: float | None = None
    n_responses: int
    fingerprint: str = Field(max_length=64)
    times: int = 1
    first_at: datetime = Field(default_factory=now)
    last_at: datetime = Field(default_factory=now)
