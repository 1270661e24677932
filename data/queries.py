"""The only module that reads a study. What raters are served never touches Authorship."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from sqlalchemy import Engine, Select, func
from sqlalchemy import select as select_columns
from sqlmodel import col, desc, select

from data.card import Card
from data.database import reading
from data.rubric import Rubric
from data.schema import (
    Access,
    Assignment,
    Benchmark,
    Instance,
    Rater,
    Rating,
    Response,
    RubricText,
    State,
)

_DRAFT = (Assignment.draft, Assignment.draft_seq, Assignment.seconds_active)
NOBODY = PasswordHasher().hash("nobody")


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
class Person:
    """A signed-in clinician."""

    id: int
    handle: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of a clinician's assignments are done."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Task:
    """The response a clinician is at: its card, rubric, draft so far and the draft's number."""

    card: Card
    rubric: Rubric
    draft: Mapping[str, Any]
    draft_seq: int
    seconds_active: float


@dataclass(frozen=True, slots=True)
class JurorCard:
    """A response (primary key) as a juror gets it, with the rubric of its benchmark."""

    response: int
    benchmark: str
    card: Card


@dataclass(frozen=True, slots=True)
class Pair:
    """A response (primary key) beside its instance's reference, for metrics."""

    response: int
    response_id: str
    text: str
    reference: str | None


def benchmarks(engine: Engine) -> list[BenchmarkView]:
    """Return every benchmark with its rubric and counts, by name."""
    query = (
        select(
            Benchmark,
            RubricText.body,
            func.count(func.distinct(Instance.id)),
            func.count(col(Response.id)),
        )
        .join(RubricText, col(RubricText.sha256) == col(Benchmark.rubric_sha256))
        .outerjoin(Instance, col(Instance.benchmark) == col(Benchmark.name))
        .outerjoin(Response, col(Response.instance) == col(Instance.id))
        .group_by(col(Benchmark.name), RubricText.body)
        .order_by(col(Benchmark.name))
    )
    with reading(engine) as session:
        return [
            BenchmarkView(
                one.name,
                one.category,
                one.subcategory,
                Rubric.from_json(body),
                instances,
                responses,
            )
            for one, body, instances, responses in session.exec(query)
        ]


def stored_rubric(engine: Engine, name: str) -> Rubric | None:
    """Return the rubric last stored under a name, or None."""
    query = select(RubricText.body).where(RubricText.name == name).order_by(desc(RubricText.added))
    with reading(engine) as session:
        body = session.exec(query).first()
    return Rubric.from_json(body) if body else None


def person_by_code(engine: Engine, code: str) -> Person | None:
    """Return the clinician a sign-in code belongs to; None, in the same time, if to nobody."""
    lookup, _, secret = code.strip().upper().replace(" ", "").partition("-")
    query = (
        select(Access.secret_hash, Rater.id, Rater.handle)
        .join(Rater, col(Rater.id) == col(Access.rater))
        .where(Access.lookup == lookup, col(Access.revoked).is_(None))
    )
    with reading(engine) as session:
        found = session.exec(query).first()
    stored, rater, handle = found or (NOBODY, None, "")
    try:
        PasswordHasher().verify(stored, secret.replace("-", ""))
    except VerifyMismatchError:
        return None
    return Person(rater, handle) if rater is not None else None


def person(engine: Engine, rater: int) -> Person | None:
    """Return a clinician by primary key, if their access has not been revoked."""
    query = (
        select(Rater.handle)
        .join(Access, col(Access.rater) == col(Rater.id))
        .where(Rater.id == rater, col(Access.revoked).is_(None))
    )
    with reading(engine) as session:
        handle = session.exec(query).first()
    return None if handle is None else Person(rater, handle)


def progress(engine: Engine, rater: int) -> Progress:
    """Return how far a clinician has come."""
    done = func.count(col(Assignment.done_at))
    with reading(engine) as session:
        row = session.exec(
            select(done, func.count(col(Assignment.id))).where(Assignment.rater == rater)
        ).one()
    return Progress(*row)


