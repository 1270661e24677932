"""Reading what clinicians are to rate in REDCap: texts under random codes, never an author."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Engine, select
from sqlmodel import col

from data.card import Card
from data.database import reading
from data.importers.redcap import Reading
from data.queries.cards import card, shown
from data.queries.study import benchmarks
from data.rubric import Rubric
from data.schema import Assignment, Instance, Rater, Response, State


@dataclass(frozen=True, slots=True)
class ToRate:
    """One reading that a clinician has not done yet."""

    rater: str
    rubric: Rubric
    card: Card


def to_rate(engine: Engine) -> Iterator[ToRate]:
    """Yield every open assignment, each clinician's in their order; hidden repeats too."""
    rubrics = {one.name: one.rubric for one in benchmarks(engine)}
    query = (
        shown(Assignment.code, Rater.handle, Instance.benchmark)
        .join(Assignment, col(Assignment.response) == col(Response.id))
        .join(Rater, col(Rater.id) == col(Assignment.rater))
        .where(col(Assignment.state) == State.OPEN)
        .order_by(col(Rater.handle), col(Assignment.position), col(Assignment.id))
    )
    with reading(engine) as session:
        for *texts, code, rater, benchmark in session.execute(query):
            rubric = rubrics[benchmark]
            yield ToRate(rater, rubric, card(code, texts, rubric))


def readings(engine: Engine) -> dict[str, Reading]:
    """Return, for every assignment's code, whose reading of what it is."""
    query = (
        select(
            col(Assignment.code),
            col(Response.response_id),
            col(Rater.handle),
            col(Assignment.pass_),
        )
        .join(Response, col(Response.id) == col(Assignment.response))
        .join(Rater, col(Rater.id) == col(Assignment.rater))
    )
    with reading(engine) as session:
        return {code: Reading(*rest) for code, *rest in session.execute(query)}
