"""The audit chain: each event carries the hash of the one before."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlmodel import Session, desc, select

from data.schema import Event, now

GENESIS = "0" * 64


def log(session: Session, actor: str, action: str, detail: Mapping[str, Any]) -> None:
    """Append one event to the chain, inside the caller's transaction."""
    last = session.exec(select(Event.sha256).order_by(desc(Event.id)).limit(1)).first()
    event = Event(
        at=now(),
        actor=actor,
        action=action,
        detail=dict(detail),
        previous=last or GENESIS,
        sha256="",
    )
    event.sha256 = event_hash(event)
    session.add(event)
    session.flush()


def event_hash(event: Event) -> str:
    """Return the SHA-256 over an event's content and its predecessor's hash."""
    body = [event.at.isoformat(), event.actor, event.action, event.detail, event.previous]
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
