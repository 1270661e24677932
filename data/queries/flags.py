"""Flags that clinicians raised, the answers to them, and whether those were seen."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, bindparam
from sqlalchemy.orm import aliased
from sqlmodel import col, select

from data.database import reading
from data.person import Person, only
from data.queries.base import BY_CLINICIAN, NEWEST_SUBMISSION, columns_of
from data.schema import ANSWER, SEEN, Assignment, Instance, Rater, Remark, Response, Role
from data.store.flags import RECUSED

_FLAG, _ANSWER, _SEEN = aliased(Remark), aliased(Remark), aliased(Remark)
_ANSWERS = (
    columns_of(
        *(Assignment.code, _FLAG.kind, _FLAG.text, _ANSWER.text, _ANSWER.at, _SEEN.at, _ANSWER.id)
    )
    .select_from(Assignment)
    .join(_ANSWER, col(_ANSWER.assignment) == col(Assignment.id))
    .join(_FLAG, col(_FLAG.id) == col(_ANSWER.about))
    .outerjoin(
        _SEEN,
        (col(_SEEN.assignment) == col(Assignment.id))
        & (col(_SEEN.about) == col(_ANSWER.id))
        & (col(_SEEN.kind) == SEEN),
    )
    .where(col(Assignment.rater) == bindparam("rater"), col(_ANSWER.kind) == ANSWER)
    .order_by(col(_ANSWER.id))
)


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer to a clinician's flag.

    Attributes
    ----------
    code
        Of the assignment.
    flag, text
        What was flagged, and the clinician's words with it.
    seen
        When the clinician saw the answer, None if not yet.
    answer_id
        The answer's key, for `store.answer_seen`.
    """

    code: str
    flag: str
    text: str
    answer: str
    at: datetime
    seen: datetime | None
    answer_id: int


@dataclass(frozen=True, slots=True)
class Flagged:
    """A flag of a newest submission, for those who steer the study; never the author.

    Attributes
    ----------
    id
        The remark's key, for `store.answer_flag`.
    rater
        The clinician's handle for coordinators, for researchers a pseudonym.
    answers
        What was answered, the oldest first; `seen` whether the clinician saw the last.
    """

    id: int
    response_id: str
    benchmark: str
    rater: str
    flag: str
    text: str
    at: datetime
    answers: tuple[str, ...] = ()
    seen: bool = False


def answers_for(engine: Engine, rater: int) -> tuple[Answered, ...]:
    """Return the answers to what a clinician flagged, the oldest first."""
    with reading(engine) as session:
        return tuple(Answered(*row) for row in session.execute(_ANSWERS, {"rater": rater}))


@only(Role.RESEARCHER, Role.COORDINATOR)
def flags(person: Person, engine: Engine) -> list[Flagged]:
    """Return every flag of a newest submission: those without an answer first, then the newest."""
    query = (
        columns_of(Remark, Response.response_id, Instance.benchmark, Rater)
        .select_from(Remark)
        .join(Assignment, col(Remark.assignment) == col(Assignment.id))
        .join(Response, col(Assignment.response) == col(Response.id))
        .join(Instance)
        .join(Rater, col(Assignment.rater) == col(Rater.id))
        .where(Remark.kind != RECUSED, Remark.revision == NEWEST_SUBMISSION, BY_CLINICIAN)
    )
    replies = select(Remark).where(col(Remark.about).is_not(None)).order_by(col(Remark.id))
    with reading(engine) as session:
        later = list(session.exec(replies))
        flagged = [_flagged(person, row, later) for row in session.exec(query)]
    return sorted(flagged, key=lambda flag: (bool(flag.answers), -flag.at.timestamp(), flag.id))


def _flagged(person: Person, row: Any, replies: list[Remark]) -> Flagged:
    remark, response, benchmark, rater = row
    answers = [reply for reply in replies if reply.about == remark.id]
    seen_answers = {reply.about for reply in replies if reply.kind == SEEN}
    name = rater.handle
    if person.role != Role.COORDINATOR:
        name = rater.pseudonym or f"clinician {rater.id}"
    texts = tuple(answer.text for answer in answers)
    is_seen = bool(answers) and answers[-1].id in seen_answers
    flag_fields = response, benchmark, name, remark.kind, remark.text, remark.at
    return Flagged(remark.id, *flag_fields, texts, is_seen)
