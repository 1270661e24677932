"""Whether expert scores and training answers are as the record has them."""

import hashlib

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading
from data.schema import Drill, Event
from data.store.experts import experts_digest

IMPORTED, ANSWERED = "expert scores imported", "training answered"


def training_findings(engine: Engine) -> list[str]:
    """Return a sentence for each expert score or training answer changed behind the record's back."""
    with reading(engine) as session:
        query = select(Event).where(col(Event.action).in_((IMPORTED, ANSWERED)))
        events = list(session.exec(query.order_by(col(Event.id))))
        return _experts(session, events) + _answers(session, events)


def _experts(session: Session, events: list[Event]) -> list[str]:
    """Compare the expert scores with the digest of the last import."""
    said = [one.detail["sha256"] for one in events if one.action == IMPORTED]
    expected = said[-1] if said else hashlib.sha256().hexdigest()
    changed = experts_digest(session) != expected
    return ["expert: the scores are not those that were imported"] if changed else []


def _answers(session: Session, events: list[Event]) -> list[str]:
    """Compare every training answer with its event."""
    said = {
        one.detail["drill"]: (one.actor, one.detail) for one in events if one.action == ANSWERED
    }
    found = {one.id or 0: one for one in session.exec(select(Drill).order_by(col(Drill.id)))}
    findings = [f"drill: answer {key} is gone" for key in said.keys() - found.keys()]
    for key, one in found.items():
        if key not in said:
            findings.append(f"drill: no event vouches for answer {key}")
            continue
        actor, detail = said[key]
        kept = (f"rater {one.rater}", one.response, one.round + 1, one.scores)
        if kept != (actor, detail["response"], detail["round"], detail["scores"]):
            findings.append(f"drill: answer {key} was changed")
    return findings
