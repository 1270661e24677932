"""The table of what people answer for a study's dossier."""

from datetime import datetime

from sqlmodel import AutoString, Field

from data.guidelines import AnswerKind
from data.schema.study import Table, now


class DossierAnswer(Table, table=True):
    """An answer to a question of a reporting guideline that only people can answer.

    Append-only: of the answers to a question the newest counts. `question` is a name of
    `data/guidelines/questions.toml`; `author` is who gave it, as the record's events name people.
    """

    __tablename__ = "dossier_answer"
    id: int | None = Field(default=None, primary_key=True)
    question: str = Field(index=True)
    kind: AnswerKind = Field(sa_type=AutoString)
    text: str = ""
    author: str
    at: datetime = Field(default_factory=now)
    batch: str | None = Field(default=None, index=True)