def next_task(engine: Engine, rater: int) -> Task | None:
    """Return the first open response in a clinician's own order, or None when all is done."""
    query = (
        _shown(
            Assignment.code,
            RubricText.body,
            Assignment.draft,
            Assignment.draft_seq,
            Assignment.seconds_active,
        )
        .join(Assignment, col(Assignment.response) == col(Response.id))
        .join(Benchmark, col(Benchmark.name) == col(Instance.benchmark))
        .join(RubricText, col(RubricText.sha256) == col(Benchmark.rubric_sha256))
        .where(col(Assignment.rater) == rater, col(Assignment.state) == State.OPEN)
        .order_by(col(Assignment.position))
        .limit(1)
    )
    with reading(engine) as session:
        row = session.execute(query).first()
    if row is None:
        return None
    *texts, code, body, draft, seq, seconds = row
    rubric = Rubric.from_json(body)
    return Task(_card(code, texts, rubric), rubric, draft, seq, seconds)


def juror_cards(engine: Engine, benchmark: str, rubric: Rubric) -> Iterator[JurorCard]:
    """Yield a benchmark's responses as jurors get them, in a fixed order."""
    query = (
        _shown(Response.id).where(col(Instance.benchmark) == benchmark).order_by(col(Response.id))
    )
    with reading(engine) as session:
        for *texts, key in session.execute(query).yield_per(200):
            yield JurorCard(key, benchmark, _card(str(key), texts, rubric))


def complete_ratings(engine: Engine, rater: int, rubric: Rubric) -> set[tuple[int, int]]:
    """Return (response, replicate) wherever a rater has scored every criterion of a rubric."""
    query = (
        select(Rating.response, Rating.replicate)
        .where(Rating.rater == rater, Rating.rubric_sha256 == rubric.sha256, Rating.pass_ == 0)
        .group_by(col(Rating.response), col(Rating.replicate))
        .having(func.count(func.distinct(Rating.criterion)) == len(rubric.criteria))
    )
    with reading(engine) as session:
        return {(response, replicate) for response, replicate in session.exec(query)}


def pairs(engine: Engine) -> Iterator[Pair]:
    """Yield every response with its reference, grouped by instance."""
    query = (
        select(Response.id, Response.response_id, Response.text, Instance.reference)
        .join(Instance, col(Instance.id) == col(Response.instance))
        .order_by(col(Response.instance), col(Response.id))
    )
    with reading(engine) as session:
        for key, name, text, reference in session.exec(query).yield_per(200):
            yield Pair(key or 0, name, text, reference)


def simulated_raters(engine: Engine) -> frozenset[str]:
    """Return the handles of raters that are simulated."""
    with reading(engine) as session:
        return frozenset(session.exec(select(Rater.handle).where(col(Rater.simulated).is_(True))))


def _shown(*also: Any) -> Select[*tuple[Any, ...]]:
    """Select what a card shows of a response, and what else is asked for; never its author."""
    texts = (Instance.context, Instance.prompt, Response.text)
    support = (Instance.reference, Instance.checklist)
    query: Select[*tuple[Any, ...]] = (
        select_columns(*(col(one) for one in (*texts, *support)), *(col(one) for one in also))
        .select_from(Response)
        .join(Instance, col(Instance.id) == col(Response.instance))
    )
    return query


def _card(code: str, texts: list[Any], rubric: Rubric) -> Card:
    """Return a card, with the reference only where the rubric's gold policy shows one."""
    context, prompt, response, reference, checklist = texts
    if rubric.gold == "never":
        reference = None
    return Card(code, context, prompt, response, reference, checklist)


@dataclass(frozen=True, slots=True)
class DesignItem:
    """A response as the assignment design needs it; for coordinators, never for raters."""

    response: int
    response_id: str
    instance: int
    model: str
    benchmark: str


def design_items(engine: Engine) -> list[DesignItem]:
    """Return every response with its instance and author, so that designs can balance both."""
    query = (
        select_columns(
            col(Response.id),
            col(Response.response_id),
            col(Response.instance),
            col(Authorship.model),
            col(Instance.benchmark),
        )
        .join(Authorship, col(Authorship.response) == col(Response.id))
        .join(Instance, col(Instance.id) == col(Response.instance))
        .order_by(col(Response.id))
    )
    with reading(engine) as session:
        return [DesignItem(*row) for row in session.execute(query)]


def study_is_empty(engine: Engine) -> bool:
    """Tell whether nothing has been imported yet."""
    with reading(engine) as session:
        return session.exec(select(col(Response.id)).limit(1)).first() is None
