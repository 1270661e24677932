"""What of a study a copy of it has: its tables, row by row, and what of them a package holds."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import chain
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from sqlalchemy import Table as DbTable
from sqlalchemy import case, false, func
from sqlmodel import Session, col, select
from sqlmodel.sql.expression import Select

from data import schema
from data.description import CONSENT_OF, CONSENT_TEXT
from data.record import GENESIS, LOCKED, canonical_values
from data.schema import Event, Setting, Table
from data.settings import Settings
from data.study.access import SESSION_KEY
from data.training import standing_key

PAGE = 500
ALL_DIGESTS = 1 << 256
ALL_TABLES: tuple[DbTable, ...] = tuple(Table.metadata.sorted_tables)  # none refers to a later one
MODELS: Mapping[str, type[Table]] = {
    str(model.__tablename__): model
    for model in vars(schema).values()
    if isinstance(model, type) and issubclass(model, Table) and hasattr(model, "__table__")
}
# Table that no package holds -> why.
STAYS: Mapping[str, str] = {
    "account": "who may sign in is said anew in each place",
    "access": "a way in",
    "intent": "a call that waits at a provider, which answers in one place",
    "jury_batch": "as intent",
    "jury_request": "as intent",
}
PACKED = tuple(table for table in ALL_TABLES if table.name not in STAYS)
AUTHORS = ("authorship", "mask")
WITHHELD = "(author withheld)"  # what an author is called where a study came without
KEPT = {
    LOCKED,
    "per_response",
    "study_text",
    CONSENT_TEXT,
    "searched_for_authors",
    *(setting.name for setting in fields(Settings)),
}
KEPT_PREFIXES = ("panel:", CONSENT_OF, standing_key(0).removesuffix("0"))
Row = dict[str, Any]
Columns = Select[*tuple[Any, ...]]


def kind_of(table: str, column: str) -> type:
    """Return the type of a column's values, of those that are not missing."""
    annotation = MODELS[table].model_fields[column].annotation
    is_union = get_origin(annotation) in (UnionType, Union)
    parts = get_args(annotation) if is_union else (annotation,)
    kind = next(part for part in parts if part is not NoneType)
    bare: type = get_origin(kind) or kind
    return bare


def kept_setting(key: str) -> bool:
    """Tell whether a setting travels: what the study decided does, keys and secrets do not."""
    return key in KEPT or key.startswith(KEPT_PREFIXES)


def leaving(session: Session, table: DbTable, authors: str) -> Columns:
    """Select what leaves the study of a table "with" or "without" the authors, or "only" they.

    Without authors a text stands as its raters saw it, and what is masked has no salt: with it,
    guesses could be compared. Of the authors alone, the whole texts of masked responses are part.
    """
    selected: dict[str, Any] = dict(table.c.items())
    if table.name == "response" and authors == "without":
        masked = table.c.shown.is_not(None)
        selected["text"] = func.coalesce(table.c.shown, table.c.text).label("text")
        selected["salt"] = case((masked, None), else_=table.c.salt).label("salt")
    query: Columns = Select(*selected.values()).order_by(*table.primary_key)
    if not holds(authors, table.name):
        return query.where(false())
    if table.name == "response" and authors == "only":
        return query.where(table.c.shown.is_not(None))
    if table.name == "setting":
        kept = [key for key in session.exec(select(Setting.key)) if kept_setting(key)]
        return query.where(table.c.key.in_(kept))
    return query


def holds(authors: str, table: str) -> bool:
    """Tell whether a package "with", "without" or "only" the authors has rows of a table."""
    if authors == "only":
        return table in (*AUTHORS, "response")
    return authors == "with" or table not in AUTHORS


def copied(table: DbTable) -> Columns:
    """Select what a copy of the whole study has of a table: all but the key of sessions.

    Who had that could sign in as anybody.
    """
    query: Columns = Select(table).order_by(*table.primary_key)
    return query.where(table.c.key != SESSION_KEY) if table.name == "setting" else query


def pages(session: Session, query: Columns, at_once: int = PAGE) -> Iterator[list[Row]]:
    """Yield the rows of a query, some at a time."""
    with session.execute(query.execution_options(yield_per=at_once)) as rows:
        for page in rows.mappings().partitions():
            yield [dict(row) for row in page]


def content(pages: Iterable[list[Row]]) -> tuple[int, int]:
    """Return how many rows pages have, and a digest of them that is the same in whatever order.

    It is the sum of the rows' SHA-256 as whole numbers: databases sort texts differently.
    """
    rows = digest = 0
    for row in chain.from_iterable(pages):
        rows += 1
        row_digest = hashlib.sha256(canonical_values(row.values())).digest()
        digest = (digest + int.from_bytes(row_digest)) % ALL_DIGESTS
    return rows, digest


def counts(session: Session) -> dict[str, int]:
    """Return table -> number of rows that a copy has."""
    return {
        table.name: session.scalar(Select(func.count()).select_from(copied(table).subquery())) or 0
        for table in ALL_TABLES
    }


def head(session: Session) -> str:
    """Return the hash of the last event; zeros where there is none."""
    last = select(Event.sha256).order_by(col(Event.id).desc()).limit(1)
    return session.exec(last).first() or GENESIS


def has_event(session: Session, sha256: str) -> bool:
    """Tell whether an event of this hash is in the chain, or the hash is that of none."""
    query = select(Event.id).where(Event.sha256 == sha256)
    return sha256 == GENESIS or session.exec(query).first() is not None
