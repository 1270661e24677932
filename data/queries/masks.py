"""What is masked, and what has still to be searched; for coordinators, never for raters."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading
from data.queries.record import acts
from data.schema import Authorship, Mask, Response, Setting
from data.store.masks import LEFT, SEARCHED

PAGE = 400
Place = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class StoredText:
    """A response (primary key) as it was stored, and the places of it that are masked."""

    response: int
    response_id: str
    text: str
    places: tuple[Place, ...]


def stored_texts(engine: Engine, after: int = 0) -> Iterator[list[StoredText]]:
    """Yield the responses after a primary key, page by page; no transaction stays open."""
    while page := _page(engine, after):
        yield page
        after = page[-1].response


def author_names(engine: Engine) -> list[str]:
    """Return the study's models, which a response must not name."""
    with reading(engine) as session:
        return list(session.exec(select(Authorship.model).distinct().order_by(Authorship.model)))


def searched_up_to(engine: Engine) -> int:
    """Return the primary key up to which responses were searched for their authors' names."""
    with reading(engine) as session:
        kept = session.get(Setting, SEARCHED)
        return int(kept.value) if kept else 0


def names_left(engine: Engine) -> frozenset[str]:
    """Return the response_ids whose possible names a coordinator has left as they are."""
    return frozenset(name for act in acts(engine, LEFT) for name in act.detail["responses"])


def _page(engine: Engine, after: int) -> list[StoredText]:
    query = (
        select(Response.id, Response.response_id, Response.text)
        .where(col(Response.id) > after)
        .order_by(col(Response.id))
        .limit(PAGE)
    )
    with reading(engine) as session:
        found = session.exec(query).all()
        places = _places(session, [key or 0 for key, _, _ in found])
        return [
            StoredText(key or 0, name, text, tuple(places.get(key or 0, ())))
            for key, name, text in found
        ]


def _places(session: Session, responses: list[int]) -> dict[int, list[Place]]:
    query = select(Mask).where(col(Mask.response).in_(responses)).order_by(col(Mask.id))
    places: dict[int, list[Place]] = {}
    for one in session.exec(query):
        places.setdefault(one.response, []).append((one.start, one.end, one.text))
    return places
