"""The audit chain: events that each hold the hash of the one before, and seals of the rows written.

A row that is changed later is sealed again, in the event of the act that changes it.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Float, Insert, Row, Text, bindparam, func, insert
from sqlalchemy import select as select_columns
from sqlmodel import Session, desc, select

from data.database import write_last
from data.errors import NotAllowed
from data.record import (
    SALT_BYTES,
    SEALS,
    How,
    Key,
    canonical_values,
    joined,
    leaf_of,
    sealed_setting,
    table_of,
)
from data.schema import Event, Setting, Table, now

GENESIS = "0" * 64
TAIL = '"]'  # of an event as it is hashed, after the hash of the one before
SAID = ("at", "actor", "action", "detail")  # what an event says, in the order it is hashed in
LOCKED = "locked"
REVIEWED = "response reviewed"
CHAIN = 6_337_589  # any number, as long as nothing else in the database locks it
COLUMNS: Mapping[str, tuple[str, ...]] = {
    name: part.columns for name, part in SEALS.items() if part.how is How.ACT
}
Seal = dict[str, Any]
_LAST = select(Event.sha256).order_by(desc(Event.id)).limit(1)
_EVENTS = Table.metadata.tables[str(Event.__tablename__)]
_LOCK_CHAIN = select(func.pg_advisory_xact_lock(CHAIN))
_PREVIOUS = select(func.coalesce(_LAST.scalar_subquery(), GENESIS).label("sha256")).subquery()
_HASHED = bindparam("head", type_=Text()).concat(_PREVIOUS.c.sha256).concat(TAIL)
_APPEND = insert(_EVENTS).from_select(
    (*SAID, "previous", "sha256"),
    select_columns(
        *(bindparam(name, type_=_EVENTS.c[name].type) for name in SAID),
        _PREVIOUS.c.sha256,
        func.encode(func.sha256(func.convert_to(_HASHED, "UTF8")), "hex"),
    ),
)
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
        cells = itemgetter(*COLUMNS[self.table])
        for row in rows:
            self.add_values(cells(row))

    def add_values(self, values: Iterable[object]) -> None:
        """Take in one row, its values in the order of the table's `COLUMNS`."""
        self.rows += 1
        self._hash.update(canonical_values(values))

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


