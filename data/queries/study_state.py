"""A digest of all that figures rest on: any write moves it, whoever makes it and however.

An answer that was kept may be shown only while this is what it was. Authors are not read here.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

from sqlalchemy import BigInteger, Engine, Integer, cast, func
from sqlmodel import Session, col, select

from data.database import reading
from data.queries.base import Columns, columns_of
from data.queries.rating_columns import BY_CLINICIANS
from data.queries.study import LOOKING
from data.record import TRAINING
from data.schema import (
    Benchmark,
    Event,
    Expert,
    Instance,
    Rater,
    Rating,
    Response,
    Review,
    RubricText,
    Setting,
    Subgroup,
    Superseded,
    Table,
)
from data.store.access import SESSION_KEY

BESIDE = (Event.__tablename__, Review.__tablename__)  # acts have their own row; tags are no figure
MIXED = 1009  # a prime: two rows that change places are another sum
THOUSANDTHS = 1000
# Small tables, whole: they can be changed in place.
WHOLE: tuple[tuple[Any, ...], ...] = (
    (Benchmark.name, Benchmark.category, Benchmark.subcategory, Benchmark.rubric_sha256),
    (RubricText.sha256, RubricText.name, RubricText.version, RubricText.body),
    (Rater.id, Rater.kind, Rater.handle, Rater.family, Rater.pseudonym, Rater.specialty),
    (Rater.id, Rater.simulated, Rater.profile),
    (Expert.id, Expert.response),
)


def study_state(engine: Engine) -> str:
    """Return a SHA-256 that is another one whenever what figures rest on is.

    It goes over: the newest row of every table that has numbers; the last act, but for those by
    which somebody only came or looked; benchmarks, rubrics, raters, settings, subgroups and training
    responses, whole; and every rating of a response that a clinician has rated. Of ratings that
    jurors alone gave, of which figures use only how many there are, it takes the newest, and on
    SQLite the number. So it sees all that medjury writes, and what is changed behind its back in
    scores; in texts, in calls and among older events only `verify` finds that.

    It costs a pass over the ratings of responses that clinicians rated: 70 ms for 13,000 of them
    among a million.
    """
    with reading(engine) as session:
        return state_in(session)


def state_in(session: Session) -> str:
    """Return `study_state` of the study that a session sees."""
    digest = hashlib.sha256()
    for part in _parts(session):
        digest.update(repr(part).encode())
    return digest.hexdigest()


def _parts(session: Session) -> Iterator[Any]:
    """Yield values that stand for the study, in an order that is always the same."""
    numbered = [
        table
        for table in Table.metadata.sorted_tables
        if table.name not in BESIDE and "id" in table.c and isinstance(table.c.id.type, Integer)
    ]
    newest = [select(func.max(table.c.id)).scalar_subquery() for table in numbered]
    newest.append(select(func.sum(Superseded.rating)).scalar_subquery())
    counted = [Superseded, Subgroup, Response, Instance]
    if session.get_bind().dialect.name == "sqlite":  # PostgreSQL would read the whole table
        counted.append(Rating)
    newest += [select(func.count()).select_from(table).scalar_subquery() for table in counted]
    yield tuple(session.execute(select(*newest)).one())
    acts = select(Event.id, Event.sha256).where(col(Event.action).not_in(LOOKING))
    yield session.exec(acts.order_by(col(Event.id).desc()).limit(1)).first()
    for columns in WHOLE:
        yield sorted(map(tuple, session.execute(columns_of(*columns))))
    settings = select(Setting.key, Setting.value).where(
        col(Setting.key).not_like(f"{TRAINING}%"), Setting.key != SESSION_KEY
    )
    yield sorted(map(tuple, session.exec(settings)))
    for query in (_scores(), _responses(), _groups()):
        yield sorted(map(repr, session.execute(query)))


def _scores() -> Columns:
    """Select sums, in whole numbers, over the ratings of responses that clinicians rated."""
    mixed = cast(col(Rating.id) % MIXED + 1, BigInteger)
    score = cast(func.round(col(Rating.score) * THOUSANDTHS), BigInteger)
    told = (Rating.rater, Rating.criterion, Rating.rubric_sha256, Rating.pass_, Rating.replicate)
    grouped = (*told, Instance.benchmark)
    sums = (
        func.count(),
        func.sum(score),
        func.sum(score * mixed),
        func.sum(mixed * Rating.response),
        func.sum(mixed * Response.instance),
    )
    query = columns_of(*grouped, *sums).select_from(Rating).join(Response).join(Instance)
    return query.where(col(Rating.response).in_(BY_CLINICIANS)).group_by(*map(col, grouped))


def _responses() -> Columns:
    """Select the responses that clinicians rated, with their instances."""
    names = (Response.id, Response.response_id, Instance.id, Instance.instance_id)
    query = columns_of(*names).select_from(Response).join(Instance)
    return query.where(col(Response.id).in_(BY_CLINICIANS))


def _groups() -> Columns:
    """Select the subgroups with how many responses are in each, and which."""
    mixed = cast(col(Subgroup.response) % MIXED + 1, BigInteger)
    sums = (func.count(), func.sum(Subgroup.response), func.sum(mixed * Subgroup.response))
    return columns_of(Subgroup.name, Subgroup.value, *sums).group_by(
        col(Subgroup.name), col(Subgroup.value)
    )
