"""What a clinician is at. The author's table is not read here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import col, select

from data.card import Card
from data.database import reading
from data.queries.cards import card, shown
from data.rubric import Rubric
from data.schema import Assignment, Benchmark, Instance, Response, RubricText, State


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of a clinician's assignments are done."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Task:
    """The response a clinician is at: its card, rubric, draft so far and the draft's number."""

    card: Card
    rubric: Rubric
    draft: Mapping[str, Any]
    draft_seq: int
    seconds_active: float


def progress(engine: Engine, rater: int) -> Progress:
    """Return how far a clinician has come."""
    done = func.count(col(Assignment.done_at))
    with reading(engine) as session:
        row = session.exec(
            select(done, func.count(col(Assignment.id))).where(Assignment.rater == rater)
        ).one()
    return Progress(*row)


def next_task(engine: Engine, rater: int) -> Task | None:
    """Return the first open response in a clinician's own order, or None when all is done."""
    query = (
        shown(
            Assignment.code,
            RubricText.body,
            Assignment.draft,
            Assignment.draft_seq,
            Assignment.seconds_active,
        )
        .join(Assignment, col(Assignment.response) == col(Response.id))
        .join(Benchmark, col(Benchmark.name) == col(Instance.benchmark))
        .join(RubricText, col(RubricText.sha256) == col(Benchmark.rubric_sha256))
        .where(col(Assignment.rater) == rater, col(Assignment.state) == State.OPEN)
        .order_by(col(Assignment.position))
        .limit(1)
    )
    with reading(engine) as session:
        row = session.execute(query).first()
    if row is None:
        return None
    *texts, code, body, draft, seq, seconds = row
    rubric = Rubric.from_json(body)
    return Task(card(code, texts, rubric), rubric, draft, seq, seconds)