def write_rows(
    session: Session, model: type[Table], rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Insert the rows that one act writes; return what its event says of them, nothing of none."""
    if not rows:
        return []
    written = Batch(str(model.__tablename__))
    write_last(session, insertion(model), [{**row, "batch": written.token} for row in rows])
    written.add(rows)
    return [written.detail()]


@cache
def insertion(model: type[Table]) -> Insert:
    """Return the statement that adds rows; making one costs more than running it.

    It refuses a column that the table does not have.
    """
    return insert(model.metadata.tables[str(model.__tablename__)]).inline()  # no key is asked for


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
    told, at = dict(detail) | ({"sealed": [*seals]} if seals else {}), now()
    head = _head(at, actor, action, told)
    event = {"at": at, "actor": actor, "action": action, "detail": told}
    if session.get_bind().dialect.name == "postgresql":
        _log_on_postgres(session, event | {"head": head})
        return
    previous = session.execute(_LAST).scalar() or GENESIS
    event |= {"previous": previous, "sha256": _sha256(head, previous)}
    session.flush()
    session.execute(insertion(Event), event)


def _log_on_postgres(session: Session, event: Mapping[str, Any]) -> None:
    """Lock the chain, and append: the server hashes, so that nothing is asked while it is locked.

    Two statements, since each sees what was stored when it began. A transaction that shares the
    study with others writes all in its last round trip, and others wait only for that: the rows of
    an act get their keys in the order of the events, which `verify` holds them to.
    """
    session.flush()
    write_last(session, _LOCK_CHAIN, {}, first=True)
    write_last(session, _APPEND, event)


def event_hash(event: Event | Row[Any]) -> str:
    """Return the SHA-256 over an event's content and its predecessor's hash."""
    return _sha256(_head(event.at, event.actor, event.action, event.detail), event.previous)


def _sha256(head: str, previous: str) -> str:
    return hashlib.sha256((head + previous + TAIL).encode()).hexdigest()


def _head(at: datetime, actor: str, action: str, detail: Mapping[str, Any]) -> str:
    """Return what is hashed of an event, as JSON, up to the hash of the one before."""
    return json.dumps([at.isoformat(), actor, action, detail, ""], sort_keys=True)[: -len(TAIL)]


def refuse_locked(session: Session) -> None:
    """Raise NotAllowed if the study is locked: nothing may be written then.

    Raises
    ------
    NotAllowed
        Says since when, and what a coordinator can do.
    """
    refuse_locked_since(session.exec(_LOCKED).first())


def refuse_locked_since(since: str | None) -> None:
    """Raise NotAllowed if the study is locked since a time, as `refuse_locked` does."""
    if since is not None:
        raise NotAllowed(
            f"the study is locked since {since}; a coordinator can reopen it, which is recorded "
            '(`medjury study lock --reopen --reason "..."`; in the app: Study, Record)'
        )


def sealed(*rows: Table) -> list[Seal]:
    """Return a seal for each row, whose key is known: it holds until the row is sealed anew."""
    return [seal_together(part, [_values(part, row)]) for row in rows for part in [_part_of(row)]]


def seal_together(part: str, rows: Sequence[Mapping[str, Any]]) -> Seal:
    """Return one seal for rows of a part of `SEALS`, with their keys, in the order of the keys."""
    cells = sorted((_sealed_cells(part, row) for row in rows), key=lambda row: row[0])
    return {
        "table": part,
        "keys": list(_key_runs([row[0] for row in cells])),
        "rows": len(cells),
        "sha256": joined(map(leaf_of, cells)),
    }


def taken_away(row: Table) -> Seal:
    """Return what says that a row is deleted, and what it was: who else was sealed with it stays."""
    part = _part_of(row)
    cells = _sealed_cells(part, _values(part, row))
    return {"table": part, "gone": [cells[0]], "was": [leaf_of(cells).hex()]}


def keep_setting(session: Session, key: str, value: str) -> list[Seal]:
    """Store a setting inside the caller's transaction; return its seal for the act's event."""
    return sealed(session.merge(Setting(key=key, value=value)))


def new_salt() -> str:
    """Return a random salt."""
    return secrets.token_hex(SALT_BYTES)


def last_key(session: Session, model: type[Table]) -> int:
    """Return the greatest key of a table, 0 where it has no row."""
    return session.exec(select(func.max(model.__table__.c.id))).one() or 0  # type: ignore[attr-defined]


def seal_since(
    session: Session, part: str, model: type[Table], last: int, rows: Sequence[Mapping[str, Any]]
) -> Seal:
    """Return one seal for rows that were just added, in their order, after the key `last`.

    Nobody else writes meanwhile, so the keys that are new are theirs.
    """
    keys = model.__table__.c.id  # type: ignore[attr-defined]
    new_keys = session.exec(select(keys).where(keys > last).order_by(keys)).all()
    return seal_together(
        part, [{**row, "id": key} for key, row in zip(new_keys, rows, strict=True)]
    )


def _key_runs(keys: Sequence[Key]) -> Iterator[Any]:
    """Yield keys, whole numbers as runs from first to last."""
    start = last = None
    for key in keys:
        if not isinstance(key, int):
            yield key
        elif last is not None and key == last + 1:
            last = key
        else:
            if last is not None:
                yield [start, last]
            start = last = key
    if last is not None:
        yield [start, last]


def _part_of(row: Table) -> str:
    return str(row.__tablename__)


def _values(part: str, row: Table) -> dict[str, Any]:
    return {column: getattr(row, column) for column in SEALS[part].columns}


def _sealed_cells(part: str, row: Mapping[str, Any]) -> list[Any]:
    """Return what of a row is under the digest, as it is read back."""
    floats = _floats(part)
    cells: list[Any] = [_as_stored(row[column], column in floats) for column in SEALS[part].columns]
    if part == "setting":
        cells[1] = sealed_setting(*cells)
    return cells


def _as_stored(value: object, is_number: bool) -> object:
    """Return a value as it is read back: a whole number in a column of numbers is one of them."""
    return float(value) if is_number and isinstance(value, int) else value


@cache
def _floats(part: str) -> frozenset[str]:
    columns: Iterable[Any] = Table.metadata.tables[table_of(part)].columns
    return frozenset(column.name for column in columns if isinstance(column.type, Float))
