"""What reviewers put on responses: tags, and one note each; only ever added to."""

from collections.abc import Collection

from sqlalchemy import Engine
from sqlmodel import Session, select

from data.database import transaction
from data.errors import BadInput, Unknown
from data.person import Person, only
from data.queries.base import FOR_STUDY
from data.queries.reviews import note_on, standing_tags, tags_in_use
from data.record import REVIEWED, log, refuse_locked
from data.schema import Response, Review, ReviewKind, Role

LONGEST_TAG, LONGEST_NOTE = 40, 2000


@only(Role.RESEARCHER, Role.COORDINATOR)
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
        standing = {tag.casefold(): tag for tag in standing_tags(session, response)}
        spelled = {tag.casefold(): tag for tag in tags_in_use(session)}
        new = {tag.casefold(): spelled.get(tag.casefold(), tag) for tag in wanted}
        lines = [(ReviewKind.TAG, tag) for key, tag in new.items() if key not in standing]
        gone = dict.fromkeys(tag.casefold() for tag in unwanted)
        lines += [(ReviewKind.UNTAG, standing[key]) for key in gone if key in standing]
        return _write(session, person, response, lines)


@only(Role.RESEARCHER, Role.COORDINATOR)
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
        present = note_on(session, response)
        changes = note != (present.text if present else "")
        return _write(session, person, response, [(ReviewKind.NOTE, note)] if changes else [])


def _tag(words: str) -> str:
    tag = " ".join(part for part in words.split(" ") if part)
    if not 0 < len(tag) <= LONGEST_TAG or not tag.isprintable():
        raise BadInput(f"a tag has 1 to {LONGEST_TAG} visible characters on one line")
    return tag


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
