"""Telling whether a study has changed since it was last looked at."""

from sqlalchemy import Engine, func
from sqlmodel import col, select

from data.database import reading
from data.schema import Attempt, Event, Rating, Response
from data.store.access import SIGNED_OUT
from data.store.ledger import EVALUATED

COUNTED = (Response, Rating, Attempt)
LOOKING = (EVALUATED, "signed in", SIGNED_OUT)


def version(engine: Engine) -> tuple[int, ...]:
    """Return numbers that differ whenever responses, ratings, calls or events were added.

    All of these are append-only, so that the greatest of each is enough; it costs one query.
    That somebody came, or looked at a jury, is an event too, and no change: figures would be
    out of date as soon as they are there.
    """
    told = [select(func.max(col(one.id))).scalar_subquery() for one in COUNTED]
    acts = select(col(Event.id)).where(col(Event.action).not_in(LOOKING))
    told.append(acts.order_by(col(Event.id).desc()).limit(1).scalar_subquery())
    with reading(engine) as session:
        return tuple(number or 0 for number in session.execute(select(*told)).one())
