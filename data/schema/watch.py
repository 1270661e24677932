"""Tables of a watch: what it took in and drew for clinicians, and the alarms it raised."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, Column
from sqlmodel import AutoString, Field

from data.schema.study import Table, now


class Outcome(StrEnum):
    """What came of a drop: its responses are stored, or nothing of it is."""

    TAKEN = "taken"
    REFUSED = "refused"


class StepKind(StrEnum):
    """What was done about an alarm."""

    BEGUN = "begun"
    SENT = "sent"
    FAILED = "failed"
    ACKNOWLEDGED = "acknowledged"


class Intake(Table, table=True):
    """One drop of outputs, known by the SHA-256 of its bytes; stored with its responses.

    Append-only. Its new responses have the primary keys `first` to `last`, None where it has none.
    `drawn` are those of them, primary keys, that clinicians rate; `share` and `seed` are what they
    were drawn with, `counts` how many outputs each stratum had by then, this drop included. `reason`
    is the kind of error. It holds neither the name of the file, which may tell an author, nor a word of it.
    """

    id: int | None = Field(default=None, primary_key=True)
    digest: str = Field(max_length=64, index=True)
    outcome: Outcome = Field(sa_type=AutoString)
    size: int
    responses: int = 0
    unchanged: int = 0
    first: int | None = None
    last: int | None = None
    share: float = 0.0
    seed: int = 0
    drawn: list[int] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    counts: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    reason: str = ""
    at: datetime = Field(default_factory=now)
    batch: str | None = Field(default=None, index=True)


class Alarm(Table, table=True):
    """An alarm of a watch, with who is to act and what is due; append-only.

    `key` is what it is about: the benchmark, the jury and the target. There is never a second alarm
    about the same. `figures` is what it rests on, numbers and names of benchmarks and jurors.
    """

    id: int | None = Field(default=None, primary_key=True)
    key: str = Field(index=True)
    benchmark: str
    owner: str
    action: str
    due_days: int
    figures: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    at: datetime = Field(default_factory=now)
    batch: str | None = Field(default=None, index=True)


class AlarmStep(Table, table=True):
    """A step of an alarm: a message begun, sent or failed, or what was done about it; append-only.

    `way` is email or webhook, "" of an acknowledgement, whose `text` is what was done.
    """

    __tablename__ = "alarm_step"
    id: int | None = Field(default=None, primary_key=True)
    alarm: int = Field(foreign_key="alarm.id", index=True)
    kind: StepKind = Field(sa_type=AutoString)
    way: str = ""
    actor: str
    text: str = ""
    at: datetime = Field(default_factory=now)
    batch: str | None = Field(default=None, index=True)
