"""A clinician's specialty, by which agreement can be looked at."""

from sqlalchemy import Engine
from sqlmodel import col, select

from data.database import transaction
from data.errors import BadInput, Unknown
from data.person import Person, only
from data.schema import Kind, Rater, Role
from data.store.audit import log, refuse_locked
from data.store.seals import sealed

LONGEST_SPECIALTY = 60


@only(Role.COORDINATOR)
def set_specialty(by: Person, engine: Engine, name: str, specialty: str) -> bool:
    """Say what a clinician's specialty is, "" for none; False if that is so already.

    Clinicians who rated elsewhere, and never sign in, can have one too.

    Raises
    ------
    NotAllowed, Unknown
        Unless `by` is a coordinator; if the study has no such clinician, or is locked.
    BadInput
        If it is no short name.
    """
    given = specialty.strip()
    if len(given) > LONGEST_SPECIALTY or not given.isprintable():
        raise BadInput(f"specialty of {name}: takes at most {LONGEST_SPECIALTY} visible characters")
    with transaction(engine) as session:
        refuse_locked(session)
        known = select(Rater).where(Rater.handle == name, col(Rater.kind) == Kind.CLINICIAN)
        rater = session.exec(known).first()
        if rater is None:
            raise Unknown(f"this study has no clinician {name}")
        if rater.specialty == given:
            return False
        rater.specialty = given
        session.add(rater)
        detail = {"rater": name, "specialty": given}
        log(session, by.actor, "specialty said", detail, sealed(rater))
        return True
