"""Keeping the answers that screens show, so that a server that starts anew need not compute them.

They are figures and names of raters: no text of a study and no author. No act of anybody, so they leave
no event, and a locked study takes them; nothing that copies or checks a study reads them.
"""

from datetime import UTC, datetime

from sqlalchemy import Engine, delete, insert, select

from data.database import shared_transaction
from data.schema.kept import ANSWERS

MOST = 24
MOST_BYTES = 200_000  # of one answer


def keep_answer(engine: Engine, question: str, state: str, body: bytes, at: datetime) -> bool:
    """Keep an answer in place of all of other states; return whether it was small enough.

    Of one state the newest `MOST` stay, so that the table never outgrows 5 MB.

    Raises
    ------
    NoStudy
        If the database cannot be written to.
    """
    if len(body) > MOST_BYTES:
        return False
    newest = select(ANSWERS.c.question).order_by(ANSWERS.c.at.desc(), ANSWERS.c.question)
    row = {"question": question, "state": state, "body": body, "at": at.astimezone(UTC)}
    with shared_transaction(engine) as session:
        session.execute(
            delete(ANSWERS).where((ANSWERS.c.state != state) | (ANSWERS.c.question == question))
        )
        session.execute(delete(ANSWERS).where(ANSWERS.c.question.not_in(newest.limit(MOST - 1))))
        session.execute(insert(ANSWERS), [row])
    return True
