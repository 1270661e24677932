"""The texts that tell clinicians of the study, who consented, and whether either was tampered with."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.database import reading
from data.description import CONSENT_TEXT, Description
from data.queries.base import columns_of, setting_values
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
        events = _events(session, DESCRIBED)
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
        events = {event.detail["rater"]: event for event in _events(session, CONSENTED)}
        consent_text = session.get(Setting, CONSENT_TEXT)
        rows = session.exec(query).all()
    if consent_text is None or not consent_text.value:
        return []
    return [
        _consent(key, handle, events.get(key), consent_text.value, is_out=ended is not None)
        for key, handle, ended in rows
        if ended is None or key in events
    ]


def consent_rows(engine: Engine) -> Iterator[tuple[Any, ...]]:
    """Yield every consent that was given, oldest first; columns `CONSENTS`."""
    with reading(engine) as session:
        handles = dict(session.exec(select(Rater.id, Rater.handle)).all())
        stored = setting_values(session)
        events = _events(session, CONSENTED)
    newest = {event.detail["rater"]: event.id for event in events}
    present_sha256 = stored.get(CONSENT_TEXT, "")
    for event in events:
        rater, sha256 = event.detail["rater"], event.detail["sha256"]
        holds = sha256 == present_sha256 and newest[rater] == event.id
        yield (handles.get(rater, ""), event.at, sha256, event.detail["study_text"], holds)


def described_rows(engine: Engine) -> Iterator[tuple[Any, ...]]:
    """Yield every version of what clinicians were told, oldest first; columns `DESCRIPTIONS`."""
    for version in description_versions(engine):
        texts = (version.description.title, version.sha256, version.consent_sha256)
        counts = (version.ratings, version.submissions)
        yield (version.at, version.actor, *texts, *counts, version.is_present)


DESCRIPTIONS = (
    *("at", "actor", "title", "sha256", "consent_sha256"),
    *("ratings_before", "submissions", "present"),
)
CONSENTS = ("rater", "at", "consent_sha256", "study_text", "holds")


def _events(session: Session, action: str) -> list[Event]:
    events = list(session.exec(select(Event).where(Event.action == action).order_by(col(Event.id))))
    session.expunge_all()
    return events


def _consent(
    key: int, handle: str, event: Event | None, present_sha256: str, *, is_out: bool
) -> Consent:
    if event is None:
        return Consent(key, handle, None, "", holds=False, is_out=is_out)
    sha256 = event.detail["sha256"]
    return Consent(key, handle, event.at, sha256, holds=sha256 == present_sha256, is_out=is_out)
