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
                f"{benchmark.name}`; in the app: Set up, Rubric)"
            )


def newest_points(session: Session, instance: int) -> PointSet | None:
    """Return the newest version of an instance's points, in a transaction."""
    query = select(PointSet).where(PointSet.instance == instance)
    return session.exec(query.order_by(col(PointSet.id).desc()).limit(1)).first()


def given_answers(engine: Engine, benchmark: str) -> list[tuple[Reading, CaseRubric]]:
    """Return first readings and first verdicts with `answers`, the oldest first, and their points."""
    cases = {case.key: case for case in case_rubrics(engine, benchmark)}
    with reading(engine) as session:
        instances = dict(session.exec(select(Response.id, Response.instance)).all())
        said = readings(session, benchmarks=[benchmark], rubric=On.CASE, first=True)
    return [
        (one, cases[instances[one.response]]) for one in said if one.answers and not one.replicate
    ]


# Return the instances of a benchmark that have points; those that have none yet. For who steers.
cases_of = asking(case_rubrics, Role.RESEARCHER, Role.COORDINATOR)
bare_of = asking(without_points, Role.RESEARCHER, Role.COORDINATOR)
