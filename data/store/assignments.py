"""Who rates what: the design as it is stored, places that become free, and recusals."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Engine, bindparam, func, update
from sqlmodel import Session, col, select

from data.card import THIRD
from data.database import transaction
from data.errors import BadInput, Conflict, NotAllowed
from data.schema import Assignment, Rater, Remark, Setting, State, now
from data.store.audit import log, refuse_locked, write_rows
from data.store.seals import Seal, keep_setting, seal_together, sealed, taken_away

Key = tuple[str, int, int]
PER_RESPONSE = "per_response"
_OF_CODE = select(Assignment).where(Assignment.code == bindparam("code")).with_for_update()
# Made once: each response that is shown asks it.
_OPEN = (
    update(Assignment)
    .where(
        col(Assignment.code) == bindparam("code_is"),
        col(Assignment.rater) == bindparam("rater_is"),
        col(Assignment.opened_at).is_(None),
    )
    .values(opened_at=bindparam("now"))
    .execution_options(synchronize_session=False)
)


@dataclass(frozen=True, slots=True)
class Slot:
    """One showing of a response (primary key) to a clinician, at a place in their order."""

    rater: str
    response: int
    position: int
    pass_: int = 0


def assign(
    engine: Engine,
    slots: Iterable[Slot],
    seed: int,
    dropped: Iterable[Key] = (),
    per_response: int | None = None,
) -> int:
    """Store a design and return how many of its slots are new; those there already stay.

    Who was given a response to settle a difference does not rate it by themselves afterwards:
    such a slot is left out, and its place is free for another clinician.

    Parameters
    ----------
    dropped
        Slots to take back, as (rater, response, pass); nobody may have begun them.
    per_response
        How many clinicians the design gives each response; places that become free are
        given away up to this number.

    Raises
    ------
    Conflict
        If a clinician has begun a slot that was to be taken back. Nothing is changed.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        raters = {one.handle: one.id or 0 for one in session.exec(select(Rater))}
        existing = {
            (one.rater, one.response, one.pass_): one for one in session.exec(select(Assignment))
        }
        for rater, response, pass_ in dropped:
            _take_back(session, existing.pop((raters[rater], response, pass_)))
        settling = {(rater, response) for rater, response, pass_ in existing if pass_ >= THIRD}
        new = [
            _assignment(slot, raters[slot.rater])
            for slot in slots
            if (raters[slot.rater], slot.response, slot.pass_) not in existing
            and (raters[slot.rater], slot.response) not in settling
        ]
        session.add_all(new)
        session.flush()
        seals = [] if per_response is None else _keep_number(session, per_response)
        if new:
            seals.append(seal_together("assignment", [one.model_dump() for one in new]))
        if seals:
            detail = {"slots": len(new), "seed": seed}
            log(session, "coordinator", "responses assigned", detail, seals)
        return len(new)


def claim(engine: Engine, rater: int) -> bool:
    """Give a clinician one place that has become free, at the end of their order, if there is one.

    A place is free where a response of the design has fewer readers than the design wants,
    those who recused themselves not counted. However many ask at once, no response ever
    gets more readers than wanted.
    """
    with transaction(engine) as session:
        wanted = session.exec(
            select(Setting).where(Setting.key == PER_RESPONSE).with_for_update()
        ).first()
        response = _free(session, rater, int(wanted.value)) if wanted else None
        if response is None:
            return False
        refuse_locked(session)
        new = add_last(session, rater, response)
        log(session, f"rater {rater}", "free place taken", {"assignment": new.id}, sealed(new))
    return True


