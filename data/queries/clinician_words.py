"""What clinicians marked and wrote about some responses, in their words; who said it is left out.

The table of authors is not read here.
"""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlmodel import Session, col

from data.database import reading
from data.queries.base import NEWEST_SUBMISSION, counting_ratings
from data.queries.frames import first_readings
from data.schema import Kind, Rater, Rating, Response, Span, Submission


@dataclass(frozen=True, slots=True)
class MarkSaid:
    """A stretch of a text that a clinician marked, with its words and the clinician's note."""

    criterion: str
    error: str
    severity: str
    side: str
    start: int
    end: int
    words: str
    note: str


@dataclass(frozen=True, slots=True)
class CommentSaid:
    """A comment on a criterion with its score; on the response as a whole: "" and None."""

    criterion: str
    score: float | None
    words: str


@dataclass(frozen=True, slots=True)
class WordsSaid:
    """What all clinicians of one response said."""

    marks: tuple[MarkSaid, ...] = ()
    comments: tuple[CommentSaid, ...] = ()


def clinician_words(engine: Engine, responses: Collection[str]) -> dict[str, WordsSaid]:
    """Return response_id -> what clinicians said of it; every response that is asked for has a key.

    First readings alone, the newest submission of each, and comments on the benchmark's present
    rubric; training left out. Ratings made elsewhere have comments and no marks.
    """
    with reading(engine) as session:
        marks, comments = _marks(session, responses), _comments(session, responses)
    return {
        name: WordsSaid(tuple(marks.get(name, ())), tuple(comments.get(name, ())))
        for name in responses
    }


def _marks(session: Session, responses: Collection[str]) -> dict[str, list[MarkSaid]]:
    """Return the marks of each response; their words are of the text as clinicians are shown it."""
    kind = (Span.criterion, Span.error, Span.severity, Span.side, Span.start, Span.end, Span.text)
    query = first_readings(Response.response_id, *kind, Span.note).join(Span)
    query = query.where(
        col(Response.response_id).in_(responses), col(Span.revision) == NEWEST_SUBMISSION
    )
    marks: dict[str, list[MarkSaid]] = {}
    for name, *fields in session.exec(query.order_by(col(Span.id))):
        marks.setdefault(name, []).append(MarkSaid(*fields))
    return marks


def _comments(session: Session, responses: Collection[str]) -> dict[str, list[CommentSaid]]:
    chosen = col(Response.response_id).in_(responses)
    query = counting_ratings(Response.response_id, Rating.criterion, Rating.score, Rating.comment)
    query = query.where(
        chosen, Rater.kind == Kind.CLINICIAN, Rating.pass_ == 0, Rating.comment != ""
    )
    comments: dict[str, list[CommentSaid]] = {}
    for name, criterion, score, words in session.exec(query):
        comments.setdefault(name, []).append(CommentSaid(criterion, score, words))
    whole = first_readings(Response.response_id, Submission.comment).join(Submission)
    whole = whole.where(
        chosen, col(Submission.revision) == NEWEST_SUBMISSION, Submission.comment != ""
    )
    for name, words in session.exec(whole.order_by(col(Submission.id))):
        comments.setdefault(name, []).append(CommentSaid("", None, words))
    return comments
