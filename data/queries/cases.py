"""Points of the case as the study has them: the rubric of each instance, its versions and drafts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.card import FIRST
from data.database import reading
from data.errors import BadInput
from data.person import Person, asking, only
from data.queries.base import FOR_STUDY, NEWEST, columns_of, rated
from data.queries.study import BenchmarkView
from data.rubric import Rubric
from data.safe_text import short
from data.schema import (
    IS_RATED_ON,
    RATED_ON,
    Benchmark,
    Instance,
    Kind,
    PointCall,
    PointOrigin,
    PointSet,
    Rater,
    Rating,
    Response,
    Role,
    RubricText,
    now,
)


@dataclass(frozen=True, slots=True)
class CaseRubric:
    """The points that an instance is rated by; `key` is the instance's primary key."""

    key: int
    instance_id: str
    rubric: Rubric


@dataclass(frozen=True, slots=True)
class PointDraft:
    """Points that a model, `author`, drafted for an instance, and nobody has taken up."""

    instance_id: str
    rubric: Rubric
    author: str


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
                f"{short(bare[0])}; add them (`medjury study points add FILE --benchmark "
                f"{benchmark.name}`; in the app: Study, Points)"
            )


@only(Role.RESEARCHER, Role.COORDINATOR)
def drafts_of(_: Person, engine: Engine, benchmark: str) -> list[PointDraft]:
    """Return the newest draft of each instance of a benchmark that has no points yet."""
    newest = (
        select(func.max(PointSet.id))
        .where(PointSet.origin == PointOrigin.DRAFT)
        .group_by(col(PointSet.instance))
    )
    query = (
        columns_of(Instance.instance_id, RubricText.body, PointSet.author)
        .select_from(PointSet)
        .join(Instance)
        .join(Benchmark)
        .join(RubricText, col(RubricText.sha256) == PointSet.rubric_sha256)
        .where(Instance.benchmark == benchmark, Benchmark.rubric_sha256 == RATED_ON)
        .where(col(PointSet.id).in_(newest))
        .order_by(col(Instance.id))
    )
    with reading(engine) as session:
        rows = session.execute(query).all()
    return [PointDraft(name, Rubric.from_json(body), author) for name, body, author in rows]


@dataclass(frozen=True, slots=True)
class Drafting:
    """What drafting has brought and cost; `unknown` of its calls have no known price."""

    drafts: int
    calls: int
    usd: float
    unknown: int


@only(Role.RESEARCHER, Role.COORDINATOR)
def drafting(_: Person, engine: Engine, since: datetime, until: datetime | None) -> Drafting:
    """Return the drafts, calls and US dollars between two times, from what is stored of each call."""
    end = until or now()
    sent = select(func.count(), func.sum(PointCall.usd), func.count(col(PointCall.usd))).where(
        PointCall.number > 0, col(PointCall.at).between(since, end)
    )
    stored = select(func.count()).where(
        PointSet.origin == PointOrigin.DRAFT, col(PointSet.at).between(since, end)
    )
    with reading(engine) as session:
        calls, usd, priced = session.exec(sent).one()
        return Drafting(session.exec(stored).one(), calls, usd or 0.0, calls - priced)


def newest_points(session: Session, instance: int, origin: PointOrigin) -> PointSet | None:
    """Return the newest version of an instance's points by people, or draft, in a transaction."""
    query = select(PointSet).where(PointSet.instance == instance, PointSet.origin == origin)
    return session.exec(query.order_by(col(PointSet.id).desc()).limit(1)).first()


@dataclass(frozen=True, slots=True)
class CaseToDraft:
    """An instance (primary key) as a model gets it to draft points; no response is in it."""

    instance: int
    instance_id: str
    context: str
    prompt: str
    reference: str | None


def to_draft(engine: Engine, benchmark: str, rubric: Rubric) -> list[CaseToDraft]:
    """Return a benchmark's instances that have responses and neither points nor a draft on a rubric."""
    have = select(PointSet.instance).where(PointSet.benchmark_rubric == rubric.sha256)
    query = (
        columns_of(
            *(Instance.id, Instance.instance_id, Instance.context, Instance.prompt),
            Instance.reference,
        )
        .select_from(Instance)
        .where(Instance.benchmark == benchmark, col(Instance.id).not_in(have))
        .where(col(Instance.id).in_(select(Response.instance).where(FOR_STUDY)))
        .order_by(col(Instance.id))
    )
    with reading(engine) as session:
        rows = session.execute(query).all()
    shows = rubric.gold != "never"
    return [
        CaseToDraft(key, name, context, prompt, reference if shows else None)
        for key, name, context, prompt, reference in rows
    ]


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
