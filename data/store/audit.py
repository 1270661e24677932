"""The audit chain: each event carries the hash of the one before, and digests of what it wrote."""

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Insert, Row, func, insert
from sqlmodel import Session, desc, select

from data.errors import NotAllowed
from data.record import SEALS, How, canonical_values
from data.schema import Event, Setting, Table, now

GENESIS = "0" * 64
LOCKED = "locked"
CHAIN = 6_337_589  # any number, as long as nothing else in the database locks it
INSTANCE = SEALS["instance"].columns[1:]
# What was said of responses before their authors were sealed apart.
WITH_AUTHOR = {"response": ("response_id", "text", "model", *INSTANCE)}
COLUMNS: Mapping[str, tuple[str, ...]] = WITH_AUTHOR | {
    name: one.columns for name, one in SEALS.items() if one.how is How.ACT
}
# Columns that a later version added at the end, with what stands in rows of before: where all of
# them say nothing they are not digested, so what an earlier version promised still holds.
ADDED: Mapping[str, tuple[object, ...]] = {"span": ("response", "", None), "remark": (None,)}
_LAST = select(Event.sha256).order_by(desc(Event.id)).limit(1)
_LOCKED = select(Setting.value).where(Setting.key == LOCKED)


class Batch:
    """Rows of one table that one act writes, and their digest in the order they are written.

    Attributes
    ----------
    token
        Random, unless given; stands in the `batch` column of every row and in the act's event.
    """

    def __init__(self, table: str, token: str | int = "") -> None:
        self.table, self.token, self.rows = table, token or secrets.token_hex(8), 0
        self._hash = hashlib.sha256()

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Count rows and take them into the digest."""
        for row in rows:
            self.add_values(row[name] for name in COLUMNS[self.table])

    def add_values(self, values: Iterable[object]) -> None:
        """Take in one row, its values in the order of the table's `COLUMNS`."""
        self.rows += 1
        self._hash.update(canonical_values(_said(self.table, tuple(values))))

    @property
    def sha256(self) -> str:
        """Return the digest of the rows so far."""
        return self._hash.hexdigest()

    def detail(self) -> dict[str, Any]:
        """Return what the act's event says of the rows."""
        return {
            "table": self.table,
            "batch": self.token,
            "rows": self.rows,
            "sha256": self.sha256,
        }


def _said(table: str, values: tuple[object, ...]) -> tuple[object, ...]:
    """Return a row without the columns of `ADDED` where none of them says anything."""
    added = ADDED.get(table, ())
    return values[: -len(added)] if added and values[-len(added) :] == added else values


def write_rows(
    session: Session, model: type[Table], rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Insert the rows that one act writes; return what its event says of them, nothing of none."""
    if not rows:
        return []
    written = Batch(str(model.__tablename__))
    session.execute(insertion(model), [{**row, "batch": written.token} for row in rows])
    written.add(rows)
    return [written.detail()]


@cache
def insertion(model: type[Table]) -> Insert:
    """Return the statement that adds rows; making one costs more than running it.

    It refuses a column that the table does not have.
    """
    return insert(model.metadata.tables[str(model.__tablename__)])


def canonical(row: Mapping[str, Any], columns: Iterable[str]) -> bytes:
    """Return a row's content as bytes that are the same before and after storage."""
    return canonical_values(row[name] for name in columns)


def log(
    session: Session,
    actor: str,
    action: str,
    detail: Mapping[str, Any],
    seals: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Append one event to the chain, with seals of what its act wrote, inside the caller's transaction."""
    _one_at_a_time(session)
    last = session.execute(_LAST).scalar()
    event: dict[str, Any] = {
        "at": now(),
        "actor": actor,
        "action": action,
        "detail": dict(detail) | ({"sealed": [*seals]} if seals else {}),
        "previous": last or GENESIS,
    }
    event["sha256"] = _sha256(*event.values())
    session.flush()
    session.execute(insertion(Event), event)


def _one_at_a_time(session: Session) -> None:
    """Let no other transaction append meanwhile, or two events would follow the same one.

    SQLite has one writer anyway.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(CHAIN)))


def event_hash(event: Event | Row[Any]) -> str:
    """Return the SHA-256 over an event's content and its predecessor's hash."""
    return _sha256(event.at, event.actor, event.action, event.detail, event.previous)


def _sha256(at: datetime, actor: str, action: str, detail: Mapping[str, Any], previous: str) -> str:
    body = [at.isoformat(), actor, action, detail, previous]
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def refuse_locked(session: Session) -> None:
    """Raise NotAllowed if the study is locked: nothing may be written then.

    Raises
    ------
    NotAllowed
        Says since when, and what a coordinator can do.
    """
    since = session.exec(_LOCKED).first()
    if since is not None:
        raise NotAllowed(
            f"the study is locked since {since}; a coordinator can reopen it with "
            '`medjury study lock --reopen --reason "..."`, which is recorded'
        )
