"""Benchmarks, responses, settings and counts of a study, and its places in the taxonomy."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from sqlalchemy import Engine, and_, case, func
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, desc, select

from data.card import FIRST, SETTLING, THIRD, reading_of_pass
from data.database import reading
from data.person import asking
from data.record import REVIEWED
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Attempt,
    Benchmark,
    Drill,
    Event,
    Expert,
    Instance,
    Kind,
    Rater,
    Rating,
    Response,
    Role,
    RubricText,
    Setting,
    State,
)
from data.settings import Settings, read_settings
from data.study.access import SIGNED_OUT
from data.study.authors import author_names
from data.study.base import (
    BY_ITSELF,
    FOR_STUDY,
    WITHDRAWN_RATERS,
    columns_of,
    setting_values,
)
from data.study.ledger import EVALUATED
from data.study.readings import INDEPENDENT, NEWEST
from data.study.settings import CONSENTED
from data.taxonomy import known_places

# What clinicians have read by themselves.
_READ = (
    select(Rating.response, Rating.rater)
    .join(Rater)
    .where(Rater.kind == Kind.CLINICIAN, INDEPENDENT, NEWEST)
    .where(col(Rater.id).not_in(WITHDRAWN_RATERS))
    .distinct()
)

COUNTED = (Response, Rating, Attempt)
LOOKING = (EVALUATED, CONSENTED, "signed in", SIGNED_OUT, REVIEWED)


@dataclass(frozen=True, slots=True)
class BenchmarkView:
    """A benchmark with its rubric and how much stands in it; `category` is "" where none was said.

    `references` are instances that have one, `masked` responses in which an author's name is masked.
    """

    name: str
    category: str
    subcategory: str
    rubric: Rubric
    instances: int
    responses: int
    references: int
    masked: int

    @property
    def place(self) -> tuple[str, str]:
        """Category and subcategory: its own, else those of the taxonomy's of this name, or ""."""
        own = self.category, self.subcategory
        return own if self.category else known_places().get(self.name, own)


@dataclass(frozen=True, slots=True)
class ReferencePair:
    """A response (primary key) beside its instance's reference, for metrics."""

    response: int
    response_id: str
    text: str
    reference: str | None
    benchmark: str = ""
    instance_id: str = ""


