"""A study of an old schema, made in SQL, with rows in all its tables and a record of them."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Connection,
    DateTime,
    Engine,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    String,
    Table,
    select,
)
from sqlmodel import Session

from data.description import CONSENT_TEXT
from data.migrations.record_at_0011 import ALONE, TOGETHER, add_salts, masked, requests, seals
from data.queries.record import ANSWERED, IMPORTED
from data.queries.row_checks import SEALED
from data.record import SEALS, How
from data.store.audit import ADDED, COLUMNS, INSTANCE, Batch, seal_together
from data.store.ledger import EVALUATED, FROZEN, report_sha256
from data.store.masks import MASKED, mask_digest
from data.store.study import DESCRIBED
from data.store.submissions import STUDY_TEXT
from data.store.training import experts_digest

CONSENT = "0" * 64

AT = datetime(2026, 1, 31, 23, 59, 59, 999_999, tzinfo=UTC)

TEXT = "No fe\u0301ver \U0001f600; it's \u201cmild\u201d \\ %s {x}"

VERSION = "alembic_version"

NUMBERS = (1, 2)

Rows = dict[str, list[dict[str, Any]]]


def filled(engine: Engine) -> Rows:
    """Put rows into every table that a study has, and events that vouch for them."""
    with engine.execution_options(writes=True).begin() as connection:
        tables = reflected(connection)
        for table in tables.sorted_tables:
            if table.name not in (VERSION, "event", "superseded"):
                connection.execute(table.insert(), [made(table, n) for n in NUMBERS])
        if "commitment" in tables.tables["response"].columns:
            add_salts(connection)
        if "study_text" in tables.tables:
            describe(connection, tables.tables)
        chain(connection, tables.tables["event"], list(promised(connection, tables.tables)))
    return rows_of(engine)


def describe(connection: Connection, tables: Mapping[str, Table]) -> None:
    """Let the last text be what clinicians are told, and the consent text the one they are asked."""
    present = read(connection, tables["study_text"])[-1]["sha256"]
    kept = {STUDY_TEXT: present, CONSENT_TEXT: CONSENT}
    rows = [{"key": key, "value": value} for key, value in kept.items()]
    connection.execute(tables["setting"].insert(), rows)


def made(table: Table, number: int) -> dict[str, Any]:
    """Return a row with something in every column; numbers are given by the database, 1 and 2."""
    return {
        column.name: value(table, column, number) for column in table.columns if column.name != "id"
    }


def value(table: Table, column: Any, number: int) -> Any:
    """Return something of a column's type, for a reference the key of a row that is there."""
    if column.foreign_keys:
        [key] = column.foreign_keys
        return value(key.column.table, key.column, number)
    if column.name == "batch" and table.name in COLUMNS:
        return f"act on {table.name}"
    if (table.name, column.name) == ("study_text", "sha256"):
        body = value(table, table.columns["body"], number)
        return hashlib.sha256(str(body).encode()).hexdigest()
    [made] = [one for kind, one in MADE if isinstance(column.type, kind)][:1]
    return made(column, number)


def _text(column: Any, number: int) -> str:
    sha256 = hashlib.sha256(f"{column.name} {number}".encode()).hexdigest()
    return sha256[: column.type.length] if column.type.length else f"{column.name} {number} {TEXT}"


def _json(column: Any, number: int) -> object:
    if column.name == "compared":
        return sorted(f"{TEXT} {one}" for one in range(number))
    return {"of": number, "said": [TEXT, None, 0.1]}


MADE: list[tuple[type, Callable[[Any, int], Any]]] = [
    (JSON, _json),
    (Boolean, lambda _, number: number == 1),
    (DateTime, lambda _, number: AT + timedelta(seconds=number)),
    (Integer, lambda _, number: number),
    ((Float, Numeric), lambda _, number: number + 0.1),  # type: ignore[list-item]
    (String, _text),
    (LargeBinary, lambda _, number: bytes([number])),
]