def recuse(engine: Engine, rater: int, code: str, reason: str) -> bool:
    """Give an open assignment back with a reason; the place is free for another clinician.

    Raises
    ------
    NotAllowed
        If the assignment is not this rater's, or is rated already.
    BadInput
        If no reason is given.
    """
    if not reason.strip():
        raise BadInput("say why you recuse yourself")
    with transaction(engine) as session:
        refuse_locked(session)
        one = own(session, rater, code)
        if one.state == State.RECUSED:
            return False
        if one.state != State.OPEN:
            raise NotAllowed("this response is rated already; change the rating instead")
        one.state, one.done_at = State.RECUSED, now()
        session.add(one)
        said = {"assignment": one.id, "kind": "recused", "text": reason.strip(), "at": now()}
        written = write_rows(session, Remark, [said | {"revision": one.revision, "about": None}])
        detail = {"assignment": one.id, "written": written}
        log(session, f"rater {rater}", "recused", detail, [progress(one)])
    return True


def opened(engine: Engine, rater: int, code: str, reference: bool = False) -> None:
    """Record when a clinician first saw a response, or its reference; later times are ignored."""
    with transaction(engine) as session:
        if not reference:
            first = {"code_is": code, "rater_is": rater, "now": now()}
            if session.execute(_OPEN, first).rowcount:  # type: ignore[attr-defined] # of an update
                return
        one = own(session, rater, code)
        if reference and one.reference_opened_at is None:
            one.reference_opened_at = now()
            detail = {"assignment": one.id}
            log(session, f"rater {rater}", "reference opened", detail, [progress(one)])
        one.opened_at = one.opened_at or now()
        session.add(one)


def own(session: Session, rater: int, code: str) -> Assignment:
    """Return the rater's own assignment of that code, locked until the transaction ends."""
    one = session.exec(_OF_CODE, params={"code": code}).first()
    if one is None or one.rater != rater:
        raise NotAllowed("this response is not assigned to you")
    return one


def progress(one: Assignment) -> Seal:
    """Return the seal of how far an assignment has come; each submission gives a new one."""
    return seal_together("progress", [one.__dict__])


def _keep_number(session: Session, per_response: int) -> list[Seal]:
    """Store how many clinicians each response is to have; return its seal, if that is new."""
    known = session.get(Setting, PER_RESPONSE)
    if known is not None and known.value == str(per_response):
        return []
    return keep_setting(session, PER_RESPONSE, str(per_response))


def add_last(session: Session, rater: int, response: int, pass_: int = 0) -> Assignment:
    """Add a showing of a response at the end of a clinician's order (both as primary keys)."""
    last = select(func.max(col(Assignment.position))).where(Assignment.rater == rater)
    position = session.exec(last).one()
    new = Assignment(
        code=secrets.token_urlsafe(9),
        rater=rater,
        response=response,
        position=0 if position is None else position + 1,
        pass_=pass_,
    )
    session.add(new)
    session.flush()
    return new


def _free(session: Session, rater: int, wanted: int) -> int | None:
    """Return the response with most places free that this clinician has never been given."""
    readers = func.count(col(Assignment.id)).filter(col(Assignment.state) != State.RECUSED)
    mine = select(Assignment.response).where(Assignment.rater == rater)
    query = (
        select(Assignment.response)
        .where(Assignment.pass_ == 0)
        .group_by(col(Assignment.response))
        .having(readers < wanted, col(Assignment.response).not_in(mine))
        .order_by(readers, col(Assignment.response))
        .limit(1)
    )
    return session.exec(query).first()


def _take_back(session: Session, one: Assignment) -> None:
    """Delete an assignment that nobody has begun."""
    if one.state != State.OPEN or one.draft_seq or one.opened_at:
        raise Conflict("a clinician began this work meanwhile; run `medjury rate assign` again")
    detail = {"rater": one.rater, "response": one.response, "pass": one.pass_}
    was = taken_away(one)
    session.delete(one)
    session.flush()
    log(session, "coordinator", "assignment taken back", detail, [was])


def _assignment(slot: Slot, rater: int) -> Assignment:
    return Assignment(
        code=secrets.token_urlsafe(9),
        rater=rater,
        response=slot.response,
        position=slot.position,
        pass_=slot.pass_,
    )
