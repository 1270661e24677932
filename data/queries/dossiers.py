"""What people answered to reporting guidelines, the newest answer to each question."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.database import reading
from data.guidelines import Answer
from data.schema import AnswerKind, Attempt, DossierAnswer, Status


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer that counts, with who gave it, as the record's events name people, and when."""

    question: str
    answer: Answer
    author: str
    at: datetime


@dataclass(frozen=True, slots=True)
class CallDates:
    """When the first and the last call to a juror was answered."""

    first: datetime
    last: datetime


def juror_calls(engine: Engine) -> CallDates | None:
    """Return when jurors were asked, None where none was asked here."""
    query = select(func.min(Attempt.at), func.max(Attempt.at)).where(Attempt.status == Status.OK)
    with reading(engine) as session:
        first, last = session.exec(query).one()
    return CallDates(first, last) if first and last else None


def dossier_answers(engine: Engine) -> dict[str, KeptAnswer]:
    """Return the answers that stand, by the name of their question."""
    with reading(engine) as session:
        return answers_in(session)


def answers_in(session: Session) -> dict[str, KeptAnswer]:
    """Return the answers that stand, within a transaction."""
    newest = select(func.max(DossierAnswer.id)).group_by(col(DossierAnswer.question))
    rows = session.exec(
        select(DossierAnswer)
        .where(col(DossierAnswer.id).in_(newest), DossierAnswer.kind != AnswerKind.WITHDRAWN)
        .order_by(col(DossierAnswer.id))
    ).all()
    return {
        row.question: KeptAnswer(
            row.question, Answer(row.text, AnswerKind(row.kind)), row.author, row.at
        )
        for row in rows
    }
