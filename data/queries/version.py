"""Telling whether a study has changed since it was last looked at."""

from sqlalchemy import Engine, func
from sqlmodel import col, select

from data.database import reading
from data.schema import Attempt, Event, Rating, Response

COUNTED = (Response, Rating, Attempt, Event)


def version(engine: Engine) -> tuple[int, ...]:
    """Return numbers that differ whenever responses, ratings, calls or events were added.

    All of these are append-only, so that the greatest of each is enough; it costs one query.
    """
    greatest = [select(func.max(col(one.id))).scalar_subquery() for one in COUNTED]
    with reading(engine) as session:
        return tuple(number or 0 for number in session.execute(select(*greatest)).one())