def later_seals(rows: Mapping[str, list[dict[str, Any]]]) -> Iterator[Mapping[str, Any]]:
    """Yield the seals of tables that came after the revision which sealed all there was."""
    for name in sorted(rows.keys() & SEALS.keys() - TOGETHER.keys() - ALONE.keys()):
        if SEALS[name].how is How.KEYS:
            yield seal_together(name, rows[name])


def promised(
    connection: Connection, tables: Mapping[str, Table]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what a study's events say of its rows, as far as its revision lets them."""
    rows = {name: read(connection, table) for name, table in tables.items() if name != "event"}
    instances = {one["id"]: one for one in rows["instance"]}
    models = {one["response"]: one["model"] for one in rows["authorship"]}
    for one in rows["response"]:
        one |= {name: instances[one["instance"]][name] for name in INSTANCE}
        one["model"] = models[one["id"]]
    if "commitment" in tables["response"].columns:
        said = {"sealed": seals(connection), "written": requests(connection)}
        yield SEALED, said | masked(connection)
        yield "kept", {"sealed": list(later_seals(rows))}
    for name in sorted(COLUMNS.keys() & tables.keys() - {"jury_request"}):
        if "batch" in tables[name].columns:
            batch = Batch(name)
            batch.token = f"act on {name}"
            batch.add({**added_since(name), **one} for one in rows[name])
            yield "rated", batch.detail()
    yield from (
        (
            FROZEN,
            {
                "report": one["id"],
                "sha256": report_sha256(one["at"], one["fingerprint"], one["body"]),
            },
        )
        for one in rows["report"]
    )
    if "mask" in rows:
        said = {
            one["response_id"]: mask_digest(
                one["shown"],
                [
                    (mask["start"], mask["end"], mask["text"])
                    for mask in rows["mask"]
                    if mask["response"] == one["id"]
                ],
            )
            for one in rows["response"]
        }
        yield MASKED, {"masks": said}
        yield IMPORTED, {"sha256": experts_digest(Session(connection))}
        yield from (
            (
                ANSWERED,
                {
                    "drill": one["id"],
                    "response": one["response"],
                    "round": one["round"] + 1,
                    "scores": one["scores"],
                },
            )
            for one in rows["drill"]
        )
    for one in rows.get("composition", ()):
        told = {name: one[name] for name in ("key", "compared", "jurors", "icc", "n_responses")}
        yield from [(EVALUATED, {"juries": [told]})] * one["times"]
    for one in rows.get("study_text", ()):
        yield DESCRIBED, {"sha256": one["sha256"], "consent_sha256": CONSENT, "ratings": 0}


def added_since(table: str) -> dict[str, object]:
    """Return what the columns that a table was given later say of rows from before them."""
    added = ADDED.get(table, ())
    return dict(zip(COLUMNS[table][-len(added) :], added, strict=True)) if added else {}


def chain(connection: Connection, event: Table, said: list[tuple[str, dict[str, Any]]]) -> None:
    """Store events, each with the hash of the one before, as the first version hashed them."""
    previous = "0" * 64
    for action, detail in said:
        actor = f"rater {detail['drill']}" if "drill" in detail else "coordinator"
        body = [AT.isoformat(), actor, action, detail, previous]
        sha256 = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        connection.execute(
            event.insert().values(
                at=AT,
                actor=actor,
                action=action,
                detail=detail,
                previous=previous,
                sha256=sha256,
            )
        )
        previous = sha256


def reflected(connection: Connection) -> MetaData:
    """Return the tables as the database has them: no model of today is asked."""
    tables = MetaData()
    tables.reflect(connection)
    return tables


def read(connection: Connection, table: Table) -> list[dict[str, Any]]:
    """Return a table's rows in the order of their keys, times in UTC."""
    found = connection.execute(select(table).order_by(*table.primary_key)).mappings()
    return [{name: in_utc(one) for name, one in row.items()} for row in found]


def in_utc(one: Any) -> Any:
    if not isinstance(one, datetime):
        return one
    return one.replace(tzinfo=UTC) if one.tzinfo is None else one.astimezone(UTC)


def rows_of(engine: Engine) -> Rows:
    with engine.connect() as connection:
        tables = reflected(connection).tables
        return {name: read(connection, one) for name, one in tables.items() if name != VERSION}
