"""Acts on the whole study: lock, blind, protocol, settings; its description and who consented."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.card import THIRD
from data.database import reading, transaction
from data.description import CONSENT_TEXT, Description, consent_key
from data.errors import BadInput, Conflict, NotAllowed, Unknown
from data.record import LOCKED, REOPENED, UNBLINDED, log, refuse_locked
from data.schema import (
    Account,
    Event,
    Expert,
    Kind,
    Rater,
    Rating,
    Setting,
    StudyText,
    Submission,
    now,
)
from data.settings import Settings, read_settings
from data.study.authors import everybody
from data.study.base import columns_of, setting_values
from data.study.verify import acts_in

PROTOCOL_SET = "protocol set"
STUDY_TEXT = "study_text"
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
        stored = session.get(Rater, rater)
        if stored is None or stored.kind != Kind.CLINICIAN:
            raise NotAllowed("only clinicians of this study can give consent")
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


# Made once: each page of a clinician asks it, and making it costs more than asking it.
_PRESENT = (
    select(StudyText.body)
    .join(Setting, col(Setting.value) == col(StudyText.sha256))
    .where(Setting.key == STUDY_TEXT)
)


@dataclass(frozen=True, slots=True)
class DescriptionVersion:
    """A version of what clinicians are told.

    Attributes
    ----------
    at, actor
        When it was set, and by whom as the record has it.
    ratings
        Clinicians' ratings that were in by then.
    submissions
        Submissions made under it, also when it held before or again.
    """

    at: datetime
    actor: str
    sha256: str
    consent_sha256: str
    ratings: int
    submissions: int
    description: Description
    is_present: bool


@dataclass(frozen=True, slots=True)
class Consent:
    """A clinician who may sign in or once gave consent, and the consent that they gave last.

    Attributes
    ----------
    at, sha256
        When and to which text; None and "" where they gave none.
    holds
        Whether that is the present text.
    is_out
        Whether they were shut out since.
    """

    rater: int
    handle: str
    at: datetime | None
    sha256: str
    holds: bool
    is_out: bool

    @property
    def state(self) -> str:
        """How it stands, in words."""
        if self.holds:
            return "given"
        return "not yet" if self.at is None else "to an earlier text"


def description(engine: Engine) -> Description | None:
    """Return what clinicians are told of the study, None where nothing is."""
    with reading(engine) as session:
        body = session.exec(_PRESENT).first()
    return None if body is None else Description.from_json(body)


def description_versions(engine: Engine) -> list[DescriptionVersion]:
    """Return every version of what clinicians are told, the oldest first; the last one holds."""
    with reading(engine) as session:
        events = acts_in(session, DESCRIBED)
        bodies = dict(session.exec(select(StudyText.sha256, StudyText.body)).all())
        query = select(Submission.study_text, func.count()).group_by(col(Submission.study_text))
        submissions = dict(session.exec(query).all())
    return [
        DescriptionVersion(
            **{name: event.detail[name] for name in ("sha256", "consent_sha256", "ratings")},
            at=event.at,
            actor=event.actor,
            submissions=submissions.get(event.detail["sha256"], 0),
            description=Description.from_json(bodies[event.detail["sha256"]]),
            is_present=event is events[-1],
        )
        for event in events
        if event.detail["sha256"] in bodies
    ]


def consents(engine: Engine) -> list[Consent]:
    """Return every clinician who is asked for consent, by name; nobody where there is no text.

    Those who were shut out are among them if they gave one; simulated ones never are.
    """
    query = (
        columns_of(Rater.id, Rater.handle, Account.ended)
        .select_from(Rater)
        .join(Account)
        .where(Rater.kind == Kind.CLINICIAN, col(Rater.simulated).is_(False))
        .order_by(col(Rater.handle))
    )
    with reading(engine) as session:
        acts = [(event.at, event.detail) for event in acts_in(session, CONSENTED)]
        consent_text = session.get(Setting, CONSENT_TEXT)
        rows = session.exec(query).all()
    if consent_text is None or not consent_text.value:
        return []
    given = {detail["rater"]: (at, detail["sha256"]) for at, detail in acts}
    return [
        Consent(key, handle, at, sha256, sha256 == consent_text.value, ended is not None)
        for key, handle, ended in rows
        if ended is None or key in given
        for at, sha256 in [given.get(key, (None, ""))]
    ]


def consent_rows(engine: Engine) -> Iterator[tuple[Any, ...]]:
    """Yield every consent that was given, oldest first; columns of `consents.csv`."""
    with reading(engine) as session:
        handles = dict(session.exec(select(Rater.id, Rater.handle)).all())
        stored = setting_values(session)
        events = acts_in(session, CONSENTED)
    newest = {event.detail["rater"]: event.id for event in events}
    present_sha256 = stored.get(CONSENT_TEXT, "")
    for event in events:
        rater, sha256 = event.detail["rater"], event.detail["sha256"]
        holds = sha256 == present_sha256 and newest[rater] == event.id
        yield (handles.get(rater, ""), event.at, sha256, event.detail["study_text"], holds)


def described_rows(engine: Engine) -> Iterator[tuple[Any, ...]]:
    """Yield every version of what clinicians were told, oldest first; columns of `descriptions.csv`."""
    for version in description_versions(engine):
        texts = (version.description.title, version.sha256, version.consent_sha256)
        counts = (version.ratings, version.submissions)
        yield (version.at, version.actor, *texts, *counts, version.is_present)
