"""Answers that screens kept, for as long as the study is what it was."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Engine, select

from data.database import reading
from data.schema.kept import ANSWERS


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """What was computed, as bytes, and when (UTC)."""

    body: bytes
    at: datetime


def kept_answer(engine: Engine, question: str, state: str) -> KeptAnswer | None:
    """Return the answer to a question that was kept for this very state of the study, or None.

    Parameters
    ----------
    question : digest of what is asked, and of the medjury that is to answer
    state : of `queries.study_state.study_state`
    """
    query = select(ANSWERS.c.body, ANSWERS.c.at).where(
        ANSWERS.c.question == question, ANSWERS.c.state == state
    )
    with reading(engine) as session:
        row = session.execute(query).first()
    if row is None:
        return None
    at: datetime = row.at if row.at.tzinfo else row.at.replace(tzinfo=UTC)  # SQLite has no zones
    return KeptAnswer(bytes(row.body), at.astimezone(UTC))