def benchmarks(engine: Engine) -> list[BenchmarkView]:
    """Return every benchmark with its rubric and counts, by name; training responses left out."""
    referred = case((col(Instance.reference).is_not(None), Instance.id))
    numbers = (
        *(func.count(func.distinct(Instance.id)), func.count(col(Response.id))),
        *(func.count(func.distinct(referred)), func.count(col(Response.shown))),
    )
    query = (
        columns_of(Benchmark, RubricText.body, *numbers)
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


def pairs(engine: Engine) -> Iterator[ReferencePair]:
    """Yield every response with its reference, grouped by instance; neither training nor pairs."""
    query = (
        select_columns(
            *(col(Response.id), col(Response.response_id), col(Response.text)),
            *(col(Instance.reference), col(Instance.benchmark), col(Instance.instance_id)),
        )
        .join(Instance)
        .where(FOR_STUDY, BY_ITSELF)
        .order_by(col(Response.instance), col(Response.id))
    )
    with reading(engine) as session:
        for row in session.execute(query.execution_options(yield_per=200)):
            yield ReferencePair(*row)


def showings(engine: Engine) -> dict[tuple[str, str], tuple[int, str]]:
    """Return (rater, response_id) -> first reading that is assigned and not given back: rater's key, code."""
    query = (
        columns_of(Rater.handle, Response.response_id, Assignment.rater, Assignment.code)
        .select_from(Assignment)
        .join(Rater)
        .join(Response)
        .where(Assignment.state != State.RECUSED, Assignment.pass_ == FIRST)
    )
    with reading(engine) as session:
        return {
            (handle, response): (rater, code)
            for handle, response, rater, code in session.exec(query)
        }


def settings(engine: Engine) -> Settings:
    """Return a study's settings; what was never set is the default."""
    with reading(engine) as session:
        return read_settings(setting_values(session))


def version(engine: Engine) -> tuple[int, ...]:
    """Return numbers that differ whenever responses, ratings, calls or events were added.

    All of these are append-only, so that the greatest of each is enough; it costs one query.
    That somebody came, or looked at a jury, is an event too, and no change: figures would be
    out of date as soon as they are there.
    """
    newest = [select(func.max(col(table.id))).scalar_subquery() for table in COUNTED]
    acts = select(col(Event.id)).where(col(Event.action).not_in(LOOKING))
    newest.append(acts.order_by(col(Event.id).desc()).limit(1).scalar_subquery())
    with reading(engine) as session:
        return tuple(number or 0 for number in session.execute(select(*newest)).one())


def study_id(engine: Engine) -> str:
    """Return the hash of the first event of the record: the study's own on every machine.

    Empty where nothing has happened yet.
    """
    with reading(engine) as session:
        return session.exec(select(Event.sha256).order_by(col(Event.id)).limit(1)).first() or ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a study can say of itself in numbers; no author and no text.

    Attributes
    ----------
    clinicians, metrics, simulated
        Names of those who gave ratings, and of those of them who are simulated; of clinicians also how
        many are of which specialty, where known.
    models
        Number of authors of responses; who they are is not read.
    states
        State of an assignment -> number of first readings; `repeats` are hidden second ones done.
    adjudicated
        "third", "consensus" -> responses that such a reading settled; none of it in the others.
    per_response
        Clinicians wanted for each response, "" where nothing was assigned here.
    elsewhere
        Clinicians' first readings that were not made in the rating room.
    median_seconds
        At work on a reading that is done, None where none is.
    """

    clinicians: tuple[str, ...]
    specialties: Mapping[str, int]
    metrics: tuple[str, ...]
    simulated: tuple[str, ...]
    models: int
    states: Mapping[str, int]
    repeats: int
    adjudicated: Mapping[str, int]
    per_response: str
    elsewhere: int
    median_seconds: float | None
    first: datetime | None
    last: datetime | None
    masked: int
    training: int
    trained: int
    seeds: tuple[int, ...]


def facts(engine: Engine) -> Facts:
    """Return the counts of a study as it stands."""
    with reading(engine) as session:
        first_rated, last_rated = session.exec(
            select(func.min(Rating.at), func.max(Rating.at))
            .join(Rater)
            .where(Rater.kind == Kind.CLINICIAN, INDEPENDENT)
        ).one()
        with_ratings = col(Rater.id).in_(select(Rating.rater).where(INDEPENDENT))
        raters = session.exec(
            select(Rater).where(with_ratings).order_by(Rater.kind, Rater.handle)
        ).all()
        per_response = session.get(Setting, "per_response")
        states = select(Assignment.state, func.count()).where(Assignment.pass_ == 0)
        states = states.group_by(Assignment.state)
        done = Assignment.state == State.DONE, Assignment.pass_ < THIRD
        seconds = session.exec(select(Assignment.seconds_active).where(*done)).all()
        settling = select(Rating.pass_, func.count(func.distinct(Rating.response)))
        settling = settling.where(~INDEPENDENT).group_by(col(Rating.pass_))
        settled = {reading_of_pass(pass_): number for pass_, number in session.exec(settling)}
        finished = Assignment.pass_ == FIRST, Assignment.state == State.DONE
        pairs = select(Assignment.response, Assignment.rater).where(*finished)
        done_here = {(response, rater) for response, rater in session.exec(pairs)}
        elsewhere = _READ.where(Rating.pass_ == FIRST)
        given = select(Event.detail).where(Event.action == "responses assigned")
        seeds = [one.get("seed") for one in session.exec(given.order_by(col(Event.id)))]
        return Facts(
            clinicians=tuple(one.handle for one in raters if one.kind == Kind.CLINICIAN),
            specialties=Counter(one.specialty for one in raters if one.specialty),
            metrics=tuple(one.handle for one in raters if one.kind == Kind.METRIC),
            simulated=tuple(one.handle for one in raters if one.simulated),
            models=len(author_names(engine)),
            states={str(state): number for state, number in session.exec(states)},
            repeats=len(session.exec(_READ.where(col(Rating.pass_) > 0)).all()),
            adjudicated={name: settled.get(name, 0) for name in SETTLING},
            per_response=per_response.value if per_response else "",
            elsewhere=sum(pair not in done_here for pair in session.exec(elsewhere)),
            median_seconds=median(seconds) if seconds else None,
            first=first_rated,
            last=last_rated,
            masked=_count(session, func.count(col(Response.shown))),
            training=_count(session, func.count(func.distinct(col(Expert.response)))),
            trained=_count(session, func.count(func.distinct(col(Drill.rater)))),
            seeds=tuple(dict.fromkeys(seed for seed in seeds if isinstance(seed, int))),
        )


def _count(session: Session, number: Any) -> int:
    return int(session.scalar(select(number)) or 0)


# Return every benchmark with its rubric and counts, by name.
study_benchmarks = asking(benchmarks, Role.RESEARCHER, Role.COORDINATOR)
