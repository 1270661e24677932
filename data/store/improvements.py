"""Improvements of juries: the split fixed first, then what was chosen, then the one look at the test."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session

from data.database import transaction
from data.record import log, refuse_locked
from data.rubric import Rubric
from data.schema import Improvement, now
from data.study.rubrics import keep_rubric

BEGUN, CHOSEN, OPENED, ENDED = (
    "improvement begun",
    "rubric learned",
    "test part opened",
    "improvement ended",
)


def begin_improvement(
    engine: Engine, rubric: Rubric, asked: Mapping[str, Any], split: Mapping[str, Sequence[int]]
) -> int:
    """Store what is asked for and the split, which is never changed; return the primary key."""
    with transaction(engine) as session:
        refuse_locked(session)
        row = Improvement(
            rubric_sha256=keep_rubric(session, rubric),
            asked=dict(asked),
            split={part: list(keys) for part, keys in split.items()},
        )
        session.add(row)
        session.flush()
        _log(session, BEGUN, row)
        return row.id


def keep_learned(engine: Engine, improvement: int, rubric: Rubric) -> None:
    """Store the rubric that was chosen; nothing chosen later takes its place."""
    with transaction(engine) as session:
        refuse_locked(session)
        row = session.get_one(Improvement, improvement)
        row.learned = keep_rubric(session, rubric)
        _log(session, CHOSEN, row)


def open_test(engine: Engine, improvement: int) -> None:
    """Note that the test part is looked at, before it is."""
    with transaction(engine) as session:
        refuse_locked(session)
        row = session.get_one(Improvement, improvement)
        row.opened = row.opened or now()
        _log(session, OPENED, row)


def end_improvement(engine: Engine, improvement: int, result: Mapping[str, Any]) -> None:
    """Store the figures."""
    with transaction(engine) as session:
        refuse_locked(session)
        row = session.get_one(Improvement, improvement)
        row.result = dict(result)
        _log(session, ENDED, row)


def _log(session: Session, action: str, row: Improvement) -> None:
    session.add(row)
    session.flush()
    detail = {"improvement": row.id, "learned": row.learned}
    log(session, "researcher", action, detail)
