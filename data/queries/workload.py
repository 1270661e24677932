"""How far the clinicians are, and when they rated what they have rated."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, func
from sqlalchemy import select as select_columns
from sqlmodel import Session, col

from data.database import reading
from data.person import Person, only
from data.schema import Account, Assignment, Kind, Rater, Rating, Remark, Role, State

DONE = (State.DONE, State.UNRATED)
RECUSED = "recused"


@dataclass(frozen=True, slots=True)
class Workload:
    """A clinician's work. Repeats count as work; work given back does not.

    Attributes
    ----------
    done, total
        Showings ended and assigned; `unrated` of those ended could not be rated.
    recused, flagged
        Showings given back; showings whose newest submission has a flag.
    elsewhere
        Responses rated by an import, without an assignment.
    seconds
        Median active seconds of what is done; None where nothing is.
    ended
        Whether they were shut out.
    """

    handle: str
    simulated: bool
    ended: bool
    done: int
    total: int
    unrated: int
    recused: int
    flagged: int
    elsewhere: int
    last: datetime | None
    seconds: float | None

    @property
    def open(self) -> int:
        """Showings still to be rated."""
        return self.total - self.done


@only(Role.RESEARCHER, Role.COORDINATOR)
def workloads(_: Person, engine: Engine) -> list[Workload]:
    """Return every clinician's work, by name; those who neither rated nor are to rate left out."""
    query = (
        select_columns(col(Rater.id), col(Rater.handle), col(Rater.simulated), col(Account.ended))
        .outerjoin(Account, col(Account.rater) == col(Rater.id))
        .where(col(Rater.kind) == Kind.CLINICIAN)
        .order_by(col(Rater.handle))
    )
    with reading(engine) as session:
        work, flags, imported = _work(session), _flagged(session), _elsewhere(session)
        found = [
            _workload(name, simulated, ended is not None, work.get(key, []))
            | {"flagged": flags.get(key, 0), "elsewhere": imported.get(key, 0)}
            for key, name, simulated, ended in session.execute(query)
        ]
    return [Workload(**one) for one in found if one["total"] or one["recused"] or one["elsewhere"]]


@only(Role.RESEARCHER, Role.COORDINATOR)
def finished(_: Person, engine: Engine, since: datetime) -> list[tuple[str, datetime]]:
    """Return who ended a showing when, from a moment on, oldest first; simulated ones left out."""
    query = (
        select_columns(col(Rater.handle), col(Assignment.done_at))
        .join(Rater, col(Rater.id) == col(Assignment.rater))
        .where(
            col(Assignment.state).in_(DONE),
            col(Assignment.done_at) >= since,
            col(Rater.simulated).is_(False),
        )
        .order_by(col(Assignment.done_at))
    )
    with reading(engine) as session:
        return [(handle, at) for handle, at in session.execute(query)]


def _work(session: Session) -> dict[int, list[Any]]:
    """Return state, active seconds and time of every showing, by clinician."""
    columns = (Assignment.rater, Assignment.state, Assignment.seconds_active, Assignment.done_at)
    found: dict[int, list[Any]] = {}
    for row in session.execute(select_columns(*(col(one) for one in columns))):
        found.setdefault(row[0], []).append(row)
    return found


def _flagged(session: Session) -> Mapping[int, int]:
    """Return how many showings of each clinician have a flag in their newest submission."""
    query = (
        select_columns(col(Assignment.rater), func.count(func.distinct(col(Assignment.id))))
        .join(Remark, col(Remark.assignment) == col(Assignment.id))
        .where(
            col(Remark.kind) != RECUSED,
            col(Remark.revision) == col(Assignment.revision) - 1,
        )
        .group_by(col(Assignment.rater))
    )
    return dict(map(tuple, session.execute(query)))


def _elsewhere(session: Session) -> Mapping[int, int]:
    """Return how many responses each clinician rated without having been assigned them."""
    given = (
        select_columns(col(Assignment.id))
        .where(
            col(Assignment.rater) == col(Rating.rater),
            col(Assignment.response) == col(Rating.response),
        )
        .exists()
    )
    query = (
        select_columns(col(Rating.rater), func.count(func.distinct(col(Rating.response))))
        .join(Rater, col(Rater.id) == col(Rating.rater))
        .where(col(Rater.kind) == Kind.CLINICIAN, ~given)
        .group_by(col(Rating.rater))
    )
    return dict(map(tuple, session.execute(query)))


def _workload(handle: str, simulated: bool, ended: bool, rows: list[Any]) -> dict[str, Any]:
    """Return a clinician's figures that come from the showings."""
    done = [one for one in rows if one.state in DONE]
    seconds = sorted(one.seconds_active for one in done if one.state == State.DONE)
    return {
        "handle": handle,
        "simulated": simulated,
        "ended": ended,
        "done": len(done),
        "total": sum(one.state != State.RECUSED for one in rows),
        "unrated": sum(one.state == State.UNRATED for one in rows),
        "recused": sum(one.state == State.RECUSED for one in rows),
        "last": max((one.done_at for one in done if one.done_at), default=None),
        "seconds": seconds[len(seconds) // 2] if seconds else None,
    }
