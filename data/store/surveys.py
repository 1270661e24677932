"""Surveys of a taxonomy: rounds are opened and closed, clinicians asked, and what they enter is kept."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlmodel import Session, col, desc, select

from data.card import Reply
from data.database import transaction
from data.errors import BadInput, Conflict, NotAllowed, Stale, Unknown
from data.person import asking
from data.safe_text import short
from data.schema import Account, Kind, Rater, Role, Survey, SurveyAnswer, SurveyInvitation, now
from data.store.audit import log, refuse_locked, sealed, write_rows
from data.store.form_state import FormState, next_number
from data.store.submissions import CHANGED
from data.survey import CODE, ITEMS, Form, form_of, items_of
from data.taxonomy import Taxonomy

OPENED, ASKED, CLOSED, ANSWERED = (
    "survey opened",
    "survey sent to clinicians",
    "survey closed",
    "survey answered",
)
SURVEY_CLOSED = "the survey is closed"


def open_survey(engine: Engine, taxonomy: Taxonomy, kind: str, seed: int, actor: str) -> int:
    """Open a round of a survey; return its number.

    Raises
    ------
    BadInput
        If the taxonomy has nothing to place.
    Conflict
        If another round is open.
    NotAllowed
        If the study is locked.
    """
    if kind not in ITEMS:
        raise BadInput(f"a survey places {' or '.join(ITEMS)}, not {kind!r}")
    items_of(taxonomy, kind)
    with transaction(engine) as session:
        refuse_locked(session)
        newest = session.exec(select(Survey).order_by(desc(Survey.round)).limit(1)).first()
        if newest is not None and newest.closed is None:
            raise Conflict(f"round {newest.round} of the survey is open; close it first")
        number = 1 if newest is None else newest.round + 1
        survey = Survey(
            round=number, taxonomy=taxonomy.to_json(), items=kind, seed=seed, opened_by=actor
        )
        session.add(survey)
        session.flush()
        detail = {"round": number, "items": kind, "taxonomy": taxonomy.sha256}
        log(session, actor, OPENED, detail, sealed(survey))
    return number


def ask_clinicians(engine: Engine, names: Sequence[str], actor: str) -> list[str]:
    """Ask clinicians, by name, in the round that is open; return those who were not asked before.

    Raises
    ------
    Conflict
        If no round is open.
    Unknown
        If nobody of a name is a clinician who can sign in.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        survey = _open(session)
        asked = set(
            session.exec(select(SurveyInvitation.rater).where(SurveyInvitation.survey == survey.id))
        )
        new = {name: key for name, key in _raters(session, names).items() if key not in asked}
        invitations = [
            SurveyInvitation(survey=survey.id, rater=key, code=f"{CODE}{secrets.token_urlsafe(12)}")
            for key in new.values()
        ]
        if invitations:
            session.add_all(invitations)
            session.flush()
            seals = [seal for one in invitations for seal in sealed(one)]
            detail = {"round": survey.round, "raters": sorted(new.values())}
            log(session, actor, ASKED, detail, seals)
    return list(new)


def _raters(session: Session, names: Sequence[str]) -> dict[str, int]:
    """Return the clinicians of some names; of none named, all who can sign in."""
    query = (
        select(Rater.handle, Rater.id)
        .join(Account)
        .where(Rater.kind == Kind.CLINICIAN, col(Account.ended).is_(None))
        .order_by(Rater.handle)
    )
    known = {name: key or 0 for name, key in session.exec(query)}
    for name in names:
        if name not in known:
            raise Unknown(
                f"clinician {short(name)!r}: cannot sign in to this study; there are "
                f"{', '.join(known) or 'none'}"
            )
    return {name: known[name] for name in names} if names else known


