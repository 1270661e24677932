"""How much there is to read, and how long reading took."""

from typing import Any

from sqlalchemy import ColumnElement, Engine, case, func
from sqlmodel import col, select

from data.database import reading
from data.pace import Work
from data.person import Person, only
from data.queries.base import FOR_STUDY, columns_of
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Benchmark,
    Instance,
    Kind,
    Rater,
    Response,
    Role,
    RubricText,
    State,
)


def words_left(engine: Engine, rater: int) -> Work:
    """Return what a rater (primary key) still has to read and score; one query.

    Words are those of source, task and response as shown, once for each showing.
    """
    query = (
        columns_of(Benchmark.rubric_sha256, RubricText.body, func.count(), func.sum(_words()))
        .select_from(Assignment)
        .join(Response)
        .join(Instance)
        .join(Benchmark)
        .join(RubricText)
        .where(Assignment.rater == rater, Assignment.state == State.OPEN)
        .group_by(col(Benchmark.rubric_sha256), col(RubricText.body))
    )
    with reading(engine) as session:
        rows = session.exec(query).all()
    return Work(
        sum(showings for _, _, showings, _ in rows),
        sum(int(words) for *_, words in rows),
        sum(showings * len(Rubric.from_json(body).criteria) for _, body, showings, _ in rows),
    )


@only(Role.RESEARCHER, Role.COORDINATOR)
def words_left_of(_: Person, engine: Engine, handle: str) -> tuple[Work, list[tuple[float, int]]]:
    """Return what a clinician still has to read, and their timed showings: see `timed_showings`."""
    with reading(engine) as session:
        rater = session.exec(select(Rater.id).where(Rater.handle == handle)).first() or 0
    return words_left(engine, rater), timed_showings(engine, rater)


def work_of_responses(engine: Engine) -> dict[int, Work]:
    """Return what one showing of each response (primary key) is; training left out."""
    query = columns_of(Response.id, Benchmark.rubric_sha256, _words()).select_from(Response)
    query = query.join(Instance).join(Benchmark).where(FOR_STUDY)
    with reading(engine) as session:
        rubrics = session.exec(select(RubricText.sha256, RubricText.body)).all()
        criteria = {sha256: len(Rubric.from_json(body).criteria) for sha256, body in rubrics}
        return {
            key: Work(1, int(words), criteria[sha256]) for key, sha256, words in session.exec(query)
        }


def timed_showings(engine: Engine, rater: int | None = None) -> list[tuple[float, int]]:
    """Return active seconds and words of every showing submitted; simulated raters left out.

    Of one rater (primary key), or of all.
    """
    query = (
        columns_of(Assignment.seconds_active, _words())
        .select_from(Assignment)
        .join(Rater)
        .join(Response)
        .join(Instance)
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
        return [(float(seconds), int(words)) for seconds, words in session.exec(query)]


def _words() -> ColumnElement[Any]:
    """Count the words of a source, its task and a response as shown: by the white space between."""
    shown = func.coalesce(Response.shown, Response.text)
    return _words_in(Instance.context) + _words_in(Instance.prompt) + _words_in(shown)


def _words_in(text: Any) -> ColumnElement[Any]:
    """Count words as one more than there are blanks and line ends; none of an empty text."""
    spaced = func.trim(func.replace(func.replace(text, "\r", ""), "\n", " "))
    for _ in range(3):  # of up to eight blanks in a row one is left
        spaced = func.replace(spaced, "  ", " ")
    blanks = func.length(spaced) - func.length(func.replace(spaced, " ", ""))
    return blanks + case((func.length(spaced) > 0, 1), else_=0)
