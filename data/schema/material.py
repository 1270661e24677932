"""What was asked and what was answered."""

from datetime import datetime

from sqlalchemy import UniqueConstraint
from sqlmodel import Field

from data.schema.base import Table, now


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
    """One answer to an instance, without its author.

    `shown` is the text with masks where it named its author, None where nothing is masked.
    `batch` names the import that brought it, whose event holds its digest.
    """

    id: int | None = Field(default=None, primary_key=True)
    response_id: str = Field(unique=True)
    instance: int = Field(foreign_key="instance.id", index=True)
    text: str
    shown: str | None = None
    batch: str | None = Field(default=None, index=True)


class Subgroup(Table, table=True):
    """What a response belongs to beside its benchmark, such as `language` with the value `de`.

    Never an author, nor what tells authors apart. `batch` names the import that brought it.
    """

    __table_args__ = (UniqueConstraint("response", "name"),)
    id: int | None = Field(default=None, primary_key=True)
    response: int = Field(foreign_key="response.id")
    name: str
    value: str
    batch: str | None = Field(default=None, index=True)


class Authorship(Table, table=True):
    """Who wrote a response. Nothing that serves raters reads this table."""

    response: int = Field(foreign_key="response.id", primary_key=True)
    model: str


class Mask(Table, table=True):
    """A place of a response's text, in characters, that named its author and is not shown."""

    id: int | None = Field(default=None, primary_key=True)
    response: int = Field(foreign_key="response.id", index=True)
    start: int
    end: int
    text: str
    at: datetime = Field(default_factory=now)
