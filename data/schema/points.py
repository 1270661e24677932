"""The table of points of the case: which rubric of its own an instance is rated on."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import func
from sqlmodel import AutoString, Field, col, select

from data.schema.model_calls import ModelCall
from data.schema.study import Benchmark, Instance, RubricText, Table, now


class PointOrigin(StrEnum):
    """Who made a list of points: people, or a model whose draft nobody has looked at yet."""

    PEOPLE = "people"
    DRAFT = "draft"


class PointSet(Table, table=True):
    """One version of the points of an instance, as a rubric of its own; see `data.points`.

    Append-only: of an instance's versions by people, made for its benchmark's present rubric
    `benchmark_rubric`, the newest counts. A draft by a model never counts. `author` is who
    brought it, as the record's events name people, or the name of the juror who drafted it.
    """

    __tablename__ = "point_set"
    id: int | None = Field(default=None, primary_key=True)
    instance: int = Field(foreign_key="instance.id", index=True)
    benchmark_rubric: str = Field(foreign_key="rubric.sha256")
    rubric_sha256: str = Field(foreign_key="rubric.sha256", index=True)
    origin: PointOrigin = Field(sa_type=AutoString)
    author: str
    at: datetime = Field(default_factory=now)
    batch: str | None = Field(default=None, index=True)


class PointCall(ModelCall, table=True):
    """One call that asked a model to draft the points of an instance; a failure is a row too.

    Append-only. The draft that it gave is a `PointSet`. `usd` is None where no price is known.
    """

    __tablename__ = "point_call"
    instance: int = Field(foreign_key="instance.id", index=True)


# Selected with Instance and Benchmark: the SHA-256 of the rubric that an instance is rated on, its own
# where the benchmark is rated by points of the case.
_POINTS = (
    select(PointSet.rubric_sha256)
    .where(
        PointSet.instance == Instance.id,
        PointSet.benchmark_rubric == Benchmark.rubric_sha256,
        PointSet.origin == PointOrigin.PEOPLE,
    )
    .order_by(col(PointSet.id).desc())
    .limit(1)
    .correlate(Instance, Benchmark)
    .scalar_subquery()
)
RATED_ON = func.coalesce(_POINTS, Benchmark.rubric_sha256)
IS_RATED_ON = col(RubricText.sha256) == RATED_ON
