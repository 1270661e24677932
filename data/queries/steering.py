"""What coordinators and researchers are shown of a study: benchmarks, progress, lock and blind."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine, func
from sqlmodel import col, select

from data.database import reading
from data.person import Person, asking, only
from data.queries.base import FOR_STUDY, columns_of
from data.queries.descriptions import consents, description_versions
from data.queries.record import acts, locked_since, verify
from data.queries.study import BenchmarkView, benchmarks, settings, stored_rubric
from data.queries.taxonomy import known_places
from data.record import LOCKED, REOPENED, UNBLINDED
from data.schema import (
    Account,
    Event,
    Instance,
    Kind,
    Rater,
    Rating,
    Response,
    Role,
    RubricText,
)


@dataclass(frozen=True, slots=True)
class Material:
    """A benchmark, where the taxonomy has one of its name, and what stands in it.

    Attributes
    ----------
    known
        Category and subcategory in the taxonomy; ("", "") if it has no such benchmark.
    references, masked
        Instances with a reference; responses in which an author's name is masked.
    """

    view: BenchmarkView
    known: tuple[str, str]
    references: int
    masked: int


@dataclass(frozen=True, slots=True)
class StudyStanding:
    """Whether a study is locked, what was lifted or reopened when and why, and its chain.

    Attributes
    ----------
    steered
        (act, when, by whom, reason), oldest first.
    """

    locked: str | None
    steered: tuple[tuple[str, datetime, str, str], ...]
    events: int
    simulated: bool


@only(Role.RESEARCHER, Role.COORDINATOR)
def materials(_: Person, engine: Engine) -> list[Material]:
    """Return every benchmark with its counts, by name; training responses left out."""
    with_reference = (
        select(Instance.benchmark, func.count())
        .where(col(Instance.reference).is_not(None))
        .group_by(col(Instance.benchmark))
    )
    masked = (
        select(Instance.benchmark, func.count())
        .join(Response)
        .where(col(Response.shown).is_not(None))
        .group_by(col(Instance.benchmark))
    )
    with reading(engine) as session:
        references = dict(session.exec(with_reference).all())
        masks = dict(session.exec(masked).all())
    taxonomy = known_places()
    return [
        Material(
            benchmark,
            taxonomy.get(benchmark.name, ("", "")),
            references.get(benchmark.name, 0),
            masks.get(benchmark.name, 0),
        )
        for benchmark in benchmarks(engine)
    ]


@only(Role.RESEARCHER, Role.COORDINATOR)
def readings_by_response(_: Person, engine: Engine) -> dict[str, Counter[int]]:
    """Return, for each benchmark, how many responses have been rated by 0, 1, 2 ... clinicians.

    Hidden repeats and training responses do not count; simulated clinicians do.
    """
    clinicians = select(Rater.id).where(Rater.kind == Kind.CLINICIAN)
    by_whom = (
        select(Rating.response, Rating.rater)
        .where(col(Rating.rater).in_(clinicians), Rating.pass_ == 0)
        .distinct()
        .subquery()
    )
    rated = (
        select(Instance.benchmark, func.count())
        .select_from(by_whom)
        .join(Response, col(Response.id) == by_whom.c.response)
        .join(Instance)
        .where(FOR_STUDY)
        .group_by(col(Response.id), col(Instance.benchmark))
    )
    every = (
        select(Instance.benchmark, func.count())
        .select_from(Response)
        .join(Instance)
        .where(FOR_STUDY)
        .group_by(col(Instance.benchmark))
    )
    with reading(engine) as session:
        counts = {benchmark: Counter({0: number}) for benchmark, number in session.exec(every)}
        for benchmark, readings in session.exec(rated):
            counts[benchmark].update({0: -1, readings: 1})
    return {benchmark: +by_number for benchmark, by_number in counts.items()}


@only(Role.RESEARCHER, Role.COORDINATOR)
def standing(_: Person, engine: Engine) -> StudyStanding:
    """Return whether a study is locked, and what was done to its blind and its lock."""
    steering_events = acts(engine, LOCKED, REOPENED, UNBLINDED)
    with reading(engine) as session:
        events = session.exec(select(func.count(col(Event.id)))).one()
        query = select(Rater.id).where(col(Rater.simulated).is_(True)).limit(1)
        simulated = session.exec(query).first() is not None
    steered = tuple(
        (event.action, event.at, event.actor, event.detail.get("reason", ""))
        for event in steering_events
    )
    return StudyStanding(locked_since(engine), steered, events, simulated)


# Check the record as it stands at this moment.
checked_record = asking(verify, Role.RESEARCHER, Role.COORDINATOR)


@only(Role.RESEARCHER, Role.COORDINATOR)
def rubric_names(_: Person, engine: Engine) -> list[str]:
    """Return the names of the rubrics that stand in the study."""
    with reading(engine) as session:
        return sorted(set(session.exec(select(RubricText.name))))


# Return what the study decides for all its clinicians.
study_settings = asking(settings, Role.RESEARCHER, Role.COORDINATOR)

# Return every version of what clinicians are told, the oldest first.
study_descriptions = asking(description_versions, Role.RESEARCHER, Role.COORDINATOR)

# Return who is asked for consent or gave it, by name.
study_consents = asking(consents, Role.RESEARCHER, Role.COORDINATOR)

# Return the rubric last stored under a name, or None.
rubric_of_name = asking(stored_rubric, Role.RESEARCHER, Role.COORDINATOR)


@only(Role.RESEARCHER, Role.COORDINATOR)
def who_can_rate(_: Person, engine: Engine) -> list[str]:
    """Return the clinicians who can be given work: those with an account that has not ended."""
    query = select(Account.name).where(Account.role == Role.CLINICIAN, col(Account.ended).is_(None))
    with reading(engine) as session:
        return sorted(session.exec(query))


@only(Role.RESEARCHER, Role.COORDINATOR)
def response_names(_: Person, engine: Engine) -> list[tuple[str, str, str]]:
    """Return every response by its names: (response id, benchmark, instance id); no training, no author."""
    query = (
        columns_of(Response.response_id, Instance.benchmark, Instance.instance_id)
        .select_from(Response)
        .join(Instance)
        .where(FOR_STUDY)
        .order_by(col(Instance.benchmark), col(Instance.id), col(Response.response_id))
    )
    with reading(engine) as session:
        return [(name, benchmark, instance) for name, benchmark, instance in session.exec(query)]
