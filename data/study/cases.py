"""Points of the case as the study has them: the rubric of each instance, and its versions."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading
from data.errors import BadInput
from data.person import asking
from data.rubric import Rubric
from data.safe_text import short
from data.schema import (
    IS_RATED_ON,
    RATED_ON,
    Benchmark,
    Instance,
    PointSet,
    Response,
    Role,
    RubricText,
)
from data.study.base import columns_of
from data.study.readings import On, Reading, readings
from data.study.standing import BenchmarkView


@dataclass(frozen=True, slots=True)
class CaseRubric:
    """The points that an instance is rated by; `key` is the instance's primary key."""

    key: int
    instance_id: str
    rubric: Rubric


def case_rubrics(engine: Engine, benchmark: str) -> list[CaseRubric]:
    """Return the instances of a benchmark that have points, in the order of import."""
    query = (
        columns_of(Instance.id, Instance.instance_id, RubricText.body)
        .select_from(Instance)
        .join(Benchmark)
        .join(RubricText, IS_RATED_ON)
        .where(Instance.benchmark == benchmark, Benchmark.rubric_sha256 != RATED_ON)
        .order_by(col(Instance.id))
    )
    with reading(engine) as session:
        rows = session.execute(query).all()
    return [CaseRubric(key, name, Rubric.from_json(body)) for key, name, body in rows]


def without_points(engine: Engine, benchmark: str) -> list[str]:
    """Return the instances, by id, that have responses and no points yet."""
    query = (
        select(Instance.instance_id)
        .join(Benchmark)
        .where(Instance.benchmark == benchmark, Benchmark.rubric_sha256 == RATED_ON)
        .where(col(Instance.id).in_(select(Response.instance)))
        .order_by(col(Instance.id))
    )
    with reading(engine) as session:
        return list(session.exec(query))


def refuse_without_points(engine: Engine, benchmarks: Sequence[BenchmarkView]) -> None:
    """Raise BadInput if one of these benchmarks is rated by points of the case, and a case has none."""
    for benchmark in benchmarks:
        bare = without_points(engine, benchmark.name) if benchmark.rubric.points else []
        if bare:
            raise BadInput(
                f"benchmark {benchmark.name}: {len(bare)} of its instances have no points yet, such as "
                f"{short(bare[0])}; add them (`medjury study points FILE --benchmark "
                f"{benchmark.name}`; in the app: Study, Points)"
            )


def newest_points(session: Session, instance: int) -> PointSet | None:
    """Return the newest version of an instance's points, in a transaction."""
    query = select(PointSet).where(PointSet.instance == instance)
    return session.exec(query.order_by(col(PointSet.id).desc()).limit(1)).first()


@dataclass(frozen=True, slots=True)
class GivenAnswers:
    """What one rater answered to the points of a case, `said.scores`; `instance` is a primary key."""

    said: Reading
    instance: int
    instance_id: str
    rubric: Rubric


def given_answers(engine: Engine, benchmark: str) -> list[GivenAnswers]:
    """Return the answers to points that count, of first readings and first verdicts, the oldest first."""
    of_response = columns_of(Response.id, Instance.id, Instance.instance_id).select_from(Response)
    of_response = of_response.join(Instance).where(Instance.benchmark == benchmark)
    with reading(engine) as session:
        instances = {key: (own, name) for key, own, name in session.execute(of_response)}
        said = readings(session, benchmarks=[benchmark], rubric=On.POINTS, first=True)
        bodies = select(RubricText).where(col(RubricText.sha256).in_({one.rubric for one in said}))
        rubrics = {row.sha256: Rubric.from_json(row.body) for row in session.exec(bodies)}
    return [
        GivenAnswers(one, *instances[one.response], rubrics[one.rubric or ""])
        for one in said
        if not one.replicate
    ]


# Return the instances of a benchmark that have points; those that have none yet. For who steers.
cases_of = asking(case_rubrics, Role.RESEARCHER, Role.COORDINATOR)
bare_of = asking(without_points, Role.RESEARCHER, Role.COORDINATOR)
