"""Who rates what: the design, places that become free, recusals, and readings that settle differences."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, bindparam, func, update
from sqlmodel import Session, col, select

from data.card import PASS_OF, THIRD, Settling
from data.database import shared_transaction, transaction
from data.errors import BadInput, Conflict, NotAllowed, Unknown
from data.person import asking
from data.record import PAST_RECORD, log, refuse_locked
from data.schema import Assignment, Kind, Rater, Rating, Remark, Role, Setting, State, now
from data.store.access import PSEUDONYM_KEY

Key = tuple[str, int, int]
PER_RESPONSE = "per_response"
NOT_YOURS = "this response is not assigned to you"
ADJUDICATION_ASSIGNED = "adjudication assigned"
_OF_CODE = select(Assignment).where(Assignment.code == bindparam("code")).with_for_update()
# Made once: each response that is shown asks it.
_OPEN = (
    update(Assignment)
    .where(
        col(Assignment.code) == bindparam("code_is"),
        col(Assignment.rater) == bindparam("rater_is"),
        col(Assignment.opened_at).is_(None),
    )
    .values(opened_at=bindparam("now"))  # which no event seals
    .execution_options(synchronize_session=False, **{PAST_RECORD: True})
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
        raters = {rater.handle: rater.id or 0 for rater in session.exec(select(Rater))}
        existing = {
            (slot.rater, slot.response, slot.pass_): slot
            for slot in session.exec(select(Assignment))
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
        is_changed = per_response is not None and _keep_per_response(session, per_response)
        if new or is_changed:
            detail = {"slots": len(new), "seed": seed}
            log(session, "coordinator", "responses assigned", detail)
        return len(new)


def claim(engine: Engine, rater: int) -> bool:
    """Give a clinician one place that has become free, at the end of their order, if there is one.

    A place is free where a response of the design has fewer readers than the design wants,
    those who recused themselves not counted. However many ask at once, no response ever
    gets more readers than wanted.
    """
    with transaction(engine) as session:
        per_response = session.exec(
            select(Setting).where(Setting.key == PER_RESPONSE).with_for_update()
        ).first()
        response = _free(session, rater, int(per_response.value)) if per_response else None
        if response is None:
            return False
        refuse_locked(session)
        new = add_last(session, rater, response)
        log(session, f"rater {rater}", "free place taken", {"assignment": new.id})
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
        assignment = own(session, rater, code)
        if assignment.state == State.RECUSED:
            return False
        if assignment.state != State.OPEN:
            raise NotAllowed("this response is rated already; change the rating instead")
        assignment.state, assignment.done_at = State.RECUSED, now()
        about: dict[str, Any] = {"assignment": assignment.id, "revision": assignment.revision}
        session.add(Remark(kind="recused", text=reason.strip(), **about))
        log(session, f"rater {rater}", "recused", {"assignment": assignment.id})
    return True


def opened(engine: Engine, rater: int, code: str, reference: bool = False) -> None:
    """Record when a clinician first saw a response, or its reference; later times are ignored."""
    with shared_transaction(engine) as session:
        if not reference:
            values = {"code_is": code, "rater_is": rater, "now": now()}
            if session.execute(_OPEN, values).rowcount:  # type: ignore[attr-defined] # of an update
                return
        assignment = own(session, rater, code)
        if reference and assignment.reference_opened_at is None:
            assignment.reference_opened_at = now()
            detail = {"assignment": assignment.id}
            log(session, f"rater {rater}", "reference opened", detail)
        assignment.opened_at = assignment.opened_at or now()


def assign_adjudication(
    engine: Engine, actor: str, reading: Settling, clinicians: Mapping[int, str]
) -> int:
    """Give each response (primary key) to the clinician who is to settle it; return how many.

    Each comes after all the other work of its clinician, in the order of `places`.

    Raises
    ------
    NotAllowed
        If somebody would give a third reading of what they rated or were ever given, or is
        given what they gave back; or the study is locked.
    Conflict
        If one of the responses is settled, or given out, already, or somebody has still to rate
        it by themselves.
    Unknown
        If a name is no clinician's.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        is_first = reading == "consensus" and session.get(Setting, PSEUDONYM_KEY) is None
        if is_first:
            session.add(Setting(key=PSEUDONYM_KEY, value=secrets.token_urlsafe(32)))
        new = [
            _adjudication(session, reading, response, handle)
            for response, handle in clinicians.items()
        ]
        if new or is_first:
            detail = {"reading": reading, "assignments": [assignment.id for assignment in new]}
            log(session, actor, ADJUDICATION_ASSIGNED, detail)
        return len(new)


