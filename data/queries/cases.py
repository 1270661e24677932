"""Points of the case as the study has them: the rubric of each instance, and its versions."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.card import FIRST
from data.database import reading
from data.errors import BadInput
from data.person import asking
from data.queries.base import FOR_STUDY, NEWEST, columns_of, rated
from data.rubric import Rubric
from data.safe_text import short
from data.schema import (
    IS_RATED_ON,
    RATED_ON,
    Benchmark,
    Instance,
    Kind,
    PointSet,
    Rater,
    Rating,
    Response,
    Role,
    RubricText,
)
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
class GivenAnswer:
    """One rater's answer to a point of a response; `criterion` is the point's name in `rubric`."""

    response: int
    instance: int
    instance_id: str
    rater: str
    is_juror: bool
    criterion: str
    answer: float
    evidence: str
    rubric: Rubric


def given_answers(engine: Engine, benchmark: str) -> list[GivenAnswer]:
    """Return the answers to points that count, of first readings and first replicates, in order of storing."""
    own = (
        *(Rating.response, Instance.id, Instance.instance_id, Rater.handle, Rater.kind),
        *(Rating.criterion, Rating.score, Rating.comment, Rating.rubric_sha256),
    )
    on_points = select(PointSet.rubric_sha256).where(
        PointSet.benchmark_rubric == Benchmark.rubric_sha256
    )
    query = (
        rated(*own)
        .where(Instance.benchmark == benchmark, col(Rating.rubric_sha256).in_(on_points))
        .where(NEWEST, FOR_STUDY, Rating.pass_ == FIRST, Rating.replicate == 0)
        .order_by(col(Rating.id))
    )
    with reading(engine) as session:
        rows = session.execute(query).all()
        bodies = select(RubricText.sha256, RubricText.body).where(
            col(RubricText.sha256).in_({row[-1] for row in rows})
        )
        rubrics = {sha: Rubric.from_json(body) for sha, body in session.exec(bodies)}
    return [
        GivenAnswer(
            response, key, name, rater, kind == Kind.JUROR, point, score, said, rubrics[sha]
        )
        for response, key, name, rater, kind, point, score, said, sha in rows
    ]


# Return the instances of a benchmark that have points; those that have none yet. For who steers.
cases_of = asking(case_rubrics, Role.RESEARCHER, Role.COORDINATOR)
bare_of = asking(without_points, Role.RESEARCHER, Role.COORDINATOR)
