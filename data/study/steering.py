"""What coordinators do to a study in the app and what they are shown; each function checks the role."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine, event, func
from sqlmodel import col, select

from data.database import reading, transaction
from data.errors import BadInput, Unknown
from data.person import Person, asking, only
from data.record import LOCKED, REOPENED, UNBLINDED, log, refuse_locked
from data.rubric import Rubric
from data.schema import (
    Account,
    Benchmark,
    Event,
    Instance,
    Kind,
    Rater,
    Rating,
    Response,
    Role,
)
from data.study.assignments import Key, Slot, assign
from data.study.base import FOR_STUDY, columns_of
from data.study.pairs import import_pairs, make_pairs
from data.study.people import Invitation, invite
from data.study.ratings import import_ratings
from data.study.responses import import_responses
from data.study.rubrics import add_rubric, rubrics_known, study_rubrics
from data.study.settings import consents, describe, description_versions, lock, reopen
from data.study.standing import settings, stored_rubric
from data.study.verify import acts, locked_since, verify
from data.taxonomy import subcategories


def dry_run(engine: Engine) -> Engine:
    """Return an engine on the same study on which every commit is a rollback.

    What is written in one transaction is seen to its end and then gone, whoever wrote it.
    """

    def take_back(connection: Connection) -> None:  # in the driver, so that nothing is left to keep
        driver: Any = connection.connection.dbapi_connection
        driver.rollback()

    trial = engine.execution_options(rehearsal=True)
    event.listen(trial, "commit", take_back)
    return trial


# Store responses.
bring_responses = asking(import_responses, Role.COORDINATOR)
# Store pairs with their responses.
bring_pairs = asking(import_pairs, Role.COORDINATOR)
# Pair responses that are there.
pair_up = asking(make_pairs, Role.COORDINATOR)


# Store ratings made elsewhere.
bring_ratings = asking(import_ratings, Role.COORDINATOR)


@only(Role.COORDINATOR)
def set_place(
    by: Person, engine: Engine, benchmark: str, category: str = "", subcategory: str = ""
) -> bool:
    """Say where a benchmark stands in the taxonomy; False if it stands there already.

    Raises
    ------
    Unknown
        If the study has no such benchmark.
    BadInput
        If the taxonomy has no such category, or the category no such subcategory. A
        category alone, or neither, is allowed.
    """
    places = subcategories()
    parts = places.get(category, [])
    if category and category not in places:
        raise BadInput(f"category {category!r}: choose from {', '.join(places)}")
    if subcategory and subcategory not in parts:
        raise BadInput(f"subcategory {subcategory!r}: is not one of {category!r}")
    with transaction(engine) as session:
        refuse_locked(session)
        stored = session.get(Benchmark, benchmark)
        if stored is None:
            raise Unknown(f"benchmark {benchmark!r}: is not in this study")
        if (stored.category, stored.subcategory) == (category, subcategory):
            return False
        stored.category, stored.subcategory = category, subcategory
        detail = {"category": category, "subcategory": subcategory}
        log(session, by.actor, "place in the taxonomy set", {"benchmark": benchmark} | detail)
    return True


@only(Role.COORDINATOR)
def store_design(
    _: Person,
    engine: Engine,
    raters: Sequence[str],
    slots: Sequence[Slot],
    seed: int,
    dropped: Sequence[Key],
    per_response: int,
) -> list[Invitation]:
    """Store a design as `medjury rate assign` does; return a code for each clinician without one."""
    invitations = invite(engine, raters)
    assign(engine, slots, seed, dropped, per_response)
    return invitations


# Lock the study, open it again, and tell clinicians of it, in a coordinator's name.
lock_study = asking(lock, Role.COORDINATOR)
reopen_study = asking(reopen, Role.COORDINATOR)
describe_study = asking(describe, Role.COORDINATOR)


@only(Role.COORDINATOR)
def keep_version(by: Person, engine: Engine, rubric: Rubric) -> str:
    """Store a rubric as `medjury study rubric add` does; return its SHA-256.

    Raises
    ------
    BadInput
        If the study has exactly this rubric, or other words under the same name and version:
        nobody could tell the two apart by name.
    NotAllowed
        If the study is locked.
    """
    for existing in study_rubrics(by, engine):
        if existing.rubric.sha256 == rubric.sha256:
            raise BadInput("nothing is changed: the study has a rubric of exactly these words")
        if (existing.rubric.name, existing.rubric.version) == (rubric.name, rubric.version):
            raise BadInput(
                f"version {rubric.version}: the study has other words under this version of "
                f"{rubric.name}; give another version"
            )
    return add_rubric(engine, rubric)


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
    query = (
        select(Instance.benchmark, func.count(by_whom.c.rater))
        .select_from(Response)
        .join(Instance)
        .outerjoin(by_whom, col(Response.id) == by_whom.c.response)
        .where(FOR_STUDY)
        .group_by(col(Response.id), col(Instance.benchmark))
    )
    counts: dict[str, Counter[int]] = {}
    with reading(engine) as session:
        for benchmark, readings in session.exec(query):
            counts.setdefault(benchmark, Counter())[readings] += 1
    return counts


@only(Role.RESEARCHER, Role.COORDINATOR)
def standing(_: Person, engine: Engine) -> StudyStanding:
    """Return whether a study is locked, and what was done to its blind and its lock."""
    steering_events = acts(engine, LOCKED, REOPENED, UNBLINDED)
    with reading(engine) as session:
        events = session.exec(select(func.count(col(Event.id)))).one()
        query = select(Rater.id).where(col(Rater.simulated).is_(True)).limit(1)
        simulated = session.exec(query).first() is not None
    steered = tuple(
        (one.action, one.at, one.actor, one.detail.get("reason", "")) for one in steering_events
    )
    return StudyStanding(locked_since(engine), steered, events, simulated)


# Check the record as it stands at this moment.
checked_record = asking(verify, Role.RESEARCHER, Role.COORDINATOR)


@only(Role.RESEARCHER, Role.COORDINATOR)
def rubric_names(_: Person, engine: Engine) -> list[str]:
    """Return the names of the rubrics that stand in the study."""
    return sorted({rubric.name for rubric in rubrics_known(engine).values()})


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
