"""Masking what betrays an author: what raters are shown changes, the stored text never does."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import transaction
from data.schema import Assignment, Mask, Rating, Response, State
from data.store.audit import log, refuse_locked


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A response (primary key) as raters shall see it, and the places that are masked.

    `places` are (start, end, text) in characters of the stored text.
    """

    response: int
    shown: str
    places: Sequence[tuple[int, int, str]]


def mask_responses(engine: Engine, masked: Iterable[MaskedText]) -> tuple[int, int]:
    """Mask responses that nobody has begun to rate; return how many were, and were not.

    What somebody has rated or opened stays as they saw it.
    """
    done = left = 0
    with transaction(engine) as session:
        refuse_locked(session)
        for one in masked:
            response = session.get_one(Response, one.response)
            if response.shown is not None or _seen(session, one.response):
                left += 1
                continue
            done += 1
            response.shown = one.shown
            session.add(response)
            session.add_all(
                Mask(response=one.response, start=start, end=end, text=text)
                for start, end, text in one.places
            )
        if done:
            log(session, "coordinator", "authors masked", {"responses": done})
    return done, left


def _seen(session: Session, response: int) -> bool:
    """Tell whether any rater has rated or opened a response."""
    rated = select(Rating.id).where(Rating.response == response).limit(1)
    begun = (
        select(Assignment.id)
        .where(
            Assignment.response == response,
            (col(Assignment.state) != State.OPEN) | col(Assignment.opened_at).is_not(None),
        )
        .limit(1)
    )
    return any(session.exec(query).first() is not None for query in (rated, begun))
