"""The table of points of the case: which rubric of its own an instance is rated on."""

from datetime import datetime

from sqlalchemy import func
from sqlmodel import Field, col, select

from data.schema.study import Benchmark, Instance, RubricText, Table, now


class PointSet(Table, table=True):
    """One version of the points of an instance, as a rubric of its own; see `data.points`.

    Append-only: of an instance's versions, made for its benchmark's present rubric
    `benchmark_rubric`, the newest counts. `author` is who brought it, as the record's events name people.
    """

    __tablename__ = "point_set"
    id: int | None = Field(default=None, primary_key=True)
    instance: int = Field(foreign_key="instance.id", index=True)
    benchmark_rubric: str = Field(foreign_key="rubric.sha256")
    rubric_sha256: str = Field(foreign_key="rubric.sha256", index=True)
    author: str
    at: datetime = Field(default_factory=now)


# Selected with Instance and Benchmark: the SHA-256 of the rubric that an instance is rated on, its own
# where the benchmark is rated by points of the case.
_POINTS = (
    select(PointSet.rubric_sha256)
    .where(
        PointSet.instance == Instance.id,
        PointSet.benchmark_rubric == Benchmark.rubric_sha256,
    )
    .order_by(col(PointSet.id).desc())
    .limit(1)
    .correlate(Instance, Benchmark)
    .scalar_subquery()
)
RATED_ON = func.coalesce(_POINTS, Benchmark.rubric_sha256)
IS_RATED_ON = col(RubricText.sha256) == RATED_ON
