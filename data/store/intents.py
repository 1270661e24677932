"""What calls to jurors may cost, stored before they are sent, and taken back with their answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Engine, bindparam, delete
from sqlmodel import Session, col, select

from data.database import transaction
from data.schema import Intent, ReferenceCheck, now
from data.store.attempts import Entry, keep_attempts, write_references
from data.store.audit import insertion, log, refuse_locked
from data.store.seals import Seal, seal_together, sealed


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
        seals = _open(session, [one.intent for one in steps if one.intent is not None])
        keep_attempts(session, [one.attempt for one in steps if one.attempt is not None])
        write_references(session, [one.check for one in steps if one.check is not None])
        seals += _settle(session, [one.settles for one in steps if one.settles and not one.unknown])
        seals += _keep(session, [one.settles for one in steps if one.settles and one.unknown])
        if seals:
            log(session, "jury", "calls in flight", {}, seals)


def carry_over(engine: Engine) -> CarriedOver:
    """Return what killed runs have left to be counted against a cap, and note that it is counted.

    Call it only where no other run can be on: what is in flight then is a killed run's.
    """
    with transaction(engine) as session:
        found = session.exec(select(Intent).where(col(Intent.counted).is_(None))).all()
        carried = CarriedOver(len(found), sum(one.usd_most or 0.0 for one in found))
        if found:
            log(session, "jury", "calls carried over", {"calls": len(found)}, _counted(found))
    return carried


def _open(session: Session, intents: Sequence[Intended]) -> list[Seal]:
    """Store calls that are about to be made; return their seals."""
    if not intents:
        return []
    rows = [{**one._asdict(), "at": now(), "counted": None} for one in intents]
    session.execute(insertion(Intent), rows)
    return [seal_together("intent", [row]) for row in rows]


def _settle(session: Session, keys: Sequence[str]) -> list[Seal]:
    """Delete intents whose calls have ended; return what the record says of it."""
    if not keys:
        return []
    session.execute(_SETTLED, {"keys": keys})
    return [{"table": "intent", "gone": [*keys]}]


def _keep(session: Session, keys: Sequence[str]) -> list[Seal]:
    """Note that intents are counted against the cap of a run; return their seals."""
    if not keys:
        return []
    return _counted(session.exec(select(Intent).where(col(Intent.key).in_(keys))).all())


def _counted(intents: Sequence[Intent]) -> list[Seal]:
    for one in intents:
        one.counted = now()
    return sealed(*intents)
