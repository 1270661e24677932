"""Acts on the whole study: lock, blind, protocol, description, consent, settings."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.card import THIRD
from data.database import transaction
from data.description import CONSENT_TEXT, Description, consent_key
from data.errors import BadInput, Conflict, NotAllowed, Unknown
from data.record import LOCKED, REOPENED, UNBLINDED, log, refuse_locked
from data.schema import (
    Event,
    Expert,
    Kind,
    Rater,
    Rating,
    Setting,
    StudyText,
    now,
)
from data.settings import Settings, read_settings
from data.store.authors import everybody
from data.store.submissions import STUDY_TEXT

PROTOCOL_SET = "protocol set"
DESCRIBED, CONSENTED = "study described", "consent given"


def lock(engine: Engine, actor: str) -> str:
    """Lock a study against every change; return the hash of the chain's last event.

    Keep that hash elsewhere: `verify` against it proves that nothing was cut off since.
    """
    with transaction(engine) as session:
        if (lock_setting := session.get(Setting, LOCKED)) is not None:
            raise Conflict(f"the study is locked already, since {lock_setting.value}")
        since = f"{now():%Y-%m-%d %H:%M} UTC by {actor}"
        session.add(Setting(key=LOCKED, value=since))
        log(session, actor, LOCKED, {})
        newest = select(Event.sha256).order_by(col(Event.id).desc()).limit(1)
        return session.exec(newest).one()


def reopen(engine: Engine, actor: str, reason: str) -> None:
    """Open a locked study again, with a reason that stays in the record."""
    _refuse_no_reason(reason)
    with transaction(engine) as session:
        lock_setting = session.get(Setting, LOCKED)
        if lock_setting is None:
            raise Conflict("the study is not locked")
        session.delete(lock_setting)
        log(session, actor, REOPENED, {"reason": reason.strip()})


def unblind(engine: Engine, actor: str, reason: str) -> list[tuple[str, str]]:
    """Record that the blind is lifted, and return (response_id, model) of every response."""
    _refuse_no_reason(reason)
    with transaction(engine) as session:
        log(session, actor, UNBLINDED, {"reason": reason.strip()})
        return everybody(session)


def set_protocol(engine: Engine, actor: str, protocol: Mapping[str, Any]) -> None:
    """Record what a study is to show; it holds until another is set, and stays in the record.

    Parameters
    ----------
    engine, who : which study, and who sets it
    fixed : JSON values; the record adds their SHA-256 and how many ratings by clinicians were in

    Raises
    ------
    NotAllowed
        If the study is locked.
    """
    text = json.dumps(protocol, sort_keys=True, ensure_ascii=False)
    sha256 = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    with transaction(engine) as session:
        refuse_locked(session)
        counted = {"ratings": ratings_in(session), "sha256": sha256}
        log(session, actor, PROTOCOL_SET, dict(protocol) | counted)


def ratings_in(session: Session) -> int:
    """Return how often a clinician has rated a response by themselves; repeats count.

    Training is left out.
    """
    readings = (
        select(Rating.response, Rating.rater, Rating.pass_)
        .join(Rater, col(Rater.id) == col(Rating.rater))
        .where(Rater.kind == Kind.CLINICIAN, col(Rating.pass_) < THIRD)
        .where(col(Rating.response).not_in(select(Expert.response)))
        .distinct()
        .subquery()
    )
    return int(session.exec(select(func.count()).select_from(readings)).one())


def _refuse_no_reason(reason: str) -> None:
    if not reason.strip():
        raise BadInput("a reason is needed; it stays in the record")


def describe(engine: Engine, description: Description, actor: str) -> bool:
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
        if session.get(StudyText, description.sha256) is None:
            session.add(StudyText(sha256=description.sha256, body=description.to_json()))
        session.merge(Setting(key=STUDY_TEXT, value=description.sha256))
        session.merge(Setting(key=CONSENT_TEXT, value=description.consent_sha256))
        detail = {
            "sha256": description.sha256,
            "consent_sha256": description.consent_sha256,
            "ratings": ratings_in(session),
        }
        log(session, actor, DESCRIBED, detail)
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
        _refuse_no_clinician(session, rater)
        present = session.get(Setting, CONSENT_TEXT)
        if not sha256 or present is None or present.value != sha256:
            raise Conflict("the consent text was changed meanwhile; read it again, then decide")
        consent = session.get(Setting, consent_key(rater))
        if consent is not None and consent.value == sha256:
            return False
        session.merge(Setting(key=consent_key(rater), value=sha256))
        description_sha256 = session.get_one(Setting, STUDY_TEXT).value
        detail = {"rater": rater, "sha256": sha256, "study_text": description_sha256}
        log(session, f"rater {rater}", CONSENTED, detail)
    return True


def _refuse_no_clinician(session: Session, rater: int) -> None:
    """Raise NotAllowed unless this is a clinician of the study."""
    stored = session.get(Rater, rater)
    if stored is None or stored.kind != Kind.CLINICIAN:
        raise NotAllowed("only clinicians of this study can give consent")


def set_setting(engine: Engine, name: str, value: str) -> None:
    """Store one setting, checked; the change stays in the record.

    Raises
    ------
    Unknown, BadInput
        If there is no such setting, or the value is not allowed.
    """
    names = list(Settings().as_text())
    if name not in names:
        raise Unknown(f"setting {name!r}: choose from {', '.join(names)}")
    read_settings({name: value})
    with transaction(engine) as session:
        refuse_locked(session)
        session.merge(Setting(key=name, value=value))
        log(session, "coordinator", "setting changed", {name: value})
