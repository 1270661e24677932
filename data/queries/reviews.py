"""What reviewers put on responses: tags and notes. Nothing that serves raters reads this."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, and_, func, or_
from sqlmodel import Session, col, select

from data.database import reading
from data.person import Person, asking, only
from data.queries.base import columns_of
from data.schema import Response, Review, ReviewKind, Role
from data.study.people import names_of_actors

STEER = (Role.RESEARCHER, Role.COORDINATOR)
REVIEWS = ("response_id", "reviewer", "tag", "note", "at")
_TAGGING = (ReviewKind.TAG, ReviewKind.UNTAG)
_NEWEST_OF_TAG = (
    select(func.max(Review.id))
    .where(col(Review.kind).in_(_TAGGING))
    .group_by(col(Review.response), col(Review.text))
)
_NEWEST_NOTE = (
    select(func.max(Review.id)).where(Review.kind == ReviewKind.NOTE).group_by(col(Review.response))
)
# A tag that was put on and not taken off since; the note that counts, unless it was taken away.
STANDING = (col(Review.kind) == ReviewKind.TAG, col(Review.id).in_(_NEWEST_OF_TAG))
NOTED = (col(Review.id).in_(_NEWEST_NOTE), col(Review.text) != "")


@dataclass(frozen=True, slots=True)
class ReviewLine:
    """A tag or a note with who wrote it and when; to coordinators an account's own name."""

    text: str
    reviewer: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ReviewOf:
    """What reviewers put on one response.

    Attributes
    ----------
    tags
        Those that stand, in alphabetical order.
    notes
        The newest first, which counts; one without words took the earlier ones away.
    """

    tags: tuple[ReviewLine, ...] = ()
    notes: tuple[ReviewLine, ...] = ()

    @property
    def note(self) -> str:
        """The note that counts, "" where there is none."""
        return self.notes[0].text if self.notes else ""


@only(*STEER)
def review_of(person: Person, engine: Engine, response: int) -> ReviewOf:
    """Return what reviewers put on a response, by its primary key."""
    names = names_of_actors(person, engine)
    own = select(Review).where(Review.response == response).order_by(col(Review.id).desc())
    with reading(engine) as session:
        tags = session.exec(own.where(*STANDING)).all()
        notes = session.exec(own.where(Review.kind == ReviewKind.NOTE)).all()
        tag_lines, note_lines = (
            tuple(
                ReviewLine(row.text, names.get(row.reviewer, row.reviewer), row.at) for row in rows
            )
            for rows in (tags, notes)
        )
    return ReviewOf(tuple(sorted(tag_lines, key=_by_text)), note_lines)


@only(*STEER)
def tag_counts(person: Person, engine: Engine) -> dict[str, int]:
    """Return the tags that stand anywhere in the study -> on how many responses, by name."""
    query = select(Review.text, func.count()).where(*STANDING).group_by(col(Review.text))
    with reading(engine) as session:
        counts = dict(session.exec(query).all())
    return dict(sorted(counts.items(), key=lambda item: (item[0].casefold(), item[0])))


@only(*STEER)
def tagged(person: Person, engine: Engine, tags: Collection[str]) -> frozenset[int]:
    """Return the responses on which any of these tags stands."""
    query = select(Review.response).where(*STANDING, col(Review.text).in_(tags))
    with reading(engine) as session:
        return frozenset(session.exec(query))


@only(*STEER)
def noted(person: Person, engine: Engine) -> frozenset[int]:
    """Return the responses that have a note."""
    with reading(engine) as session:
        return frozenset(session.exec(select(Review.response).where(*NOTED)))


@only(*STEER)
def tags_on(person: Person, engine: Engine, responses: Collection[int]) -> dict[int, list[str]]:
    """Return the tags that stand on some responses, those without any left out."""
    query = select(Review.response, Review.text).where(
        *STANDING, col(Review.response).in_(responses)
    )
    tags: dict[int, list[str]] = {}
    with reading(engine) as session:
        for response, tag in session.exec(query.order_by(col(Review.text))):
            tags.setdefault(response, []).append(tag)
    return tags


def review_rows(engine: Engine) -> Iterator[tuple[Any, ...]]:
    """Yield each tag that stands and each note that counts; columns `REVIEWS`."""
    query = (
        columns_of(*(Response.response_id, Review.reviewer, Review.kind, Review.text, Review.at))
        .select_from(Review)
        .join(Response)
        .where(or_(and_(*STANDING), and_(*NOTED)))
        .order_by(col(Review.id))
    )
    with reading(engine) as session:
        for response_id, reviewer, kind, text, at in session.execute(query):
            is_tag = kind == ReviewKind.TAG
            yield response_id, reviewer, text if is_tag else "", "" if is_tag else text, at


# Return what stands of reviews to who steers; columns `REVIEWS`.
standing_reviews = asking(review_rows, *STEER)


def standing_tags(session: Session, response: int) -> list[str]:
    """Return the tags that stand on a response, inside the caller's transaction."""
    return list(session.exec(select(Review.text).where(*STANDING, Review.response == response)))


def tags_in_use(session: Session) -> list[str]:
    """Return the tags that stand anywhere in the study, inside the caller's transaction."""
    return list(session.exec(select(Review.text).where(*STANDING).distinct()))


def note_on(session: Session, response: int) -> Review | None:
    """Return the newest note on a response, also one that took an earlier one away."""
    own = select(Review).where(Review.response == response, Review.kind == ReviewKind.NOTE)
    return session.exec(own.order_by(col(Review.id).desc()).limit(1)).first()


def _by_text(line: ReviewLine) -> tuple[str, str]:
    return line.text.casefold(), line.text
