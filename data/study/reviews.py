"""What reviewers put on responses: tags, and one note each; only ever added to, and shown to no rater."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, and_, func, or_
from sqlmodel import Session, col, select

from data.database import reading, transaction
from data.errors import BadInput, Unknown
from data.person import Person, only
from data.record import REVIEWED, log, refuse_locked
from data.schema import Response, Review, ReviewKind, Role
from data.study.base import FOR_STUDY, columns_of
from data.study.people import names_of_actors

STEER = (Role.RESEARCHER, Role.COORDINATOR)
LONGEST_TAG, LONGEST_NOTE = 40, 2000
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
_NOTES = select(Review).where(Review.kind == ReviewKind.NOTE).order_by(col(Review.id).desc())
# A tag that was put on and not taken off since; the note that counts, unless it was taken away.
STANDING = (col(Review.kind) == ReviewKind.TAG, col(Review.id).in_(_NEWEST_OF_TAG))
NOTED = (col(Review.id).in_(_NEWEST_NOTE), col(Review.text) != "")


@dataclass(frozen=True, slots=True)
class Note:
    """A note with who wrote it and when; to coordinators an account's own name."""

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

    tags: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def note(self) -> str:
        """The note that counts, "" where there is none."""
        return self.notes[0].text if self.notes else ""


@only(*STEER)
def review_of(person: Person, engine: Engine, response: int) -> ReviewOf:
    """Return what reviewers put on a response, by its primary key."""
    names = names_of_actors(person, engine)
    with reading(engine) as session:
        tags = _standing_tags(session, response)
        notes = session.exec(_NOTES.where(Review.response == response)).all()
    lines = (Note(one.text, names.get(one.reviewer, one.reviewer), one.at) for one in notes)
    return ReviewOf(tuple(sorted(tags, key=lambda tag: (tag.casefold(), tag))), tuple(lines))


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


@only(*STEER)
def standing_reviews(person: Person, engine: Engine) -> Iterator[tuple[Any, ...]]:
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


@only(*STEER)
def change_tags(
    person: Person,
    engine: Engine,
    response: int,
    *,
    put_on: Collection[str] = (),
    taken_off: Collection[str] = (),
) -> bool:
    """Put tags on a response (primary key) and take others off; False if it is so already.

    A tag is spelled as the study has it already, whatever its case. The record holds no tag.

    Raises
    ------
    Unknown
        If the study has no such response, or it is for training.
    BadInput
        If a tag is empty, or has over 40 characters or a line break.
    NotAllowed
        If the study is locked.
    """
    wanted, unwanted = ([_tag(words) for words in tags] for tags in (put_on, taken_off))
    with transaction(engine) as session:
        refuse_locked(session)
        _refuse_unknown(session, response)
        standing = {tag.casefold(): tag for tag in _standing_tags(session, response)}
        in_use = session.exec(select(Review.text).where(*STANDING).distinct())
        spelled = {tag.casefold(): tag for tag in in_use}
        new = {tag.casefold(): spelled.get(tag.casefold(), tag) for tag in wanted}
        lines = [(ReviewKind.TAG, tag) for key, tag in new.items() if key not in standing]
        gone = dict.fromkeys(tag.casefold() for tag in unwanted)
        lines += [(ReviewKind.UNTAG, standing[key]) for key in gone if key in standing]
        return _write(session, person, response, lines)


@only(*STEER)
def keep_note(person: Person, engine: Engine, response: int, text: str) -> bool:
    """Let this be the note on a response; "" takes it away. False if it is so already.

    Earlier notes stay in the study. The record holds no word of it, only who wrote and a digest.

    Raises
    ------
    Unknown
        If the study has no such response, or it is for training.
    BadInput
        If it has over 2,000 characters.
    NotAllowed
        If the study is locked.
    """
    note = text.strip()
    if len(note) > LONGEST_NOTE:
        raise BadInput(
            f"a note has at most {LONGEST_NOTE:,} characters, and this one {len(note):,}"
        )
    with transaction(engine) as session:
        refuse_locked(session)
        _refuse_unknown(session, response)
        present = session.exec(_NOTES.where(Review.response == response)).first()
        changes = note != (present.text if present else "")
        return _write(session, person, response, [(ReviewKind.NOTE, note)] if changes else [])


def _tag(words: str) -> str:
    tag = " ".join(part for part in words.split(" ") if part)
    if not 0 < len(tag) <= LONGEST_TAG or not tag.isprintable():
        raise BadInput(f"a tag has 1 to {LONGEST_TAG} visible characters on one line")
    return tag


def _standing_tags(session: Session, response: int) -> list[str]:
    return list(session.exec(select(Review.text).where(*STANDING, Review.response == response)))


def _refuse_unknown(session: Session, response: int) -> None:
    known = select(Response.id).where(Response.id == response, FOR_STUDY)
    if session.exec(known).first() is None:
        raise Unknown(f"response {response}: the study has none of this number to review")


def _write(
    session: Session, person: Person, response: int, lines: Collection[tuple[ReviewKind, str]]
) -> bool:
    """Add lines to the review of a response, with their event; False if there is none."""
    if not lines:
        return False
    session.add_all(
        Review(response=response, reviewer=person.actor, kind=kind, text=text)
        for kind, text in lines
    )
    log(session, person.actor, REVIEWED, {})
    return True
