"""Acts that the record keeps: locking a study, lifting the blind, fixing what it is to show."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.card import THIRD
from data.database import transaction
from data.errors import BadInput, Conflict
from data.person import REOPENED, UNBLINDED
from data.schema import (
    Event,
    Expert,
    Kind,
    Rater,
    Rating,
    Setting,
    now,
)
from data.store.audit import LOCKED, log, refuse_locked
from data.store.authors import everybody
from data.store.seals import keep_setting, taken_away

PROTOCOL_SET = "protocol set"


def lock(engine: Engine, who: str) -> str:
    """Lock a study against every change; return the hash of the chain's last event.

    Keep that hash elsewhere: `verify` against it proves that nothing was cut off since.
    """
    with transaction(engine) as session:
        if (held := session.get(Setting, LOCKED)) is not None:
            raise Conflict(f"the study is locked already, since {held.value}")
        since = f"{now():%Y-%m-%d %H:%M} UTC by {who}"
        log(session, who, "locked", {}, keep_setting(session, LOCKED, since))
        newest = select(Event.sha256).order_by(col(Event.id).desc()).limit(1)
        return session.exec(newest).one()


def reopen(engine: Engine, who: str, reason: str) -> None:
    """Open a locked study again, with a reason that stays in the record."""
    _need(reason)
    with transaction(engine) as session:
        held = session.get(Setting, LOCKED)
        if held is None:
            raise Conflict("the study is not locked")
        session.delete(held)
        log(session, who, REOPENED, {"reason": reason.strip()}, [taken_away(held)])


def unblind(engine: Engine, who: str, reason: str) -> list[tuple[str, str]]:
    """Record that the blind is lifted, and return (response_id, model) of every response."""
    _need(reason)
    with transaction(engine) as session:
        log(session, who, UNBLINDED, {"reason": reason.strip()})
        return everybody(session)


def set_protocol(engine: Engine, who: str, fixed: Mapping[str, Any]) -> None:
    """Record what a study is to show; it holds until another is set, and stays in the record.

    Parameters
    ----------
    engine, who : which study, and who sets it
    fixed : JSON values; the record adds their SHA-256 and how many ratings by clinicians were in

    Raises
    ------
    NotAllowed
        If the study is locked.
    """
    text = json.dumps(fixed, sort_keys=True, ensure_ascii=False)
    sha256 = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    with transaction(engine) as session:
        refuse_locked(session)
        counted = {"ratings": ratings_in(session), "sha256": sha256}
        log(session, who, PROTOCOL_SET, dict(fixed) | counted)


def ratings_in(session: Session) -> int:
    """Return how often a clinician has rated a response by themselves; repeats count.

    Training is left out.
    """
    readings = (
        select(Rating.response, Rating.rater, Rating.pass_)
        .join(Rater, col(Rater.id) == col(Rating.rater))
        .where(Rater.kind == Kind.CLINICIAN, col(Rating.pass_) < THIRD)
        .where(col(Rating.response).not_in(select(Expert.response)))
        .distinct()
        .subquery()
    )
    return int(session.exec(select(func.count()).select_from(readings)).one())


def _need(reason: str) -> None:
    if not reason.strip():
        raise BadInput("a reason is needed; it stays in the record")
