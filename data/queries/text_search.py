"""Searching responses for what raters must not read: names of models, and planted verdicts.

Nobody is told which model wrote which response.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.card import Card
from data.database import reading
from data.person import Person, asking, only
from data.queries.authors import author_names
from data.queries.base import FOR_STUDY, card, shown
from data.queries.record import acts
from data.queries.study import BenchmarkView, benchmarks
from data.rubrics.injection import holds_verdict
from data.schema import (
    Instance,
    Mask,
    Response,
    Role,
    Setting,
)
from data.store.masks import LEFT, SEARCHED, LeftNames

# Return the study's models, which no response may name.
names_to_mask = asking(author_names, Role.COORDINATOR)

PAGE = 400
PLANTED_PAGE = 200
TextPlace = tuple[int, int, str]  # start and end in characters, and the text that is shown there


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
    searched = (
        Planted(benchmark.name, response_card.code, *_forged_parts(response_card, benchmark))
        for benchmark in benchmarks(engine)
        for response_card in _shown_cards(engine, benchmark)
    )
    return [response for response in searched if response.verdict or response.tags_broken_in]


def _forged_parts(shown_card: Card, benchmark: BenchmarkView) -> tuple[bool, tuple[str, ...]]:
    """Return whether a card's response holds a verdict, and which parts hold tags of the prompt."""
    rubric = benchmark.rubric
    return holds_verdict(shown_card.response, rubric.criteria), rubric.forged(shown_card)


def _shown_cards(engine: Engine, benchmark: BenchmarkView) -> Iterator[Card]:
    """Yield the responses of a benchmark as jurors get them, by their names, page by page."""
    last = 0
    query = shown(Response.response_id, Response.id).where(
        Instance.benchmark == benchmark.name, FOR_STUDY
    )
    with reading(engine) as session:
        while page := list(
            session.exec(
                query.where(col(Response.id) > last).order_by(col(Response.id)).limit(PLANTED_PAGE)
            )
        ):
            for *texts, name, _ in page:
                yield card(name, texts, benchmark.rubric)
            last = page[-1][-1]


@dataclass(frozen=True, slots=True)
class StoredText:
    """A response (primary key) as it was stored, and the places of it that are masked."""

    response: int
    response_id: str
    text: str
    places: tuple[TextPlace, ...]


@only(Role.COORDINATOR)
def unsearched_texts(_: Person, engine: Engine) -> Iterator[list[StoredText]]:
    """Return the responses not yet searched for their authors' names, page by page."""
    return stored_texts(engine, searched_up_to(engine))


def stored_texts(engine: Engine, after: int = 0) -> Iterator[list[StoredText]]:
    """Yield the responses after a primary key, page by page; no transaction stays open."""
    while page := _page(engine, after):
        yield page
        after = page[-1].response


def searched_up_to(engine: Engine) -> int:
    """Return the primary key up to which responses were searched for their authors' names."""
    with reading(engine) as session:
        setting = session.get(Setting, SEARCHED)
        return int(setting.value) if setting else 0


def names_left(engine: Engine) -> LeftNames:
    """Return the possible names that a coordinator has left as they are."""
    details = [event.detail for event in acts(engine, LEFT)]
    return LeftNames(
        frozenset(name for detail in details for name in detail["responses"]),
        frozenset((name, start) for detail in details for name, start in detail.get("places", ())),
        frozenset(word for detail in details for word in detail.get("words", ())),
    )


def _page(engine: Engine, after: int) -> list[StoredText]:
    query = (
        select(Response.id, Response.response_id, Response.text)
        .where(col(Response.id) > after)
        .order_by(col(Response.id))
        .limit(PAGE)
    )
    with reading(engine) as session:
        rows = session.exec(query).all()
        places = _places(session, [key or 0 for key, _, _ in rows])
        return [
            StoredText(key or 0, name, text, tuple(places.get(key or 0, ())))
            for key, name, text in rows
        ]


def _places(session: Session, responses: list[int]) -> dict[int, list[TextPlace]]:
    query = select(Mask).where(col(Mask.response).in_(responses)).order_by(col(Mask.id))
    places: dict[int, list[TextPlace]] = {}
    for mask in session.exec(query):
        places.setdefault(mask.response, []).append((mask.start, mask.end, mask.text))
    return places


def known_response_ids(engine: Engine, response_ids: Collection[str]) -> frozenset[str]:
    """Return those of some response_ids that are in the study."""
    query = select(Response.response_id).where(col(Response.response_id).in_(response_ids))
    with reading(engine) as session:
        return frozenset(session.exec(query))
