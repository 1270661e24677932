"""What calls to jurors may cost, stored before they are sent, and taken back with their answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Engine, bindparam, delete, update
from sqlmodel import Session, col, select

from data.database import transaction
from data.schema import Intent, ReferenceCheck, now
from data.store.attempts import Entry, keep_attempts, write_references
from data.store.audit import insertion, refuse_locked


class Intended(NamedTuple):
    """A call that is about to be made, as an `Intent` keeps it."""

    key: str
    rater: int
    response: int | None = None
    instance: int | None = None
    replicate: int = 0
    usd_most: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of one call: it is about to be made, or has ended.

    Attributes
    ----------
    intent
        The call that is about to be made.
    attempt, check
        What came of a call about a response, or about a reference.
    settles
        Key of the intent that this ends, empty if none.
    unknown
        Whether the vendor may have billed the call and nobody knows how much: then the intent
        stays, as counted against the cap of its own run.
    """

    intent: Intended | None = None
    attempt: Entry | None = None
    check: ReferenceCheck | None = None
    settles: str = ""
    unknown: bool = False


# Of the table and not of the class, which would have the session look for loaded objects.
_INTENTS = Intent.metadata.tables["intent"]
_SETTLED = delete(_INTENTS).where(_INTENTS.c.key.in_(bindparam("keys", expanding=True)))


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """Calls in flight when earlier runs were killed, which no cap has counted yet.

    `usd` is what those of known price can cost at most.
    """

    calls: int = 0
    usd: float = 0.0


def record_steps(engine: Engine, steps: Sequence[Step]) -> None:
    """Store what calls have come to, in one transaction: all of it or nothing.

    Raises
    ------
    NotAllowed
        If the study is locked.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        _open(session, [one.intent for one in steps if one.intent is not None])
        keep_attempts(session, [one.attempt for one in steps if one.attempt is not None])
        write_references(session, [one.check for one in steps if one.check is not None])
        _settle(session, [one.settles for one in steps if one.settles and not one.unknown])
        _keep(session, [one.settles for one in steps if one.settles and one.unknown])


def carry_over(engine: Engine) -> CarriedOver:
    """Return what killed runs have left to be counted against a cap, and note that it is counted.

    Call it only where no other run can be on: what is in flight then is a killed run's.
    """
    query = select(Intent.key, Intent.usd_most).where(col(Intent.counted).is_(None))
    with transaction(engine) as session:
        found = session.exec(query).all()
        session.execute(update(Intent).where(col(Intent.counted).is_(None)).values(counted=now()))
    return CarriedOver(len(found), sum(usd or 0.0 for _, usd in found))


def _open(session: Session, intents: Sequence[Intended]) -> None:
    """Store calls that are about to be made."""
    if intents:
        at = now()
        session.execute(insertion(Intent), [{**one._asdict(), "at": at} for one in intents])


def _settle(session: Session, keys: Sequence[str]) -> None:
    """Delete intents whose calls have ended."""
    if keys:
        session.execute(_SETTLED, {"keys": keys})


def _keep(session: Session, keys: Sequence[str]) -> None:
    """Note that intents are counted against the cap of a run."""
    if keys:
        kept = update(Intent).where(col(Intent.key).in_(keys))
        session.execute(kept.values(counted=now()))
