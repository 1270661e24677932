"""Storing rubrics by their hash, so that a changed one is another, and rating on them."""

from sqlalchemy import Engine, bindparam
from sqlmodel import Session, select

from data.card import Reply
from data.database import transaction
from data.errors import BadInput
from data.rubric import Rubric
from data.schema import Benchmark, Expert, Instance, Rating, Response, RubricText
from data.store.audit import log, refuse_locked
from data.store.seals import sealed

# Made once: each submission asks it, and making it costs more than asking it.
_RUBRIC = (
    select(RubricText.body)
    .select_from(Response)
    .join(Instance)
    .join(Benchmark)
    .join(RubricText)
    .where(Response.id == bindparam("response"))
)


def rubric_of(session: Session, response: int) -> Rubric:
    """Return the rubric a response is rated on."""
    return Rubric.from_json(session.exec(_RUBRIC, params={"response": response}).one())


def whole_scores(rubric: Rubric, reply: Reply, lacking: str) -> dict[str, float]:
    """Return a score for every criterion, or refuse the reply in words that begin with `lacking`."""
    missing = [name for name in rubric.criteria if name not in reply.scores]
    if missing:
        raise BadInput(lacking + ", ".join(missing))
    return {
        name: rubric.score(name, value, "you", "this response")
        for name, value in reply.scores.items()
    }


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
        log(session, "researcher", "rubric added", detail, sealed(row))
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
        .join(Response)
        .join(Instance)
        .where(Instance.benchmark == name, Rating.rubric_sha256 == benchmark.rubric_sha256)
        .limit(1)
    )
    drilled = (
        select(Expert.id).join(Response).join(Instance).where(Instance.benchmark == name).limit(1)
    )
    if any(session.exec(query).first() is not None for query in (rated, drilled)):
        return False
    benchmark.rubric_sha256 = keep_rubric(session, rubric)
    session.add(benchmark)
    session.flush()
    detail = {"benchmark": name, "rubric": rubric.name}
    log(session, "researcher", "rubric set", detail, sealed(benchmark))
    return True
