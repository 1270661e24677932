"""Who wrote which response: what is read of it, for what, and what of it a blind study tells.

While a study is blind (`data/person.py`), nothing here tells one author from another: what depends
on who wrote a response is refused, or absent. Two things are read all the same, and neither says
which response is whose: the names of the study's models, which no response may name, and how many
there are. No other module that reads a study knows the table of authors but those that check it
against the record or pack it, which tests/test_authors_read.py lists.
"""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.database import reading
from data.errors import NotAllowed
from data.person import is_blind_in
from data.queries.base import FOR_STUDY
from data.schema import Authorship, Instance, Response

BLIND = (
    "the study is blind: `medjury study unblind --reason ...` says who wrote what, and is recorded"
)


def authors(engine: Engine) -> dict[str, str]:
    """Return response_id -> model of all but training responses.

    Raises
    ------
    NotAllowed
        If the study is blind.
    """
    query = (
        select(Response.response_id, Authorship.model)
        .join(Authorship)
        .where(FOR_STUDY)
        .order_by(Response.response_id)
    )
    with reading(engine) as session:
        if is_blind_in(session):
            raise NotAllowed(BLIND)
        return dict(session.exec(query).all())


def authors_unless_blind(session: Session) -> dict[int, str] | None:
    """Return the key of each response -> its model; None while the study is blind."""
    if is_blind_in(session):
        return None
    return dict(session.exec(select(Authorship.response, Authorship.model)).all())


def responses_by_author(engine: Engine, benchmarks: Sequence[str] | None) -> Counter[str] | None:
    """Return how many responses each model wrote, training left out; None while the study is blind.

    `benchmarks` are those that count; None means all.
    """
    query = (
        select(Authorship.model, func.count())
        .join(Response)
        .join(Instance)
        .where(FOR_STUDY)
        .group_by(col(Authorship.model))
    )
    if benchmarks is not None:
        query = query.where(col(Instance.benchmark).in_(benchmarks))
    with reading(engine) as session:
        return None if is_blind_in(session) else Counter(dict(session.exec(query).all()))


def author_names(engine: Engine) -> list[str]:
    """Return the study's models, which a response must not name; not which wrote what."""
    with reading(engine) as session:
        return list(session.exec(select(Authorship.model).distinct().order_by(Authorship.model)))


def number_of_authors(session: Session) -> int:
    """Return how many models wrote the study's responses."""
    return session.exec(select(func.count(func.distinct(col(Authorship.model))))).one()
