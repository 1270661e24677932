"""What jurors have still to rate. The author's table is not read here."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import col, select

from data.card import Card
from data.database import reading
from data.queries.cards import card, shown
from data.rubric import Rubric
from data.schema import Expert, Instance, Rating, Response

PAGE = 200


@dataclass(frozen=True, slots=True)
class JurorCard:
    """A response (primary key) as a juror gets it, with the rubric of its benchmark."""

    response: int
    benchmark: str
    card: Card


def juror_cards(engine: Engine, benchmark: str, rubric: Rubric) -> Iterator[JurorCard]:
    """Yield a benchmark's responses as jurors get them, in a fixed order; not those of training.

    Read page by page, so that a run of hours holds no transaction open.
    """
    last = 0
    while page := _page(engine, benchmark, last):
        for *texts, key in page:
            yield JurorCard(key, benchmark, card(str(key), texts, rubric))
        last = page[-1][-1]


def _page(engine: Engine, benchmark: str, after: int) -> list[list[Any]]:
    """Return the next responses of a benchmark, by primary key."""
    query = (
        shown(Response.id)
        .where(
            col(Instance.benchmark) == benchmark,
            col(Response.id) > after,
            col(Response.id).not_in(select(Expert.response)),
        )
        .order_by(col(Response.id))
        .limit(PAGE)
    )
    with reading(engine) as session:
        return [list(row) for row in session.execute(query)]


def complete_ratings(engine: Engine, rater: int, rubric: Rubric) -> set[tuple[int, int]]:
    """Return (response, replicate) wherever a rater has scored every criterion of a rubric."""
    query = (
        select(Rating.response, Rating.replicate)
        .where(Rating.rater == rater, Rating.rubric_sha256 == rubric.sha256, Rating.pass_ == 0)
        .group_by(col(Rating.response), col(Rating.replicate))
        .having(func.count(func.distinct(Rating.criterion)) == len(rubric.criteria))
    )
    with reading(engine) as session:
        return {(response, replicate) for response, replicate in session.exec(query)}
