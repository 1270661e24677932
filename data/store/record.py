"""Locking a study, reopening it, and lifting the blind: acts of a coordinator, each recorded."""

from sqlalchemy import Engine
from sqlmodel import col, select

from data.database import transaction
from data.errors import BadInput, Conflict
from data.schema import Authorship, Event, Response, Setting, now
from data.store.audit import LOCKED, log


def lock(engine: Engine, who: str) -> str:
    """Lock a study against every change; return the hash of the chain's last event.

    Keep that hash elsewhere: `verify` against it proves that nothing was cut off since.
    """
    with transaction(engine) as session:
        if (held := session.get(Setting, LOCKED)) is not None:
            raise Conflict(f"the study is locked already, since {held.value}")
        log(session, who, "locked", {})
        session.add(Setting(key=LOCKED, value=f"{now():%Y-%m-%d %H:%M} UTC by {who}"))
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
        log(session, who, "reopened", {"reason": reason.strip()})


def unblind(engine: Engine, who: str, reason: str) -> list[tuple[str, str]]:
    """Record that the blind is lifted, and return (response_id, model) of every response."""
    _need(reason)
    with transaction(engine) as session:
        log(session, who, "unblinded", {"reason": reason.strip()})
        rows = session.exec(
            select(Response.response_id, Authorship.model)
            .join(Authorship)
            .order_by(col(Response.id))
        )
        return [(response, model) for response, model in rows]


def _need(reason: str) -> None:
    if not reason.strip():
        raise BadInput("a reason is needed; it stays in the record")
