"""How the record vouched for rows when 0002 was written; kept so, whatever `data.store.audit` does."""

import hashlib
import json
import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
import sqlmodel

GENESIS = "0" * 64
CHAIN = 6_337_589  # PostgreSQL's lock of whoever appends
EVENT = sa.table(
    "event",
    sa.column("id", sa.Integer()),
    sa.column("at", sqlmodel.UTCDateTime()),
    sa.column("actor", sa.String()),
    sa.column("action", sa.String()),
    sa.column("detail", sa.JSON()),
    sa.column("previous", sa.String()),
    sa.column("sha256", sa.String()),
)


def digest(table: str, rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """Return what an event says of rows: their table, a random token, number and SHA-256."""
    found, number = hashlib.sha256(), 0
    for row in rows:
        values = json.dumps([_plain(value) for value in row], separators=(",", ":"))
        found.update(values.encode() + b"\n")
        number += 1
    token = secrets.token_hex(8)
    return {"table": table, "batch": token, "rows": number, "sha256": found.hexdigest()}


def append(connection: sa.Connection, action: str, detail: dict[str, Any]) -> None:
    """Append one event of medjury's own to the chain."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(CHAIN)))
    last = sa.select(EVENT.c.sha256).order_by(EVENT.c.id.desc()).limit(1)
    previous = connection.scalar(last) or GENESIS
    at, actor = datetime.now(UTC), "medjury"
    body = json.dumps([at.isoformat(), actor, action, detail, previous], sort_keys=True)
    event = {"at": at, "actor": actor, "action": action, "detail": detail, "previous": previous}
    sha256 = hashlib.sha256(body.encode()).hexdigest()
    connection.execute(sa.insert(EVENT).values(event | {"sha256": sha256}))


def _plain(value: object) -> object:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