def close_survey(engine: Engine, actor: str) -> int:
    """Close the round that is open; return its number. No answer is taken from then on.

    Raises
    ------
    Conflict
        If no round is open.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        survey = _open(session)
        survey.closed = now()
        session.add(survey)
        log(session, actor, CLOSED, {"round": survey.round}, sealed(survey))
        return survey.round


def _open(session: Session) -> Survey:
    survey = session.exec(select(Survey).where(col(Survey.closed).is_(None))).first()
    if survey is None:
        raise Conflict("no round of the survey is open; open one first")
    return survey


@dataclass(frozen=True, slots=True)
class _Mine:
    """A clinician's own invitation, its row locked, with the form that they have."""

    invitation: SurveyInvitation
    survey: Survey
    form: Form


def _mine(session: Session, rater: int, code: str) -> _Mine:
    query = (
        select(SurveyInvitation, Survey)
        .join(Survey)
        .where(SurveyInvitation.code == code, SurveyInvitation.rater == rater)
        .with_for_update(of=SurveyInvitation)
    )
    found = session.exec(query).first()
    if found is None:
        raise NotAllowed("this survey is not yours")
    invitation, survey = found
    refuse_locked(session)
    if survey.closed is not None:
        raise Conflict(SURVEY_CLOSED)
    taxonomy = Taxonomy.from_json(survey.taxonomy)
    return _Mine(invitation, survey, form_of(taxonomy, survey.items, survey.seed, rater))


def save_survey_draft(engine: Engine, rater: int, code: str, entered: FormState) -> int:
    """Keep a draft, as of a rating; return the number of the state that is stored now.

    Raises
    ------
    Stale
        If another page has changed what is stored since this page knew it.
    NotAllowed, Conflict
        If the survey is not this clinician's or the study is locked; if it is closed.
    BadInput
        If what was entered cannot be.
    """
    with transaction(engine) as session:
        mine = _mine(session, rater, code)
        mine.form.refuse_impossible(entered.reply())
        invitation = mine.invitation
        if not entered.known(invitation):
            _keep(session, invitation, entered)
        return invitation.draft_seq


def submit_survey(engine: Engine, rater: int, code: str, reply: Reply, entered: FormState) -> bool:
    """Store a clinician's answer; False if it is the one that is stored already.

    A later one that differs is added, and counts.

    Raises
    ------
    BadInput
        If a card is not placed or a rating missing.
    Stale, NotAllowed, Conflict
        As `save_survey_draft`.
    """
    with transaction(engine) as session:
        mine = _mine(session, rater, code)
        invitation, answer = mine.invitation, mine.form.answer(reply)
        if not entered.known(invitation):
            _keep(session, invitation, entered)
        invitation.submitted_seq = invitation.draft_seq
        if _newest(session, invitation) == answer:
            session.add(invitation)
            return False
        row = {
            "invitation": invitation.id,
            "revision": invitation.revision,
            "answer": answer,
            "at": now(),
        }
        invitation.revision += 1
        session.add(invitation)
        detail = {"round": mine.survey.round, "written": write_rows(session, SurveyAnswer, [row])}
        log(session, f"rater {rater}", ANSWERED, detail, sealed(invitation))
    return True


def _keep(session: Session, invitation: SurveyInvitation, entered: FormState) -> None:
    """Keep a state of the form; its number is the next."""
    if not entered.follows(invitation):
        raise Stale(CHANGED)
    invitation.draft_seq = next_number(invitation.draft_seq)
    invitation.draft = dict(entered.draft)
    session.add(invitation)


def _newest(session: Session, invitation: SurveyInvitation) -> str | None:
    query = (
        select(SurveyAnswer.answer)
        .where(SurveyAnswer.invitation == invitation.id)
        .order_by(desc(SurveyAnswer.id))
        .limit(1)
    )
    return session.exec(query).first()


# A coordinator opens a round, asks clinicians, and closes it.
begin_survey = asking(open_survey, Role.COORDINATOR)
invite_to_survey = asking(ask_clinicians, Role.COORDINATOR)
end_survey = asking(close_survey, Role.COORDINATOR)
