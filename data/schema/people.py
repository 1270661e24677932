"""Who rates, and who may sign in."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, Column
from sqlmodel import AutoString, Field

from data.schema.base import Table, now


class Kind(StrEnum):
    """What a rater is."""

    CLINICIAN = "clinician"
    JUROR = "juror"
    METRIC = "metric"


class Role(StrEnum):
    """What a person may do: rate; read the study and run juries; or steer it."""

    CLINICIAN = "clinician"
    RESEARCHER = "researcher"
    COORDINATOR = "coordinator"


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


class Account(Table, table=True):
    """A person who may sign in. Clinicians are raters too; `ended` shuts a person out."""

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    role: Role = Field(sa_type=AutoString)
    email: str | None = Field(default=None, unique=True)
    rater: int | None = Field(default=None, foreign_key="rater.id", unique=True)
    created: datetime = Field(default_factory=now)
    ended: datetime | None = None


class Access(Table, table=True):
    """A way in: a code's public half, and the hash of its secret half.

    One with `once` signs in a single time. `expires` ends signing in, `revoked` sessions too.
    """

    lookup: str = Field(primary_key=True)
    account: int = Field(foreign_key="account.id", index=True)
    secret_hash: str
    once: bool = False
    created: datetime = Field(default_factory=now)
    expires: datetime | None = None
    used: datetime | None = None
    revoked: datetime | None = None
