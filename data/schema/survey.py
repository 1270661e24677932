"""The tables of surveys: clinicians place parts of a taxonomy, and how far each is."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Column, UniqueConstraint
from sqlmodel import Field

from data.schema.study import Table, now


class Survey(Table, table=True):
    """A round in which clinicians place the parts or tasks of a taxonomy into its categories.

    `taxonomy` is the taxonomy as it was when the round was opened, in the form of
    `data.taxonomy.Taxonomy.to_json`; `items` what is placed, "subcategories" or "tasks". `seed` with the
    clinician's key gives the order of the cards. `opened_by` is who opened it, as the record's events
    name people; `closed` None while answers are taken.
    """

    id: int = Field(default=None, primary_key=True)  # None until it is stored
    round: int = Field(unique=True)
    taxonomy: str
    items: str
    seed: int
    opened_by: str
    at: datetime = Field(default_factory=now)
    closed: datetime | None = None


class SurveyInvitation(Table, table=True):
    """A clinician who is asked in a round, and what they have entered so far.

    `code` is random: it is the only name of the survey that reaches a browser. `revision` counts
    submissions, `submitted_seq` is the draft's number at the last.
    """

    __tablename__ = "survey_invitation"
    __table_args__ = (UniqueConstraint("survey", "rater"),)
    id: int = Field(default=None, primary_key=True)  # None until it is stored
    survey: int = Field(foreign_key="survey.id", index=True)
    rater: int = Field(foreign_key="rater.id", index=True)
    code: str = Field(unique=True)
    at: datetime = Field(default_factory=now)
    draft: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    draft_seq: int = 0
    revision: int = 0
    submitted_seq: int = 0


class SurveyAnswer(Table, table=True):
    """What a clinician submitted in a round. Append-only: the newest of an invitation counts.

    `answer` is JSON: `placed` (item -> category), `comments` (item -> text), `comprehensiveness` and
    `clarity` from 1 to 5, and `comment` on the whole.
    """

    __tablename__ = "survey_answer"
    id: int | None = Field(default=None, primary_key=True)
    invitation: int = Field(foreign_key="survey_invitation.id", index=True)
    revision: int
    answer: str
    at: datetime = Field(default_factory=now)
    batch: str | None = Field(default=None, index=True)
