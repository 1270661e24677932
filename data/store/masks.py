"""Masking names of models in responses: what raters are shown changes, the stored text never does."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import transaction
from data.errors import BadInput, Unknown
from data.record import log, new_salt, refuse_locked
from data.schema import (
    Assignment,
    Attempt,
    Kind,
    Mask,
    Rater,
    Rating,
    Response,
    Setting,
    State,
    Status,
)

MASKED, LEFT = "authors masked", "possible names left"
LOOKED = "searched for authors"
SEARCHED = "searched_for_authors"


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A response (primary key) as raters shall see it, and the places that are masked.

    `places` are (start, end, text) in characters of the stored text.
    """

    response: int
    shown: str
    places: Sequence[tuple[int, int, str]]


def mask_responses(
    engine: Engine, masked: Iterable[MaskedText], searched: int | None = None
) -> tuple[int, int]:
    """Mask responses that nobody has begun to rate; return how many were, and were not.

    What somebody has rated or opened stays as they saw it. Masks are only ever added.

    Parameters
    ----------
    searched
        The primary key up to which responses have been searched for what betrays an
        author; kept, so that a search that was cut short goes on where it ended.
    """
    masked_here = skipped = 0
    with transaction(engine) as session:
        refuse_locked(session)
        for masked_text in masked:
            response = session.get_one(Response, masked_text.response)
            if response.shown == masked_text.shown or _is_rated_or_opened(
                session, masked_text.response
            ):
                skipped += 1
                continue
            _mask(session, response, masked_text)
            masked_here += 1
        if searched is not None:
            session.merge(Setting(key=SEARCHED, value=str(searched)))
        if masked_here:
            log(session, "coordinator", MASKED, {"responses": masked_here})
        elif searched is not None:
            log(session, "coordinator", LOOKED, {"searched": searched})
    return masked_here, skipped


@dataclass(frozen=True, slots=True)
class LeftNames:
    """What may name an author and was looked at: it betrays nobody.

    Attributes
    ----------
    responses
        All that is found in these responses (response_id), now and later.
    places
        Single finds: response_id and where they start, in characters of the stored text.
    words
        The same words wherever they stand, in any response and in small letters or large.
    """

    responses: frozenset[str] = frozenset()
    places: frozenset[tuple[str, int]] = frozenset()
    words: frozenset[str] = frozenset()

    def covers(self, response_id: str, start: int, text: str) -> bool:
        """Tell whether a find was left as it is."""
        return (
            response_id in self.responses
            or (response_id, start) in self.places
            or text.casefold() in self.words
        )


def leave_names(engine: Engine, left: LeftNames) -> None:
    """Record that possible names were looked at and betray nobody.

    Raises
    ------
    Unknown
        If a response is not in the study.
    BadInput
        If nothing is named.
    """
    if not (left.responses or left.places or left.words):
        raise BadInput("name the responses, places or words that betray nobody")
    named = left.responses | {response_id for response_id, _ in left.places}
    with transaction(engine) as session:
        refuse_locked(session)
        stored = session.exec(
            select(Response.response_id).where(col(Response.response_id).in_(named))
        )
        if unknown := named - set(stored):
            raise Unknown(f"no response {', '.join(sorted(unknown))} in this study")
        log(session, "coordinator", LEFT, _left_detail(left))


def _left_detail(left: LeftNames) -> dict[str, list[object]]:
    """Return what was left as the record keeps it."""
    detail: dict[str, list[object]] = {"responses": [*sorted(left.responses)]}
    if left.places:
        detail["places"] = [[response_id, start] for response_id, start in sorted(left.places)]
    if left.words:
        detail["words"] = [*sorted(word.casefold() for word in left.words)]
    return detail


def _mask(session: Session, response: Response, masked: MaskedText) -> None:
    """Show a response masked, and keep the places that are new."""
    masks = session.exec(select(Mask).where(Mask.response == response.id))
    stored = {(mask.start, mask.end, mask.text) for mask in masks}
    response.shown = masked.shown
    session.add_all(
        Mask(response=masked.response, start=start, end=end, text=text, salt=new_salt())
        for start, end, text in masked.places
        if (start, end, text) not in stored
    )


def _is_rated_or_opened(session: Session, response: int) -> bool:
    """Tell whether any rater has rated or opened a response as this study shows it.

    A juror that rated it elsewhere, in a finished run that was imported, never saw it here: a
    mask changes nothing for it, and without one clinicians would read who wrote the response.
    """
    asked_here = (
        select(Attempt.id)
        .where(
            Attempt.response == response,
            col(Attempt.rater) == col(Rating.rater),
            col(Attempt.status) == Status.OK,
        )
        .exists()
    )
    rated = (
        select(Rating.id)
        .join(Rater)
        .where(Rating.response == response, (col(Rater.kind) != Kind.JUROR) | asked_here)
        .limit(1)
    )
    begun = (
        select(Assignment.id)
        .where(
            Assignment.response == response,
            (col(Assignment.state) != State.OPEN) | col(Assignment.opened_at).is_not(None),
        )
        .limit(1)
    )
    return any(session.exec(query).first() is not None for query in (rated, begun))
