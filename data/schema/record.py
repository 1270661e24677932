"""What happened, what was found, and what holds for the whole study."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Column
from sqlmodel import Field

from data.schema.base import Table, now


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
