"""What a clinician has said of a showing so far, as it stands in the study."""

from collections.abc import Mapping

from sqlalchemy import bindparam, exists
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, desc, select

from data.card import Reply
from data.schema import Assignment, Rating, Remark, Span, State

_EARLIER = aliased(Rating)
# A rating that no earlier one of its showing precedes, by the order of storing: a clock may be set
# back. One table is walked from its end, not each showing looked up: clinicians rate thousands.
_LAST_SHOWING = (
    select(Rating.response, Rating.rater, Rating.pass_)
    .where(
        col(Rating.rater) == bindparam("rater"),
        exists().where(
            col(Assignment.rater) == Rating.rater,
            col(Assignment.response) == Rating.response,
            col(Assignment.pass_) == Rating.pass_,
            col(Assignment.state) == State.DONE,
        ),
        ~exists().where(
            col(_EARLIER.rater) == Rating.rater,
            col(_EARLIER.response) == Rating.response,
            col(_EARLIER.pass_) == Rating.pass_,
            col(_EARLIER.id) + 0 < col(Rating.id),  # by the showing, not through all of the rater's
        ),
    )
    .order_by(desc(Rating.id))
    .limit(1)
)


def previous(session: Session, one: Assignment) -> float | None:
    """Return the mean score of what this clinician rated just before, None if nothing."""
    before = session.execute(_LAST_SHOWING, {"rater": one.rater}).first()
    if before is None:
        return None
    scores = [score for score, _ in _latest(session, *before).values()]
    return sum(scores) / len(scores) if scores else None


def _latest(
    session: Session, response: int, rater: int, pass_: int
) -> dict[str, tuple[float, str]]:
    """Return what the rater's latest ratings for a showing say."""
    rows = session.exec(
        select(Rating)
        .where(Rating.response == response, Rating.rater == rater, Rating.pass_ == pass_)
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
    scores = _latest(session, one.response, one.rater, one.pass_) if one.state == State.DONE else {}
    return scores, set(flags), marked


def says(reply: Reply, scores: Mapping[str, float]) -> tuple[object, object, object]:
    """Return what a reply says, in the form of `said`."""
    marked = {(s.criterion, s.start, s.end, s.error, s.note) for s in reply.spans}
    rated = {name: (score, reply.comment_on(name)) for name, score in scores.items()}
    return rated, set(reply.flags), marked
