"""How many words clinicians have left to read, and how long reading took them."""

from collections.abc import Mapping, Set
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Engine, case, func
from sqlmodel import Session, col, select

from data.database import reading
from data.pace import Pace, PaceSource, Work, measured, stated
from data.person import Person, only
from data.queries.base import FOR_STUDY, columns_of
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Benchmark,
    Instance,
    Kind,
    Mask,
    Rater,
    Response,
    Role,
    RubricText,
    State,
)

# A response by its primary key, and how many places of it are masked. No text ever changes; what is
# shown of it changes only where places are masked, and masks are only ever added.
Text = tuple[int, int]
AT_ONCE = 1000
_MASKS = (
    select(func.count(col(Mask.id)))
    .where(Mask.response == Response.id)
    .correlate(Response)
    .scalar_subquery()
)
# A text's words, counted once: a clinician arrives often, and 500 long ones take tenths of a second.
_COUNTED: WeakKeyDictionary[Engine, dict[Text, int]] = WeakKeyDictionary()


def words_left(engine: Engine, rater: int) -> Work:
    """Return what a rater (primary key) still has to read and score.

    Words are those of source, task and response as shown, once for each showing.
    """
    query = (
        columns_of(Response.id, _MASKS, Benchmark.rubric_sha256)
        .select_from(Assignment)
        .join(Response)
        .join(Instance)
        .join(Benchmark)
        .where(Assignment.rater == rater, Assignment.state == State.OPEN)
    )
    with reading(engine) as session:
        rows = session.exec(query).all()
        words = _words_of(engine, session, {(key, masks) for key, masks, _ in rows})
        criteria = _criteria(session, {sha256 for *_, sha256 in rows})
    return Work(
        len(rows),
        sum(words[key, masks] for key, masks, _ in rows),
        sum(criteria[sha256] for *_, sha256 in rows),
    )


@only(Role.RESEARCHER, Role.COORDINATOR)
def words_left_of(_: Person, engine: Engine, handle: str) -> tuple[Work, list[tuple[float, int]]]:
    """Return what a clinician still has to read, and their timed showings: see `timed_showings`."""
    with reading(engine) as session:
        rater = session.exec(select(Rater.id).where(Rater.handle == handle)).first() or 0
    return words_left(engine, rater), timed_showings(engine, rater)


def work_of_responses(engine: Engine) -> dict[int, Work]:
    """Return what one showing of each response (primary key) is; training left out."""
    return _work(engine, Response.id)


def work_of_names(engine: Engine) -> dict[str, Work]:
    """Return what one showing of each response (its id in the study) is; training left out."""
    return _work(engine, Response.response_id)


def _work(engine: Engine, key: Any) -> dict[Any, Work]:
    query = columns_of(key, Benchmark.rubric_sha256, _words()).select_from(Response)
    query = query.join(Instance).join(Benchmark).where(FOR_STUDY)
    with reading(engine) as session:
        rows = session.exec(query).all()
        criteria = _criteria(session, {sha256 for _, sha256, _ in rows})
    return {key: Work(1, int(words), criteria[sha256]) for key, sha256, words in rows}


def timed_showings(engine: Engine, rater: int | None = None) -> list[tuple[float, int]]:
    """Return active seconds and words of every showing submitted; simulated raters left out.

    Of one rater (primary key), or of all.
    """
    query = (
        columns_of(Assignment.seconds_active, Response.id, _MASKS)
        .select_from(Assignment)
        .join(Rater)
        .join(Response)
        .where(
            Assignment.state == State.DONE,
            Rater.kind == Kind.CLINICIAN,
            col(Rater.simulated).is_(False),
            Assignment.seconds_active > 0,
        )
    )
    if rater is not None:
        query = query.where(Assignment.rater == rater)
    with reading(engine) as session:
        rows = session.exec(query).all()
        words = _words_of(engine, session, {(key, masks) for _, key, masks in rows})
    return [(float(seconds), words[key, masks]) for seconds, key, masks in rows]


def _words_of(engine: Engine, session: Session, texts: Set[Text]) -> Mapping[Text, int]:
    """Return the words of some responses with their source and task, counted once a process."""
    counted = _COUNTED.setdefault(engine, {})
    missing = dict(sorted(texts - counted.keys()))
    query = columns_of(Response.id, _words()).select_from(Response).join(Instance)
    for start in range(0, len(missing), AT_ONCE):
        some = query.where(col(Response.id).in_([*missing][start : start + AT_ONCE]))
        counted |= {(key, missing[key]): int(words) for key, words in session.exec(some)}
    return counted


def _criteria(session: Session, rubrics: Set[str]) -> dict[str, int]:
    """Return how many criteria each rubric (SHA-256) has."""
    query = select(RubricText.sha256, RubricText.body).where(col(RubricText.sha256).in_(rubrics))
    return {sha256: len(Rubric.from_json(body).criteria) for sha256, body in session.exec(query)}


def _words() -> ColumnElement[Any]:
    """Count the words of a source, its task and a response as shown: by the white space between."""
    shown = func.coalesce(Response.shown, Response.text)
    return _words_in(Instance.context) + _words_in(Instance.prompt) + _words_in(shown)


def _words_in(text: Any) -> ColumnElement[Any]:
    """Count words as one more than there are blanks and line ends; none of an empty text.

    The text is spaced only once: a database does so again for each time that it is named.
    """
    without_blanks = func.replace(func.replace(func.replace(text, "\r", ""), "\n", ""), " ", "")
    spaced = func.trim(func.replace(func.replace(text, "\r", ""), "\n", " "))
    for _ in range(3):  # of up to eight blanks in a row one is left
        spaced = func.replace(spaced, "  ", " ")
    has_words = case((func.trim(text, " \r\n") != "", 1), else_=0)
    return func.length(spaced) - func.length(without_blanks) + has_words


def pace_of(engine: Engine, minutes: float | None = None, rater: int | None = None) -> Pace:
    """Return the pace for estimates.

    Parameters
    ----------
    minutes
        Of a showing, as somebody says; None takes what was measured.
    rater
        Whose pace (primary key), where enough of their own showings are timed.
    """
    if minutes is not None:
        return stated(minutes)
    if rater is not None:
        own = measured(timed_showings(engine, rater))
        if own.source == PaceSource.MEASURED:
            return own
    return measured(timed_showings(engine))
