"""Cells of a study changed behind its back: each to another value that its table takes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    DateTime,
    Engine,
    Float,
    Integer,
    Table,
    func,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, UTCDateTime

from data.schema import Table as Model

TABLES = Model.metadata.tables

Row = Mapping[str, Any]


@contextmanager
def attacked(engine: Engine) -> Iterator[Session]:
    """Yield a session that no foreign key holds back, and that is undone in the end."""
    with engine.connect() as connection, Session(connection) as session:
        sqlite = engine.dialect.name == "sqlite"
        off = "PRAGMA foreign_keys=OFF" if sqlite else "SET session_replication_role = replica"
        connection.connection.cursor().execute(off)
        if sqlite:
            session.execute(text("SELECT 1"))
        try:
            yield session
        finally:
            session.rollback()
            if sqlite:
                connection.connection.cursor().execute("PRAGMA foreign_keys=ON")


def rows_of(session: Session, table: Table) -> list[Row]:
    return [*session.execute(select(table).order_by(*table.primary_key)).mappings()]


def key_of(table: Table) -> Column[Any]:
    [key] = table.primary_key
    return key


def others(session: Session, column: Column[Any], row: Row) -> Iterator[Any]:
    """Yield other values that a column could hold: a row's key moves behind, or before, all."""
    value = row[column.name]
    if column.primary_key and isinstance(value, int):
        last = session.scalar(select(func.max(column)))
        yield 0 if value == last else last + 1
    for link in column.foreign_keys:
        yield from session.scalars(select(link.column).where(link.column != (value or 0)))
    yield _another(column, value)
    yield 4711 if isinstance(column.type, Integer) else "forged"


def _another(column: Column[Any], value: Any) -> Any:
    if isinstance(column.type, JSON):
        return [*value, "forged"] if isinstance(value, list) else {**(value or {}), "forged": 1}
    if isinstance(column.type, Boolean):
        return not value
    if isinstance(column.type, DateTime | UTCDateTime):
        return (value or datetime(2026, 1, 1, tzinfo=UTC)) + timedelta(days=1)
    if isinstance(column.type, Integer | Float):
        return (value or 0) + 1
    swapped = {"clinician": "juror", "juror": "clinician", "done": "open", "open": "done"}
    if len(value or "") == getattr(column.type, "length", None):
        return f"x{value[1:]}"  # no longer than a hash
    return swapped.get(value, f"{value or ''}x")


def change(session: Session, table: Table, column: str, row: Row) -> None:
    """Change one cell to the first value that its table takes."""
    key = key_of(table)
    for value in others(session, table.c[column], row):
        forge = update(table).where(key == row[key.name]).values({column: value})
        try:
            with session.begin_nested():
                session.execute(forge)
        except IntegrityError:
            continue
        return
    raise AssertionError(f"{table.name}.{column} takes no other value")
