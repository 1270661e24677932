"""Reading a whole study as the rows of a package, table by table.

The tables that name authors are read by functions of their own, for whoever has lifted the blind.
No way of signing in is read, nor a secret, nor batches that wait at a provider.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Engine, func, select
from sqlmodel import col

from data.database import HEAD, reading
from data.importers.package_cells import EVERY, FORMAT, VERSION, columns, written
from data.queries.rating_room import LOCKED
from data.schema import Authorship, Event, Rater, Response, Setting
from data.settings import Settings
from data.store.audit import GENESIS
from data.training import standing_key

PAGE = 2000
KEPT = {LOCKED, "per_response", "searched_for_authors", *(one.name for one in fields(Settings))}
KEPT_PREFIXES = ("panel:", standing_key(0).removesuffix("0"))
Cells = list[object]


def kept_setting(key: str) -> bool:
    """Tell whether a setting travels: what the study decided does, keys and secrets do not."""
    return key in KEPT or key.startswith(KEPT_PREFIXES)


def table_rows(engine: Engine, table: str) -> Iterator[Cells]:
    """Yield the rows of one table of a package, in the columns that `columns` names.

    A response has the text that its raters saw, so none of `TABLES` names an author.
    """
    if table == "response":
        yield from _written(engine, table, _responses())
    elif table == "authorship":
        yield from _written(engine, table, _authors())
    else:
        model = EVERY[table]
        names = columns(table)
        query = select(*(getattr(model, name) for name in names)).order_by(
            *model.metadata.tables[table].primary_key
        )
        if table == "setting":
            query = query.where(col(Setting.key).in_(_kept_settings(engine)))
        yield from _written(engine, table, query)


def head_of(engine: Engine) -> str:
    """Return the hash of the last event; zeros where there is none."""
    with reading(engine) as session:
        newest = select(Event.sha256).order_by(col(Event.id).desc()).limit(1)  # type: ignore[call-overload]
        return session.scalar(newest) or GENESIS


def about(engine: Engine, authors: str, software: str) -> dict[str, Any]:
    """Return what a package says of itself, but for its files."""
    with reading(engine) as session:
        simulated = session.scalar(
            select(func.count()).select_from(Rater).where(col(Rater.simulated))
        )
    return {
        "format": FORMAT,
        "version": VERSION,
        "medjury": software,
        "tables": HEAD,
        "authors": authors,
        "head": head_of(engine),
        "simulated_raters": simulated or 0,
    }


def _responses() -> Any:
    """Select responses with the text as shown, and whether something in it is masked."""
    shown = func.coalesce(Response.shown, Response.text)
    masked = col(Response.shown).is_not(None)
    names = {"text": shown, "masked": masked}
    picked = (names.get(name, getattr(Response, name, None)) for name in columns("response"))
    return select(*picked).order_by(col(Response.id))  # type: ignore[arg-type]


def _authors() -> Any:
    """Select who wrote what, with the whole text where something of it is masked."""
    from sqlalchemy import case

    original = case((col(Response.shown).is_not(None), col(Response.text)), else_=None)
    return (
        select(col(Authorship.response), col(Authorship.model), original)
        .join(Response, col(Response.id) == col(Authorship.response))
        .order_by(col(Authorship.response))
    )


def _kept_settings(engine: Engine) -> list[str]:
    with reading(engine) as session:
        return [key for key in session.scalars(select(col(Setting.key))) if kept_setting(key)]


def _written(engine: Engine, table: str, query: Any) -> Iterator[Cells]:
    """Yield the rows of a query as cells."""
    allowed = [missing for _, missing in columns(table).values()]
    paged = query.execution_options(yield_per=PAGE)
    with reading(engine) as session, session.execute(paged) as found:
        for one in found:
            yield _cells(one, allowed)


def _cells(row: Iterable[Any], allowed: Sequence[bool]) -> Cells:
    return [written(value, missing) for value, missing in zip(row, allowed, strict=True)]
