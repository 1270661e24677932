"""Counting what a report of a study must state: raters, responses, readings, and what is missing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from sqlalchemy import Engine, func, select
from sqlmodel import Session, col

from data.database import reading
from data.schema import (
    Assignment,
    Authorship,
    Drill,
    Event,
    Expert,
    Kind,
    Rater,
    Rating,
    Response,
    Setting,
    State,
)


@dataclass(frozen=True, slots=True)
class Raters:
    """Raters of one kind who gave ratings: handles, those simulated, and where known specialties."""

    names: tuple[str, ...]
    simulated: tuple[str, ...]
    specialties: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a study can say of itself in numbers; no author and no text.

    Attributes
    ----------
    raters
        "clinician", "juror", "metric" -> those who gave ratings.
    models
        Number of authors of responses; who they are is not read.
    states
        State of an assignment -> number of first readings; `repeats` are hidden second ones done.
    per_response
        Clinicians wanted for each response, "" where nothing was assigned here.
    elsewhere
        Clinicians' first readings that were not made in the rating room.
    median_seconds
        At work on a reading that is done, None where none is.
    """

    raters: Mapping[str, Raters]
    models: int
    states: Mapping[str, int]
    repeats: int
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
        first, last = session.execute(
            select(func.min(col(Rating.at)), func.max(col(Rating.at)))
            .join(Rater, col(Rater.id) == col(Rating.rater))
            .where(col(Rater.kind) == Kind.CLINICIAN)
        ).one()
        return Facts(
            raters={str(kind): _raters(session, kind) for kind in Kind},
            models=_count(session, func.count(func.distinct(col(Authorship.model)))),
            states=_states(session),
            repeats=_repeats(session),
            per_response=session.scalar(
                select(col(Setting.value)).where(col(Setting.key) == "per_response")
            )
            or "",
            elsewhere=_elsewhere(session),
            median_seconds=_seconds(session),
            first=first,
            last=last,
            masked=_count(session, func.count(col(Response.shown))),
            training=_count(session, func.count(func.distinct(col(Expert.response)))),
            trained=_count(session, func.count(func.distinct(col(Drill.rater)))),
            seeds=_seeds(session),
        )


def _count(session: Session, what: Any) -> int:
    return int(session.scalar(select(what)) or 0)


def _raters(session: Session, kind: Kind) -> Raters:
    query = (
        select(col(Rater.handle), col(Rater.simulated), col(Rater.specialty))
        .where(col(Rater.kind) == kind, col(Rater.id).in_(select(col(Rating.rater))))
        .order_by(col(Rater.handle))
    )
    found = session.execute(query).all()
    specialties: dict[str, int] = {}
    for _, _, specialty in found:
        if specialty:
            specialties[specialty] = specialties.get(specialty, 0) + 1
    names = tuple(name for name, _, _ in found)
    return Raters(names, tuple(name for name, made_up, _ in found if made_up), specialties)


def _states(session: Session) -> dict[str, int]:
    query = (
        select(col(Assignment.state), func.count())
        .where(col(Assignment.pass_) == 0)
        .group_by(col(Assignment.state))
    )
    return {str(state): number for state, number in session.execute(query)}


def _repeats(session: Session) -> int:
    """Count readings that a clinician gave twice, here or elsewhere."""
    query = (
        select(col(Rating.response), col(Rating.rater))
        .join(Rater, col(Rater.id) == col(Rating.rater))
        .where(col(Rater.kind) == Kind.CLINICIAN, col(Rating.pass_) > 0)
        .distinct()
    )
    return len(session.execute(query).all())


def _elsewhere(session: Session) -> int:
    """Count clinicians' first readings without an assignment that is done."""
    rated = (
        select(col(Rating.response), col(Rating.rater))
        .join(Rater, col(Rater.id) == col(Rating.rater))
        .where(col(Rater.kind) == Kind.CLINICIAN, col(Rating.pass_) == 0)
        .distinct()
    )
    done = select(col(Assignment.response), col(Assignment.rater)).where(
        col(Assignment.pass_) == 0, col(Assignment.state) == State.DONE
    )
    here = set(map(tuple, session.execute(done)))
    return sum(tuple(one) not in here for one in session.execute(rated))


def _seconds(session: Session) -> float | None:
    query = select(col(Assignment.seconds_active)).where(col(Assignment.state) == State.DONE)
    found = list(session.scalars(query))
    return median(found) if found else None


def _seeds(session: Session) -> tuple[int, ...]:
    query = select(col(Event.detail)).where(col(Event.action) == "responses assigned")
    found = dict.fromkeys(one.get("seed") for one in session.scalars(query.order_by(col(Event.id))))
    return tuple(one for one in found if isinstance(one, int))
