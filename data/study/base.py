"""What many questions to a study share: columns, names, settings and cards.

The table of authors is not read here.
"""

from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import Engine, func, tuple_
from sqlmodel import Session, col, select
from sqlmodel.sql.expression import Select

from data.card import Card
from data.database import reading
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Expert,
    Instance,
    Remark,
    Response,
    Setting,
)

Columns = Select[*tuple[Any, ...]]


def columns_of(*columns: Any) -> Columns:
    """Select columns of several tables; more than sqlmodel's `select` has types for."""
    return Select(*columns)


# What holds for a response that is not for training; a query that asks it selects from Response.
FOR_STUDY = col(Response.id).not_in(select(Expert.response))
# What clinicians say of a response: no answer to it.
BY_CLINICIAN = col(Remark.about).is_(None)
# The number of an assignment's newest submission, as submissions, remarks and spans have it.
NEWEST_SUBMISSION = col(Assignment.revision) - 1


def in_pages(engine: Engine, query: Columns, *keys: Any, size: int) -> Iterator[Any]:
    """Yield the rows of a query in the order of `keys`, which are its last columns.

    Read `size` at a time, so that a run of hours holds no transaction open.
    """
    page = query
    while True:
        with reading(engine) as session:
            rows = session.execute(page.order_by(*keys).limit(size)).all()
        if not rows:
            return
        yield from rows
        page = query.where(tuple_(*keys) > tuple_(*rows[-1][-len(keys) :]))


def response_names(
    session: Session, among: Collection[int] | None = None
) -> dict[int, tuple[str, str]]:
    """Return the key of every response, or of some, -> its response_id and its benchmark."""
    query = select(Response.id, Response.response_id, Instance.benchmark).join(Instance)
    if among is not None:
        query = query.where(col(Response.id).in_(among))
    return {key or 0: (name, benchmark) for key, name, benchmark in session.exec(query)}


def setting_values(session: Session) -> dict[str, str]:
    """Return the value of every setting that is stored, by its key."""
    return dict(session.exec(select(Setting.key, Setting.value)).all())


def shown(*columns: Any) -> Columns:
    """Select what a card shows of a response, and what else is asked for; never its author."""
    text = func.coalesce(Response.shown, Response.text)
    texts = (Instance.context, Instance.prompt, text, Instance.reference, Instance.checklist)
    return columns_of(*texts, *columns).select_from(Response).join(Instance)


def card(code: str, texts: list[Any], rubric: Rubric) -> Card:
    """Return a card, with the reference only where the rubric's gold policy shows one."""
    context, prompt, response, reference, checklist = texts
    if rubric.gold == "never":
        reference = None
    return Card(code, context, prompt, response, reference, checklist)
