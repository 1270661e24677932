"""What many questions to a study share: columns, names, settings and cards.

The table of authors is not read here.
"""

from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import ColumnElement, Engine, and_, case, exists, func, or_, tuple_
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select
from sqlmodel.sql.expression import Select

from data.card import Card
from data.database import reading
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Expert,
    Instance,
    Pair,
    Rating,
    Remark,
    Response,
    Setting,
    Withdrawal,
)

Columns = Select[*tuple[Any, ...]]


def columns_of(*columns: Any) -> Columns:
    """Select columns of several tables; more than sqlmodel's `select` has types for."""
    return Select(*columns)


def _withdrawn(column: Any) -> Any:
    return select(column).where(column.is_not(None))


WITHDRAWN_RESPONSES = _withdrawn(col(Withdrawal.response))
WITHDRAWN_RATERS = _withdrawn(col(Withdrawal.rater))
WITHDRAWN_SCORES = _withdrawn(col(Withdrawal.score))


def newest(rating: Any) -> ColumnElement[bool]:
    """Return that no newer rating by the same rater for the same thing has taken a rating's place."""
    newer: Any = aliased(Rating)
    same = (
        getattr(newer, name) == getattr(rating, name)
        for name in ("response", "rater", "pass_", "replicate", "criterion")
    )
    on = newer.rubric_sha256.is_not_distinct_from(rating.rubric_sha256)
    return ~exists().where(*same, on, newer.id > rating.id)


# What holds for a response that is rated: neither for training nor withdrawn, nor there for pairs alone.
# A query that asks it selects from Response.
FOR_STUDY = and_(
    col(Response.id).not_in(select(Expert.response)),
    col(Response.id).not_in(WITHDRAWN_RESPONSES),
    *(
        col(Response.id).not_in(select(side).where(Pair.apart))
        for side in (Pair.first, Pair.second)
    ),
)
# What holds for a response that is no pair.
BY_ITSELF = col(Response.id).not_in(select(Pair.response))
# What clinicians say of a response: no answer to it.
BY_CLINICIAN = col(Remark.about).is_(None)
_SCORE: Any = aliased(Rating)
_ITS_SCORES = (
    exists()
    .where(_SCORE.response == Assignment.response, _SCORE.rater == Assignment.rater)
    .where(_SCORE.pass_ == Assignment.pass_, _SCORE.id.in_(WITHDRAWN_SCORES), newest(_SCORE))
    .correlate(Assignment)
)
# The number of an assignment's newest submission, as submissions, remarks and spans have it; NULL,
# which no number is equal to, where it is withdrawn.
NEWEST_SUBMISSION = case(
    (or_(col(Assignment.rater).in_(WITHDRAWN_RATERS), _ITS_SCORES), None),
    else_=col(Assignment.revision) - 1,
)


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


def _in_pair(side: Any) -> Any:
    """Select what is shown of one response of a pair; NULL of what is no pair."""
    own: Any = aliased(Response)
    text = select(func.coalesce(own.shown, own.text)).join(Pair, col(side) == own.id)
    return text.where(Pair.response == Response.id).correlate(Response).scalar_subquery()


FIRST_TEXT, SECOND_TEXT = _in_pair(Pair.first), _in_pair(Pair.second)


def shown(*columns: Any) -> Columns:
    """Select what a card shows of a response, and what else is asked for; never its author."""
    text = func.coalesce(FIRST_TEXT, Response.shown, Response.text)
    texts = (Instance.context, Instance.prompt, text, Instance.reference, Instance.checklist)
    return columns_of(*texts, SECOND_TEXT, *columns).select_from(Response).join(Instance)


def card(code: str, texts: list[Any], rubric: Rubric, shown_first: str = "") -> Card:
    """Return a card, with the reference only where the rubric's gold policy shows one."""
    context, prompt, response, reference, checklist, second = texts
    if rubric.gold == "never":
        reference = None
    made = Card(code, context, prompt, response, reference, checklist, second)
    return made.turned() if shown_first == "second" else made