# Give out readings that settle differences, in a coordinator's name.
give_adjudication = asking(assign_adjudication, Role.COORDINATOR)


def own(session: Session, rater: int, code: str) -> Assignment:
    """Return the rater's own assignment of that code, locked until the transaction ends."""
    assignment = session.exec(_OF_CODE, params={"code": code}).first()
    if assignment is None or assignment.rater != rater:
        raise NotAllowed(NOT_YOURS)
    return assignment


def _keep_per_response(session: Session, per_response: int) -> bool:
    """Store how many clinicians each response is to have; tell whether that is new."""
    stored = session.get(Setting, PER_RESPONSE)
    if stored is not None and stored.value == str(per_response):
        return False
    session.merge(Setting(key=PER_RESPONSE, value=str(per_response)))
    return True


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


def _free(session: Session, rater: int, per_response: int) -> int | None:
    """Return the response with most places free that this clinician has never been given."""
    readers = func.count(col(Assignment.id)).filter(col(Assignment.state) != State.RECUSED)
    own_responses = select(Assignment.response).where(Assignment.rater == rater)
    query = (
        select(Assignment.response)
        .where(Assignment.pass_ == 0)
        .group_by(col(Assignment.response))
        .having(readers < per_response, col(Assignment.response).not_in(own_responses))
        .order_by(readers, col(Assignment.response))
        .limit(1)
    )
    return session.exec(query).first()


def _take_back(session: Session, assignment: Assignment) -> None:
    """Delete an assignment that nobody has begun."""
    if assignment.state != State.OPEN or assignment.draft_seq or assignment.opened_at:
        raise Conflict("a clinician began this work meanwhile; assign the work again")
    detail = {"rater": assignment.rater, "response": assignment.response, "pass": assignment.pass_}
    session.delete(assignment)
    log(session, "coordinator", "assignment taken back", detail)


def _assignment(slot: Slot, rater: int) -> Assignment:
    return Assignment(
        code=secrets.token_urlsafe(9),
        rater=rater,
        response=slot.response,
        position=slot.position,
        pass_=slot.pass_,
    )


def _adjudication(session: Session, reading: Settling, response: int, handle: str) -> Assignment:
    rater = session.exec(select(Rater).where(Rater.handle == handle)).first()
    if rater is None or rater.kind != Kind.CLINICIAN or rater.simulated:
        raise Unknown(f"clinician {handle!r}: nobody of that name can be given work in this study")
    _refuse_settled(session, response)
    _refuse_reader(session, reading, response, rater)
    return add_last(session, rater.id or 0, response, PASS_OF[reading])


def _refuse_settled(session: Session, response: int) -> None:
    open_assignment = select(Assignment.id).where(
        Assignment.response == response, Assignment.state == State.OPEN
    )
    settled = select(Rating.id).where(Rating.response == response, Rating.pass_ >= THIRD)
    if session.exec(open_assignment.limit(1)).first() is not None:
        raise Conflict("a response is still to be rated, or its difference is given out already")
    if session.exec(settled.limit(1)).first() is not None:
        raise Conflict("the difference on a response is settled already")


def _refuse_reader(session: Session, reading: Settling, response: int, rater: Rater) -> None:
    """Refuse whoever may not settle this response in this way."""
    assignments = session.exec(
        select(Assignment.pass_, Assignment.state).where(
            Assignment.response == response, Assignment.rater == rater.id
        )
    ).all()
    rated = select(Rating.id).where(Rating.response == response, Rating.rater == rater.id).limit(1)
    if reading == "third" and (assignments or session.exec(rated).first() is not None):
        raise NotAllowed(f"{rater.handle} knows this response: a third reading is another's")
    if any(state == State.RECUSED or pass_ >= THIRD for pass_, state in assignments):
        raise NotAllowed(f"{rater.handle} gave this response back, or was given it before")
