"""Giving out the readings that settle differences between clinicians."""

import secrets
from collections.abc import Mapping

from sqlalchemy import Engine
from sqlmodel import Session, select

from data.card import PASS_OF, THIRD, Settling
from data.database import transaction
from data.errors import Conflict, NotAllowed, Unknown
from data.person import asking
from data.schema import Assignment, Kind, Rater, Rating, Role, Setting, State
from data.store.access import PSEUDONYM_KEY
from data.store.assignments import add_last
from data.store.audit import log, refuse_locked
from data.store.seals import Seal, keep_setting, sealed

GIVEN = "adjudication assigned"


def assign_adjudication(
    engine: Engine, who: str, reading: Settling, places: Mapping[int, str]
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
        seals: list[Seal] = []
        if reading == "consensus" and session.get(Setting, PSEUDONYM_KEY) is None:
            seals += keep_setting(session, PSEUDONYM_KEY, secrets.token_urlsafe(32))
        new = [_given(session, reading, response, one) for response, one in places.items()]
        if new or seals:
            session.flush()
            detail = {"reading": reading, "assignments": [one.id for one in new]}
            log(session, who, GIVEN, detail, [*seals, *sealed(*new)])
        return len(new)


# Give out readings that settle differences, in a coordinator's name.
give_adjudication = asking(assign_adjudication, Role.COORDINATOR)


def _given(session: Session, reading: Settling, response: int, handle: str) -> Assignment:
    rater = session.exec(select(Rater).where(Rater.handle == handle)).first()
    if rater is None or rater.kind != Kind.CLINICIAN or rater.simulated:
        raise Unknown(f"clinician {handle!r}: nobody of that name can be given work in this study")
    _refuse_settled(session, response)
    _refuse_reader(session, reading, response, rater)
    return add_last(session, rater.id or 0, response, PASS_OF[reading])


def _refuse_settled(session: Session, response: int) -> None:
    own = select(Assignment.id).where(
        Assignment.response == response, Assignment.state == State.OPEN
    )
    settled = select(Rating.id).where(Rating.response == response, Rating.pass_ >= THIRD)
    if session.exec(own.limit(1)).first() is not None:
        raise Conflict("a response is still to be rated, or its difference is given out already")
    if session.exec(settled.limit(1)).first() is not None:
        raise Conflict("the difference on a response is settled already")


def _refuse_reader(session: Session, reading: Settling, response: int, rater: Rater) -> None:
    """Refuse whoever may not settle this response in this way."""
    given = session.exec(
        select(Assignment.pass_, Assignment.state).where(
            Assignment.response == response, Assignment.rater == rater.id
        )
    ).all()
    rated = select(Rating.id).where(Rating.response == response, Rating.rater == rater.id).limit(1)
    if reading == "third" and (given or session.exec(rated).first() is not None):
        raise NotAllowed(f"{rater.handle} knows this response: a third reading is another's")
    if any(state == State.RECUSED or pass_ >= THIRD for pass_, state in given):
        raise NotAllowed(f"{rater.handle} gave this response back, or was given it before")
