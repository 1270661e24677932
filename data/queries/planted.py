"""Responses whose texts speak to whoever rates them: a ready verdict, or the prompt's own tags.

No author is read.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlmodel import col

from data.card import Card
from data.database import reading
from data.queries.base import FOR_STUDY, card, shown
from data.queries.study import BenchmarkView, benchmarks
from data.rubrics.injection import holds_verdict
from data.schema import Instance, Response

PAGE = 200


@dataclass(frozen=True, slots=True)
class Planted:
    """What stands in a response, or in what it is shown with, on the rubric of its benchmark.

    Attributes
    ----------
    verdict
        Whether the response gives points to criteria by name, as a verdict does.
    tags_broken_in
        Parts ("response", "context", "prompt", "reference", "checklist") that hold tags of the
        prompt itself, which are broken in what jurors are sent. Innocent or not, nobody can tell.
    """

    benchmark: str
    response_id: str
    verdict: bool
    tags_broken_in: tuple[str, ...]


def planted_texts(engine: Engine) -> list[Planted]:
    """Return the responses of the study that hold either; none of training."""
    found = (
        Planted(one.name, each.code, *_held(each, one))
        for one in benchmarks(engine)
        for each in _cards(engine, one)
    )
    return [one for one in found if one.verdict or one.tags_broken_in]


def _held(shown_card: Card, benchmark: BenchmarkView) -> tuple[bool, tuple[str, ...]]:
    """Return whether a card's response holds a verdict, and which parts hold tags of the prompt."""
    rubric = benchmark.rubric
    return holds_verdict(shown_card.response, rubric.criteria), rubric.forged(shown_card)


def _cards(engine: Engine, benchmark: BenchmarkView) -> Iterator[Card]:
    """Yield the responses of a benchmark as jurors get them, by their names, page by page."""
    last = 0
    query = shown(Response.response_id, Response.id).where(
        Instance.benchmark == benchmark.name, FOR_STUDY
    )
    with reading(engine) as session:
        while page := list(
            session.exec(
                query.where(col(Response.id) > last).order_by(col(Response.id)).limit(PAGE)
            )
        ):
            for *texts, name, _ in page:
                yield card(name, texts, benchmark.rubric)
            last = page[-1][-1]
