"""Storing rubrics: by their hash, so that a changed one is another one."""

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import transaction
from data.rubric import Rubric
from data.schema import Benchmark, Expert, Instance, Rating, Response, RubricText
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


def move_to_rubric(session: Session, name: str, rubric: Rubric) -> bool:
    """Put a benchmark on another rubric unless somebody rated on its present one.

    Returns False where ratings by clinicians or jurors, or experts' scores, stand on it.
    """
    benchmark = session.get_one(Benchmark, name)
    if benchmark.rubric_sha256 == rubric.sha256:
        return True
    rated = (
        select(Rating.id)
        .join(Response, col(Response.id) == col(Rating.response))
        .join(Instance, col(Instance.id) == col(Response.instance))
        .where(Instance.benchmark == name, Rating.rubric_sha256 == benchmark.rubric_sha256)
        .limit(1)
    )
    drilled = (
        select(Expert.id)
        .join(Response, col(Response.id) == col(Expert.response))
        .join(Instance, col(Instance.id) == col(Response.instance))
        .where(Instance.benchmark == name)
        .limit(1)
    )
    if any(session.exec(query).first() is not None for query in (rated, drilled)):
        return False
    benchmark.rubric_sha256 = keep_rubric(session, rubric)
    session.add(benchmark)
    session.flush()
    log(session, "researcher", "rubric set", {"benchmark": name, "rubric": rubric.name})
    return True
