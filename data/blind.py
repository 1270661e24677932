"""Whether a study is blind: then nothing that depends on who wrote a response reaches anybody.

The authors are read in two modules alone, `data/queries/authors.py` and `data/store/authors.py`,
and both ask here. docs/blinding.md says what that means for each command and screen.
"""

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading
from data.schema import Event

UNBLINDED, REOPENED = "unblinded", "reopened"
_LAST = (
    select(Event.action)
    .where(col(Event.action).in_((UNBLINDED, REOPENED)))
    .order_by(col(Event.id).desc())
    .limit(1)
)


def is_blind_in(session: Session) -> bool:
    """Tell whether the blind was never lifted, or not since the study was last reopened."""
    return session.exec(_LAST).first() != UNBLINDED


def is_blind(engine: Engine) -> bool:
    """Tell whether a study is blind: see `is_blind_in`."""
    with reading(engine) as session:
        return is_blind_in(session)
