"""Verdicts that count for more than one response, since a juror reads the same for both."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.card import Reply
from data.database import reading
from data.queries.base import FOR_STUDY, columns_of
from data.rubric import Rubric
from data.schema import Attempt, Rating, Response, Status


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A verdict that stands, with the call (primary key) that gave it."""

    attempt: int
    response: int
    request_sha256: str
    raw: str
    returned_model: str
    distribution: Mapping[str, Any] | None
    reply: Reply


def responses_with_equal_texts(engine: Engine) -> frozenset[int]:
    """Return the responses (primary keys) whose text, as raters see it, another one has as well."""
    text = func.coalesce(Response.shown, Response.text)
    twice = columns_of(text).where(FOR_STUDY).group_by(text).having(func.count() > 1)
    query = columns_of(Response.id).where(text.in_(twice), FOR_STUDY)
    with reading(engine) as session:
        return frozenset(key for (key,) in session.exec(query))


def verdict_of_same_prompt(
    engine: Engine, rater: int, rubric: Rubric, replicate: int, hashes: Sequence[str]
) -> StoredVerdict | None:
    """Return the first verdict that a juror gave to a prompt, None if none stands.

    Parameters
    ----------
    hashes
        SHA-256 of the request with this prompt, in each form it may have had.
    """
    place = (Attempt.rater == rater, Attempt.replicate == replicate, Attempt.number > 0)
    here = (*place, Attempt.rubric_sha256 == rubric.sha256)
    asked = select(Attempt.response).where(*here, col(Attempt.request_sha256).in_(hashes))
    calls = columns_of(*_CALL).where(*here, col(Attempt.response).in_(asked))
    with reading(engine) as session:
        rows = session.exec(calls.order_by(col(Attempt.id))).all()
        for call in _answers(rows, hashes):
            reply = _reply(session, rater, call.response, rubric, replicate)
            if reply is not None:
                told = (call.request_sha256, call.raw, call.returned_model, call.distribution)
                return StoredVerdict(call.id, call.response, *told, reply)
    return None


_CALL = (
    *(Attempt.id, Attempt.response, Attempt.status, Attempt.request_sha256, Attempt.sent),
    *(Attempt.raw, Attempt.returned_model, Attempt.distribution),
)


def _answers(rows: Iterable[Any], hashes: Sequence[str]) -> Iterable[Any]:
    """Yield the calls that gave a verdict to the prompt itself, or when it was asked once more."""
    same: dict[int, bool] = {}
    for one in rows:
        if one.sent.get("turns", 1) == 1:
            same[one.response] = one.request_sha256 in hashes
        if one.status == Status.OK and same.get(one.response):
            yield one


def _reply(
    session: Session, rater: int, response: int, rubric: Rubric, replicate: int
) -> Reply | None:
    """Return a verdict by the ratings that count, None unless they are whole."""
    query = (
        select(Rating.criterion, Rating.score, Rating.comment)
        .where(Rating.rater == rater, Rating.response == response, Rating.replicate == replicate)
        .where(Rating.rubric_sha256 == rubric.sha256, Rating.pass_ == 0)
        .order_by(col(Rating.id))
    )
    rows = session.exec(query).all()
    scores = {criterion: score for criterion, score, _ in rows}
    comments = {criterion: comment for criterion, _, comment in rows if comment}
    return Reply(scores, comments) if set(rubric.criteria) <= set(scores) else None
