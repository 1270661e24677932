"""Who rates what, the draft so far, and the submitted rating."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, col, desc, select

from data.card import Reply
from data.database import transaction
from data.errors import BadInput, Conflict, NotAllowed
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Benchmark,
    Instance,
    Rater,
    Rating,
    Response,
    RubricText,
    State,
    now,
)
from data.store.audit import log

Key = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Slot:
    """One showing of a response (primary key) to a clinician, at a place in their order."""

    rater: str
    response: int
    position: int
    pass_: int = 0


def assign(engine: Engine, slots: Iterable[Slot], seed: int, dropped: Iterable[Key] = ()) -> int:
    """Store a design and return how many of its slots are new; those there already stay.

    Parameters
    ----------
    dropped
        Slots to take back, as (rater, response, pass); nobody may have begun them.

    Raises
    ------
    Conflict
        If a clinician has begun a slot that was to be taken back. Nothing is changed.
    """
    with transaction(engine) as session:
        raters = {one.handle: one.id or 0 for one in session.exec(select(Rater))}
        existing = {
            (one.rater, one.response, one.pass_): one for one in session.exec(select(Assignment))
        }
        for rater, response, pass_ in dropped:
            _take_back(session, existing.pop((raters[rater], response, pass_)))
        new = [
            _assignment(slot, raters[slot.rater])
            for slot in slots
            if (raters[slot.rater], slot.response, slot.pass_) not in existing
        ]
        session.add_all(new)
        session.flush()
        if new:
            log(session, "coordinator", "responses assigned", {"slots": len(new), "seed": seed})
        return len(new)


def _take_back(session: Session, one: Assignment) -> None:
    """Delete an assignment that nobody has begun."""
    if one.state == State.DONE or one.draft_seq:
        raise Conflict("a clinician began this work meanwhile; run `medjury assign` again")
    session.delete(one)
    session.flush()
    detail = {"rater": one.rater, "response": one.response, "pass": one.pass_}
    log(session, "coordinator", "assignment taken back", detail)


def _assignment(slot: Slot, rater: int) -> Assignment:
    return Assignment(
        code=secrets.token_urlsafe(9),
        rater=rater,
        response=slot.response,
        position=slot.position,
        pass_=slot.pass_,
    )


def save_draft(
    engine: Engine, rater: int, code: str, seq: int, draft: Mapping[str, Any], seconds: float
) -> bool:
    """Keep a draft; one that is older than what is stored is ignored and gives False."""
    with transaction(engine) as session:
        one = _own(session, rater, code)
        if one.state == State.DONE or seq <= one.draft_seq:
            return False
        one.draft, one.draft_seq = dict(draft), seq
        one.seconds_active = max(one.seconds_active, seconds)
        session.add(one)
    return True


def submit(engine: Engine, rater: int, code: str, reply: Reply, seconds: float) -> bool:
    """Turn a complete reply into ratings; the same reply again changes nothing and gives False.

    Raises
    ------
    NotAllowed
        If the assignment is not this rater's.
    BadInput
        If a criterion is missing, unknown, or off the scale.
    """
    with transaction(engine) as session:
        one = _own(session, rater, code)
        rubric = _rubric(session, one.response)
        scores = _complete(rubric, reply)
        if one.state == State.DONE and _said(session, one, rubric) == {
            name: (score, reply.comment_on(name)) for name, score in scores.items()
        }:
            return False
        session.add_all(
            Rating(
                response=one.response,
                rater=rater,
                criterion=name,
                score=score,
                rubric_sha256=rubric.sha256,
                pass_=one.pass_,
                comment=reply.comment_on(name),
            )
            for name, score in scores.items()
        )
        if one.state != State.DONE:
            one.done_at = now()
        one.state = State.DONE
        one.seconds_active = max(one.seconds_active, seconds)
        session.add(one)
        log(session, f"rater {rater}", "rated", {"assignment": one.id, "scores": scores})
    return True


def _own(session: Session, rater: int, code: str) -> Assignment:
    """Return the rater's own assignment of that code, locked until the transaction ends."""
    found = session.exec(select(Assignment).where(Assignment.code == code).with_for_update())
    one = found.first()
    if one is None or one.rater != rater:
        raise NotAllowed("this response is not assigned to you")
    return one


def _rubric(session: Session, response: int) -> Rubric:
    """Return the rubric a response is rated on."""
    body = session.exec(
        select(RubricText.body)
        .join(Benchmark, col(Benchmark.rubric_sha256) == col(RubricText.sha256))
        .join(Instance, col(Instance.benchmark) == col(Benchmark.name))
        .join(Response, col(Response.instance) == col(Instance.id))
        .where(Response.id == response)
    ).one()
    return Rubric.from_json(body)


def _complete(rubric: Rubric, reply: Reply) -> dict[str, float]:
    """Return a whole-point score for every criterion, or say what is wrong."""
    missing = [name for name in rubric.criteria if name not in reply.scores]
    if missing:
        raise BadInput("not rated yet: " + ", ".join(missing))
    return {
        name: rubric.score(name, value, "you", "this response")
        for name, value in reply.scores.items()
    }


def _said(session: Session, one: Assignment, rubric: Rubric) -> dict[str, tuple[float, str]]:
    """Return what the rater's latest ratings for this assignment say."""
    rows = session.exec(
        select(Rating)
        .where(
            Rating.response == one.response,
            Rating.rater == one.rater,
            Rating.pass_ == one.pass_,
            Rating.rubric_sha256 == rubric.sha256,
        )
        .order_by(desc(Rating.id))
    )
    said: dict[str, tuple[float, str]] = {}
    for row in rows:
        said.setdefault(row.criterion, (row.score, row.comment))
    return said
