"""Storing rubrics: by their hash, so that a changed one is another one."""

from sqlalchemy import Engine
from sqlmodel import Session

from data.database import transaction
from data.rubric import Rubric
from data.schema import RubricText
from data.store.audit import log, refuse_locked


def add_rubric(engine: Engine, rubric: Rubric) -> str:
    """Store a rubric in the study and return its SHA-256; one that is there already is kept."""
    with transaction(engine) as session:
        refuse_locked(session)
        return keep_rubric(session, rubric)


def keep_rubric(session: Session, rubric: Rubric) -> str:
    """Store a rubric inside the caller's transaction and return its SHA-256."""
    if session.get(RubricText, rubric.sha256) is None:
        row = RubricText(
            sha256=rubric.sha256, name=rubric.name, version=rubric.version, body=rubric.to_json()
        )
        session.add(row)
        session.flush()
        detail = {"name": rubric.name, "version": rubric.version, "sha256": rubric.sha256}
        log(session, "researcher", "rubric added", detail)
    return rubric.sha256
