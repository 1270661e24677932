"""What a clinician has said of a showing so far, as it stands in the study."""

from collections.abc import Mapping

from sqlalchemy import func
from sqlmodel import Session, col, desc, select

from data.card import Reply
from data.schema import Assignment, Rating, Remark, Span, State

# Of an assignment: when it was first rated, by the order of storing. A clock may be set back.
FIRST_RATING = (
    select(func.min(col(Rating.id)))
    .where(
        Rating.response == Assignment.response,
        Rating.rater == Assignment.rater,
        Rating.pass_ == Assignment.pass_,
    )
    .correlate(Assignment)
    .scalar_subquery()
)


def previous(session: Session, one: Assignment) -> float | None:
    """Return the mean score of what this clinician rated just before, None if nothing."""
    before = session.exec(
        select(Assignment)
        .where(Assignment.rater == one.rater, Assignment.state == State.DONE)
        .order_by(desc(FIRST_RATING))
        .limit(1)
    ).first()
    if before is None:
        return None
    scores = [score for score, _ in _latest(session, before).values()]
    return sum(scores) / len(scores) if scores else None


def _latest(session: Session, one: Assignment) -> dict[str, tuple[float, str]]:
    """Return what the rater's latest ratings for this assignment say."""
    rows = session.exec(
        select(Rating)
        .where(
            Rating.response == one.response, Rating.rater == one.rater, Rating.pass_ == one.pass_
        )
        .order_by(desc(Rating.id))
    )
    newest: dict[str, tuple[float, str]] = {}
    for row in rows:
        newest.setdefault(row.criterion, (row.score, row.comment))
    return newest


def said(session: Session, one: Assignment) -> tuple[object, object, object]:
    """Return all that the newest submission of an assignment said."""
    newest = one.revision - 1
    flags = session.exec(
        select(Remark.kind).where(Remark.assignment == one.id, Remark.revision == newest)
    )
    spans = session.exec(select(Span).where(Span.assignment == one.id, Span.revision == newest))
    marked = {(s.criterion, s.start, s.end, s.error, s.note) for s in spans}
    scores = _latest(session, one) if one.state == State.DONE else {}
    return scores, set(flags), marked


def says(reply: Reply, scores: Mapping[str, float]) -> tuple[object, object, object]:
    """Return what a reply says, in the form of `said`."""
    marked = {(s.criterion, s.start, s.end, s.error, s.note) for s in reply.spans}
    rated = {name: (score, reply.comment_on(name)) for name, score in scores.items()}
    return rated, set(reply.flags), marked
