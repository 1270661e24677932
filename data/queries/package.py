"""Reading a whole study row by row: for a copy that is compared, and as the rows of a package.

The tables that name authors are read by functions of their own, for whoever has lifted the blind.
No way of signing in is read, nor a secret, nor batches that wait at a provider.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import ColumnElement, Engine, case, func, true
from sqlalchemy import Table as DbTable
from sqlmodel import Session, col, select

from data.database import HEAD, reading
from data.description import CONSENT_OF, CONSENT_TEXT
from data.importers.package import EVERY, FORMAT, VERSION, columns, written
from data.record import GENESIS, LOCKED, canonical_values
from data.schema import Authorship, Event, Rater, Response, Setting, Table
from data.settings import Settings
from data.study.access import SESSION_KEY
from data.study.base import Columns, columns_of
from data.training import standing_key

PAGE, COPIED_PAGE = 2000, 500
ALL_DIGESTS = 1 << 256
ALL_TABLES: tuple[DbTable, ...] = tuple(Table.metadata.sorted_tables)  # none refers to a later one
KEPT = {
    LOCKED,
    "per_response",
    "study_text",
    CONSENT_TEXT,
    "searched_for_authors",
    *(setting.name for setting in fields(Settings)),
}
KEPT_PREFIXES = ("panel:", CONSENT_OF, standing_key(0).removesuffix("0"))
Cells = list[object]
Row = Mapping[str, Any]


@dataclass(slots=True)
class TableDigest:
    """How many rows a table has, and a digest of them that is the same in whatever order.

    It is the sum of the rows' SHA-256 as whole numbers: databases sort texts differently.
    """

    rows: int = 0
    digest: int = 0

    def add(self, rows: Iterable[Row]) -> None:
        """Count rows and take in all they hold."""
        for row in rows:
            self.rows += 1
            row_digest = hashlib.sha256(canonical_values(row.values())).digest()
            self.digest = (self.digest + int.from_bytes(row_digest)) % ALL_DIGESTS


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
        query = columns_of(*(getattr(model, name) for name in names)).order_by(
            *model.metadata.tables[table].primary_key
        )
        if table == "setting":
            query = query.where(col(Setting.key).in_(_kept_settings(engine)))
        yield from _written(engine, table, query)


def head_of(engine: Engine) -> str:
    """Return the hash of the last event; zeros where there is none."""
    with reading(engine) as session:
        return head(session)


def about(engine: Engine, authors: str, software: str) -> dict[str, Any]:
    """Return what a package says of itself, but for its files."""
    with reading(engine) as session:
        simulated = session.exec(select(func.count(col(Rater.id))).where(Rater.simulated)).one()
    return {
        "format": FORMAT,
        "version": VERSION,
        "medjury": software,
        "tables": HEAD,
        "authors": authors,
        "head": head_of(engine),
        "simulated_raters": simulated,
    }


def pages(session: Session, table: DbTable) -> Iterator[list[Row]]:
    """Yield all rows of a table that a copy has, some at a time, in the order of their keys."""
    query = columns_of(table).where(_copied(table)).order_by(*table.primary_key)
    with session.execute(query.execution_options(yield_per=COPIED_PAGE)) as rows:
        for page in rows.mappings().partitions():
            yield [dict(row) for row in page]


def content(session: Session, table: DbTable) -> TableDigest:
    """Return what a table holds, read row by row."""
    digest = TableDigest()
    for page in pages(session, table):
        digest.add(page)
    return digest


def counts(session: Session) -> dict[str, int]:
    """Return table -> number of rows that a copy has."""
    number = columns_of(func.count())
    return {
        table.name: session.scalar(number.select_from(table).where(_copied(table))) or 0
        for table in ALL_TABLES
    }


def head(session: Session) -> str:
    """Return the hash of the last event; zeros where there is none."""
    return (
        session.exec(select(Event.sha256).order_by(col(Event.id).desc()).limit(1)).first()
        or GENESIS
    )


def has_event(session: Session, sha256: str) -> bool:
    """Tell whether an event of this hash is in the chain, or the hash is that of none."""
    query = select(Event.id).where(Event.sha256 == sha256)
    return sha256 == GENESIS or session.exec(query).first() is not None


def _copied(table: DbTable) -> ColumnElement[bool]:
    """Leave the key of sessions where it is: who had a copy could sign in as anybody."""
    return table.c.key != SESSION_KEY if table.name == "setting" else true()


def _responses() -> Columns:
    """Select responses with the text as shown, and whether something in it is masked.

    The salt of a masked text stays with the authors: with it, guesses could be compared.
    """
    shown = func.coalesce(Response.shown, Response.text)
    masked = col(Response.shown).is_not(None)
    salt = case((masked, None), else_=col(Response.salt))
    names = {"text": shown, "masked": masked, "salt": salt}
    selected = (names.get(name, getattr(Response, name, None)) for name in columns("response"))
    return columns_of(*selected).order_by(col(Response.id))


def _authors() -> Columns:
    """Select who wrote what, with the whole text where something of it is masked."""
    masked = col(Response.shown).is_not(None)
    originals = (
        case((masked, column), else_=None) for column in (col(Response.text), col(Response.salt))
    )
    names = dict(zip(("original", "original_salt"), originals, strict=True))
    selected = (names.get(name, getattr(Authorship, name, None)) for name in columns("authorship"))
    query = columns_of(*selected).select_from(Authorship)
    return query.join(Response).order_by(col(Authorship.response))


def _kept_settings(engine: Engine) -> list[str]:
    with reading(engine) as session:
        return [key for key in session.exec(select(Setting.key)) if kept_setting(key)]


def _written(engine: Engine, table: str, query: Columns) -> Iterator[Cells]:
    """Yield the rows of a query as cells."""
    allowed = [missing for _, missing in columns(table).values()]
    paged = query.execution_options(yield_per=PAGE)
    with reading(engine) as session, session.execute(paged) as rows:
        for row in rows:
            yield [written(value, missing) for value, missing in zip(row, allowed, strict=True)]
