"""Reading what clinicians are told of a study, who agreed to it, and whether it was forged."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.database import reading
from data.description import CONSENT_OF, CONSENT_TEXT, Description, consent_key
from data.queries.base import columns_of
from data.schema import Account, Event, Kind, Rater, Setting, StudyText, Submission
from data.store.study import CONSENTED, DESCRIBED
from data.store.submissions import STUDY_TEXT

# Made once: each page of a clinician asks it, and making it costs more than asking it.
_PRESENT = (
    select(StudyText.body)
    .join(Setting, col(Setting.value) == col(StudyText.sha256))
    .where(Setting.key == STUDY_TEXT)
)


@dataclass(frozen=True, slots=True)
class Described:
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


def described(engine: Engine) -> list[Described]:
    """Return every version of what clinicians are told, the oldest first; the last one holds."""
    with reading(engine) as session:
        acts = _acts(session, DESCRIBED)
        bodies = dict(session.exec(select(StudyText.sha256, StudyText.body)).all())
        number = select(Submission.study_text, func.count()).group_by(col(Submission.study_text))
        under = dict(session.exec(number).all())
    return [
        Described(
            **{name: act.detail[name] for name in ("sha256", "consent_sha256", "ratings")},
            at=act.at,
            actor=act.actor,
            submissions=under.get(act.detail["sha256"], 0),
            description=Description.from_json(bodies[act.detail["sha256"]]),
            is_present=act is acts[-1],
        )
        for act in acts
        if act.detail["sha256"] in bodies
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
        given = {act.detail["rater"]: act for act in _acts(session, CONSENTED)}
        held = session.get(Setting, CONSENT_TEXT)
        rows = session.exec(query).all()
    if held is None or not held.value:
        return []
    return [
        _consent(key, handle, given.get(key), held.value, is_out=ended is not None)
        for key, handle, ended in rows
        if ended is None or key in given
    ]


def consent_rows(engine: Engine) -> Iterator[tuple[Any, ...]]:
    """Yield every consent that was given, oldest first; columns `CONSENTS`."""
    with reading(engine) as session:
        handles = dict(session.exec(select(Rater.id, Rater.handle)).all())
        kept = dict(session.exec(select(Setting.key, Setting.value)).all())
        acts = _acts(session, CONSENTED)
    newest = {act.detail["rater"]: act.id for act in acts}
    asked = kept.get(CONSENT_TEXT, "")
    for act in acts:
        rater, sha256 = act.detail["rater"], act.detail["sha256"]
        holds = sha256 == asked and newest[rater] == act.id
        yield (handles.get(rater, ""), act.at, sha256, act.detail["study_text"], holds)


def described_rows(engine: Engine) -> Iterator[tuple[Any, ...]]:
    """Yield every version of what clinicians were told, oldest first; columns `DESCRIPTIONS`."""
    for one in described(engine):
        told = (one.description.title, one.sha256, one.consent_sha256)
        yield (one.at, one.actor, *told, one.ratings, one.submissions, one.is_present)


DESCRIPTIONS = (
    *("at", "actor", "title", "sha256", "consent_sha256"),
    *("ratings_before", "submissions", "present"),
)
CONSENTS = ("rater", "at", "consent_sha256", "study_text", "holds")


def description_findings(session: Session) -> list[str]:
    """Return a sentence for each description or consent changed behind the record's back."""
    told, given = _acts(session, DESCRIBED), _acts(session, CONSENTED)
    texts = dict(session.exec(select(StudyText.sha256, StudyText.body)).all())
    kept = dict(session.exec(select(Setting.key, Setting.value)).all())
    agreed = {consent_key(act.detail["rater"]): act.detail["sha256"] for act in given}
    return [
        *_text_findings({act.detail["sha256"] for act in told}, texts),
        *_present_findings(told, kept),
        *_consent_findings(agreed, kept),
    ]


def _acts(session: Session, action: str) -> list[Event]:
    found = list(session.exec(select(Event).where(Event.action == action).order_by(col(Event.id))))
    session.expunge_all()
    return found


def _consent(key: int, handle: str, act: Event | None, asked: str, *, is_out: bool) -> Consent:
    if act is None:
        return Consent(key, handle, None, "", holds=False, is_out=is_out)
    sha256 = act.detail["sha256"]
    return Consent(key, handle, act.at, sha256, holds=sha256 == asked, is_out=is_out)


def _text_findings(promised: set[str], texts: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with the stored texts: each is known by its hash, and to an event."""
    for sha256 in sorted(promised - texts.keys()):
        yield f"study_text: the description {sha256[:12]} is gone"
    for sha256, body in sorted(texts.items()):
        if sha256 not in promised:
            yield f"study_text: no event vouches for the description {sha256[:12]}"
        elif hashlib.sha256(body.encode()).hexdigest() != sha256:
            yield f"study_text: the description {sha256[:12]} was changed"


def _present_findings(told: list[Event], kept: Mapping[str, str]) -> Iterator[str]:
    """Yield where another text is shown, or consent asked to another one, than the record says."""
    last = told[-1].detail if told else {"sha256": None, "consent_sha256": None}
    for key, name in ((STUDY_TEXT, "sha256"), (CONSENT_TEXT, "consent_sha256")):
        if kept.get(key) != last[name]:
            yield f"setting {key}: not that of the description last set"


def _consent_findings(agreed: Mapping[str, str], kept: Mapping[str, str]) -> Iterator[str]:
    """Yield whose consent is kept otherwise than it was given."""
    found = {key: value for key, value in kept.items() if key.startswith(CONSENT_OF)}
    for key in sorted({*agreed, *found}):
        if found.get(key) != agreed.get(key):
            how = "no event vouches for it" if key not in agreed else "not as it was given"
            yield f"setting {key}: {how}"
