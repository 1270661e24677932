"""Who wrote which response: the only module that reads and writes it, but for what packs and verifies.

While a study is blind (`data/person.py`), nothing here tells one author from another. A file that is
brought in says who wrote what; it is held against itself alone, since an answer that depends on the
stored authors would tell one who guesses. What depends on who wrote a response is refused, or absent.
Two things are read all the same: the names of the study's models, which no response may name, and
how many there are.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlalchemy import Engine, delete, func
from sqlmodel import Session, col, select

from data.database import reading
from data.errors import NotAllowed
from data.importers.rows import ResponseRow, made_id
from data.person import is_blind_in
from data.record import PAST_RECORD, new_salt
from data.schema import Authorship, Instance, Response, Subgroup
from data.study.base import FOR_STUDY
from data.study.copies import WITHHELD

Pair = tuple[str, str]


def add_authors(session: Session, responses: Iterable[tuple[Response, str]]) -> None:
    """Store who wrote responses that are new."""
    session.add_all(
        Authorship(response=response.id or 0, model=model, salt=new_salt())
        for response, model in responses
    )
    session.flush()


def contradicted(session: Session, claimed: Sequence[tuple[Response, str]]) -> set[int]:
    """Return the keys of responses whose author is another than a file says; none of a blind study."""
    if not claimed or is_blind_in(session):
        return set()
    keys = [response.id for response, _ in claimed]
    query = select(Authorship.response, Authorship.model).where(col(Authorship.response).in_(keys))
    stored = dict(session.exec(query).all())
    return {response.id or 0 for response, model in claimed if stored[response.id or 0] != model}


def pairs_of_group(
    session: Session, name: str, claimed: set[Pair], last: int
) -> tuple[set[Pair], set[str]]:
    """Return the values of a group with their authors, and the values whose authors are not told.

    `claimed` are those of the import whose own come after `last`: all that a blind study may look at.
    """
    if not is_blind_in(session):
        query = (
            select(Subgroup.value, Authorship.model)
            .join(Authorship, col(Authorship.response) == col(Subgroup.response))
            .where(Subgroup.name == name)
            .distinct()
        )
        return set(session.exec(query)), set()
    values = select(Subgroup.value).where(Subgroup.name == name, col(Subgroup.id) <= last)
    return claimed, set(session.exec(values.distinct()))


def everybody(session: Session) -> list[tuple[str, str]]:
    """Return response_id and model of every response: for who has recorded that the blind is lifted."""
    rows = session.exec(
        select(Response.response_id, Authorship.model)
        .join(Authorship, col(Authorship.response) == col(Response.id))
        .order_by(col(Response.id))
    )
    return [(response, model) for response, model in rows]


def has_named_authors(session: Session) -> bool:
    """Tell whether a study knows any author: one that came without them knows none."""
    named = select(Authorship.response).where(Authorship.model != WITHHELD).limit(1)
    return session.exec(named).first() is not None


def forget_withheld(session: Session) -> None:
    """Take out what stood for authors in a study that came without them."""
    session.execute(delete(Authorship), execution_options={PAST_RECORD: True})


def responses_without(session: Session) -> int:
    """Return how many responses have no author."""
    lost = select(func.count()).where(col(Response.id).not_in(select(Authorship.response)))
    return session.exec(lost.select_from(Response)).one()


class Ids:
    """The ids that an import gives to rows whose file has none: by what was asked and answered.

    An id tells nothing of the author. Models that answer an instance with the same text are told
    apart in one import, by the order in which they come; over several imports such an answer
    counts as the one that is there, which `import` tells.
    """

    def __init__(self) -> None:
        self.authors: dict[str, list[str]] = {}

    def of(self, batch: Sequence[ResponseRow]) -> list[ResponseRow]:
        """Return rows with the ids that they have in the study, or are to have."""
        return [self._named(row) if row.id_made else row for row in batch]

    def _named(self, row: ResponseRow) -> ResponseRow:
        others = self.authors.setdefault(row.response_id, [])
        if row.model not in others:
            others.append(row.model)
        number = others.index(row.model)
        return replace(row, response_id=made_id(row.response_id, str(number))) if number else row


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
