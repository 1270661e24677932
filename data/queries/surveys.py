"""Surveys of a taxonomy: what a clinician is asked, and what all have answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, bindparam
from sqlmodel import Session, col, desc, select

from data.database import glance, reading
from data.person import asking
from data.schema import Rater, Role, Survey, SurveyAnswer, SurveyInvitation
from data.survey import Form, Item, form_of, items_of, read_answer
from data.taxonomy import Taxonomy

# Made once: each clinician who arrives asks it.
_OWN = (
    select(SurveyInvitation, Survey)
    .join(Survey)
    .where(SurveyInvitation.rater == bindparam("rater"))
    .order_by(desc(Survey.round))
    .limit(1)
)
_ASKED = _OWN.where(col(Survey.closed).is_(None), SurveyInvitation.revision == 0)
_BY_CODE = _OWN.where(SurveyInvitation.code == bindparam("code"))


@dataclass(frozen=True, slots=True)
class SurveyTask:
    """A survey that a clinician is asked, and what is stored of their entry.

    `is_open` tells whether answers are still taken.
    """

    code: str
    round: int
    kind: str
    taxonomy: Taxonomy
    form: Form
    draft: Mapping[str, Any]
    draft_seq: int
    submitted: bool
    is_open: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """A clinician's newest answer; `clinician` is their pseudonym or handle."""

    clinician: str
    placed: Mapping[str, str]
    comments: Mapping[str, str]
    comprehensiveness: int
    clarity: int
    comment: str
    specialty: str
    simulated: bool


@dataclass(frozen=True, slots=True)
class SurveyView:
    """A round, what was placed in it, and the answers.

    Attributes
    ----------
    invited, begun
        Clinicians who were asked, and who have entered something and submitted nothing.
    """

    round: int
    kind: str
    taxonomy: Taxonomy
    items: tuple[Item, ...]
    at: datetime
    closed: datetime | None
    invited: int
    begun: int
    answers: tuple[Answered, ...]


def survey_task(engine: Engine, rater: int, code: str | None = None) -> SurveyTask | None:
    """Return the newest open survey that a clinician has not answered, or the one of a code.

    None if there is none, or the code is not theirs.
    """
    asked = {"rater": rater} if code is None else {"rater": rater, "code": code}
    with glance(engine) as session:
        found = session.execute(_ASKED if code is None else _BY_CODE, asked).first()
        return None if found is None else _task(*found)


def _task(invitation: SurveyInvitation, survey: Survey) -> SurveyTask:
    taxonomy = Taxonomy.from_json(survey.taxonomy)
    return SurveyTask(
        invitation.code,
        survey.round,
        survey.items,
        taxonomy,
        form_of(taxonomy, survey.items, survey.seed, invitation.rater),
        invitation.draft,
        invitation.draft_seq,
        invitation.revision > 0,
        survey.closed is None,
    )


def surveys(engine: Engine) -> list[SurveyView]:
    """Return every round with its answers, the first first."""
    with reading(engine) as session:
        rounds = session.exec(select(Survey).order_by(col(Survey.round))).all()
        return [_view(session, survey) for survey in rounds]


def _view(session: Session, survey: Survey) -> SurveyView:
    """Return a round; of each clinician the newest answer."""
    query = (
        select(SurveyInvitation, Rater)
        .join(Rater)
        .where(SurveyInvitation.survey == survey.id)
        .order_by(col(Rater.handle))
    )
    asked = session.exec(query).all()
    keys = [invitation.id for invitation, _ in asked]
    rows = session.exec(
        select(SurveyAnswer)
        .where(col(SurveyAnswer.invitation).in_(keys))
        .order_by(col(SurveyAnswer.id))
    )
    newest = {row.invitation: read_answer(row.answer) for row in rows}
    answers = [
        _answered(rater, newest[invitation.id])
        for invitation, rater in asked
        if invitation.id in newest
    ]
    begun = sum(bool(one.draft) and one.id not in newest for one, _ in asked)
    taxonomy = Taxonomy.from_json(survey.taxonomy)
    items = items_of(taxonomy, survey.items)
    moments = survey.at, survey.closed
    return SurveyView(
        survey.round, survey.items, taxonomy, items, *moments, len(asked), begun, tuple(answers)
    )


def _answered(rater: Rater, answer: Mapping[str, Any]) -> Answered:
    about = rater.specialty or "", bool(rater.simulated)
    return Answered(
        rater.pseudonym or rater.handle, **answer, specialty=about[0], simulated=about[1]
    )


# Return every round, to those who steer.
surveys_for = asking(surveys, Role.RESEARCHER, Role.COORDINATOR)
