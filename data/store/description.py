"""Storing what clinicians are told of a study, and the consent that they give to it."""

from sqlalchemy import Engine
from sqlmodel import Session

from data.database import transaction
from data.description import CONSENT_TEXT, Description, consent_key
from data.errors import Conflict, NotAllowed
from data.schema import Kind, Rater, Setting, StudyText
from data.store.audit import log, refuse_locked
from data.store.record import ratings_in
from data.store.seals import Seal, keep_setting, sealed
from data.store.submissions import STUDY_TEXT

DESCRIBED, CONSENTED = "study described", "consent given"


def describe(engine: Engine, description: Description, who: str) -> bool:
    """Tell clinicians this of the study from now on; False if it is what they are told already.

    Earlier descriptions stay, and each submission names the one it was made under. The event
    has the hash, that of the consent text, and how many ratings by clinicians were in.

    Raises
    ------
    NotAllowed
        If the study is locked.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        present = session.get(Setting, STUDY_TEXT)
        if present is not None and present.value == description.sha256:
            return False
        seals: list[Seal] = []
        if session.get(StudyText, description.sha256) is None:
            new = StudyText(sha256=description.sha256, body=description.to_json())
            session.add(new)
            seals += sealed(new)
        seals += keep_setting(session, STUDY_TEXT, description.sha256)
        seals += keep_setting(session, CONSENT_TEXT, description.consent_sha256)
        detail = {
            "sha256": description.sha256,
            "consent_sha256": description.consent_sha256,
            "ratings": ratings_in(session),
        }
        log(session, who, DESCRIBED, detail, seals)
    return True


def give_consent(engine: Engine, rater: int, sha256: str) -> bool:
    """Keep that a clinician agrees to the consent text of this hash; False if they did already.

    Raises
    ------
    Conflict
        If it is not the present text: it was changed after it was shown, or there is none.
    NotAllowed
        If the study is locked, or this is no clinician of it.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        _refuse_others(session, rater)
        present = session.get(Setting, CONSENT_TEXT)
        if not sha256 or present is None or present.value != sha256:
            raise Conflict("the consent text was changed meanwhile; read it again, then decide")
        given = session.get(Setting, consent_key(rater))
        if given is not None and given.value == sha256:
            return False
        seals = keep_setting(session, consent_key(rater), sha256)
        told = session.get_one(Setting, STUDY_TEXT).value
        detail = {"rater": rater, "sha256": sha256, "study_text": told}
        log(session, f"rater {rater}", CONSENTED, detail, seals)
    return True


def _refuse_others(session: Session, rater: int) -> None:
    """Raise NotAllowed unless this is a clinician of the study."""
    known = session.get(Rater, rater)
    if known is None or known.kind != Kind.CLINICIAN:
        raise NotAllowed("only clinicians of this study can give consent")
