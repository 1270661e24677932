"""What stands in a study, for those who steer it."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Engine, and_, func
from sqlmodel import col, desc, select

from data.card import THIRD
from data.database import reading
from data.queries.authors import authors_unless_blind
from data.queries.base import FOR_STUDY, columns_of
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Attempt,
    Benchmark,
    Event,
    Instance,
    Rater,
    Rating,
    Response,
    RubricText,
    Setting,
    State,
)
from data.settings import Settings, read_settings
from data.store.access import SIGNED_OUT
from data.store.description import CONSENTED
from data.store.ledger import EVALUATED

COUNTED = (Response, Rating, Attempt)
LOOKING = (EVALUATED, CONSENTED, "signed in", SIGNED_OUT)


@dataclass(frozen=True, slots=True)
class BenchmarkView:
    """A benchmark with its rubric and how much stands in it."""

    name: str
    category: str
    subcategory: str
    rubric: Rubric
    instances: int
    responses: int


@dataclass(frozen=True, slots=True)
class Pair:
    """A response (primary key) beside its instance's reference, for metrics."""

    response: int
    response_id: str
    text: str
    reference: str | None


@dataclass(frozen=True, slots=True)
class DesignItem:
    """A response as the assignment design needs it; `model` is "" while the study is blind."""

    response: int
    response_id: str
    instance: int
    model: str
    benchmark: str


def benchmarks(engine: Engine) -> list[BenchmarkView]:
    """Return every benchmark with its rubric and counts, by name; training responses left out."""
    numbers = (func.count(func.distinct(Instance.id)), func.count(col(Response.id)))
    query = (
        select(Benchmark, RubricText.body, *numbers)
        .select_from(Benchmark)
        .join(RubricText)
        .outerjoin(Instance)
        .outerjoin(Response, and_(col(Response.instance) == col(Instance.id), FOR_STUDY))
        .group_by(col(Benchmark.name), RubricText.body)
        .order_by(col(Benchmark.name))
    )
    with reading(engine) as session:
        return [
            BenchmarkView(one.name, one.category, one.subcategory, Rubric.from_json(body), *counts)
            for one, body, *counts in session.exec(query)
        ]


def stored_rubric(engine: Engine, name: str) -> Rubric | None:
    """Return the rubric last stored under a name, or None."""
    query = select(RubricText.body).where(RubricText.name == name).order_by(desc(RubricText.added))
    with reading(engine) as session:
        body = session.exec(query).first()
    return Rubric.from_json(body) if body else None


def simulated_raters(engine: Engine) -> frozenset[str]:
    """Return the handles of raters that are simulated."""
    with reading(engine) as session:
        return frozenset(session.exec(select(Rater.handle).where(col(Rater.simulated).is_(True))))


def pairs(engine: Engine) -> Iterator[Pair]:
    """Yield every response with its reference, grouped by instance; training responses left out."""
    query = (
        select(Response.id, Response.response_id, Response.text, Instance.reference)
        .join(Instance)
        .where(FOR_STUDY)
        .order_by(col(Response.instance), col(Response.id))
    )
    with reading(engine) as session:
        for key, name, text, reference in session.exec(query).yield_per(200):
            yield Pair(key or 0, name, text, reference)


@dataclass(frozen=True, slots=True)
class AssignedView:
    """An assignment as the design needs it; `begun` ones stay with their clinician."""

    rater: str
    response: int
    pass_: int
    position: int
    begun: bool


def assigned(engine: Engine) -> list[AssignedView]:
    """Return every independent assignment of the study but those given back."""
    query = (
        select(Rater.handle, Assignment)
        .join(Rater)
        .where(Assignment.state != State.RECUSED, col(Assignment.pass_) < THIRD)
        .order_by(col(Assignment.id))
    )
    with reading(engine) as session:
        return [
            AssignedView(
                handle,
                one.response,
                one.pass_,
                one.position,
                one.state != State.OPEN or one.draft_seq > 0 or one.opened_at is not None,
            )
            for handle, one in session.exec(query)
        ]


def design_items(engine: Engine) -> list[DesignItem]:
    """Return every response that is not for training, with its instance, and its model to balance.

    While the study is blind no model is told, so that no design tells who wrote what.
    """
    query = (
        columns_of(Response.id, Response.response_id, Response.instance, Instance.benchmark)
        .select_from(Response)
        .join(Instance)
        .where(FOR_STUDY)
        .order_by(col(Response.id))
    )
    with reading(engine) as session:
        models = authors_unless_blind(session) or {}
        return [
            DesignItem(key, name, instance, models.get(key, ""), benchmark)
            for key, name, instance, benchmark in session.exec(query)
        ]


def settings(engine: Engine) -> Settings:
    """Return a study's settings; what was never set is the default."""
    with reading(engine) as session:
        return read_settings({one.key: one.value for one in session.exec(select(Setting))})


def version(engine: Engine) -> tuple[int, ...]:
    """Return numbers that differ whenever responses, ratings, calls or events were added.

    All of these are append-only, so that the greatest of each is enough; it costs one query.
    That somebody came, or looked at a jury, is an event too, and no change: figures would be
    out of date as soon as they are there.
    """
    told = [select(func.max(col(one.id))).scalar_subquery() for one in COUNTED]
    acts = select(col(Event.id)).where(col(Event.action).not_in(LOOKING))
    told.append(acts.order_by(col(Event.id).desc()).limit(1).scalar_subquery())
    with reading(engine) as session:
        return tuple(number or 0 for number in session.execute(select(*told)).one())


def study_id(engine: Engine) -> str:
    """Return the hash of the first event of the record: the study's own on every machine.

    Empty where nothing has happened yet.
    """
    with reading(engine) as session:
        return session.exec(select(Event.sha256).order_by(col(Event.id)).limit(1)).first() or ""
