"""Reading a whole study, row by row, so that a copy of it can be made and compared."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, func, true
from sqlalchemy import Table as DbTable
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from data.schema import Event, Table
from data.store.access import SESSION_KEY
from data.store.audit import GENESIS, canonical_values

PAGE = 500
ALL_DIGESTS = 1 << 256
TABLES: tuple[DbTable, ...] = tuple(Table.metadata.sorted_tables)  # none refers to a later one
Row = Mapping[str, Any]


@dataclass(slots=True)
class Content:
    """How many rows a table has, and a digest of them that is the same in whatever order.

    It is the sum of the rows' SHA-256 as whole numbers: databases sort texts differently.
    """

    rows: int = 0
    digest: int = 0

    def add(self, rows: Iterable[Row]) -> None:
        """Count rows and take in all they hold."""
        for one in rows:
            self.rows += 1
            row = hashlib.sha256(canonical_values(one.values())).digest()
            self.digest = (self.digest + int.from_bytes(row)) % ALL_DIGESTS


def pages(session: Session, table: DbTable) -> Iterator[list[Row]]:
    """Yield all rows of a table that a copy has, some at a time, in the order of their keys."""
    query = select_columns(table).where(_copied(table)).order_by(*table.primary_key)
    with session.execute(query.execution_options(yield_per=PAGE)) as found:
        for page in found.mappings().partitions():
            yield [dict(one) for one in page]


def content(session: Session, table: DbTable) -> Content:
    """Return what a table holds, read row by row."""
    found = Content()
    for page in pages(session, table):
        found.add(page)
    return found


def counts(session: Session) -> dict[str, int]:
    """Return table -> number of rows that a copy has."""
    number = select_columns(func.count())
    return {
        one.name: session.scalar(number.select_from(one).where(_copied(one))) or 0 for one in TABLES
    }


def _copied(table: DbTable) -> ColumnElement[bool]:
    """Leave the key of sessions where it is: who had a copy could sign in as anybody."""
    return table.c.key != SESSION_KEY if table.name == "setting" else true()


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
