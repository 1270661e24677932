"""The audit chain, and the acts of a coordinator that end in it: locking, reopening, unblinding.

Each event carries the hash of the one before, and digests of what it wrote.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, Row, func, insert
from sqlmodel import Session, col, desc, select

from data.database import transaction
from data.errors import BadInput, Conflict, NotAllowed
from data.schema import Authorship, Event, Response, Setting, Table, now

GENESIS = "0" * 64
LOCKED = "locked"
CHAIN = 6_337_589  # any number, as long as nothing else in the database locks it
RATING = (
    "response",
    "rater",
    "criterion",
    "score",
    "rubric_sha256",
    "pass_",
    "replicate",
    "comment",
    "at",
)
INSTANCE = ("benchmark", "instance_id", "context", "prompt", "reference", "checklist")
RESPONSE = ("response_id", "text", "model", *INSTANCE)
REMARK = ("assignment", "kind", "text", "revision", "at")
SPAN = ("assignment", "criterion", "start", "end", "text", "error", "note", "revision", "at")
COLUMNS = {"rating": RATING, "response": RESPONSE, "remark": REMARK, "span": SPAN}
_LOCKED = select(Setting.value).where(Setting.key == LOCKED)
_ENCODER = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))  # made once: it is slow


class Batch:
    """Rows of one table that one act writes, and their digest in the order they are written.

    Attributes
    ----------
    token
        Random; stands in the `batch` column of every row and in the act's event.
    """

    def __init__(self, table: str) -> None:
        self.table, self.token, self.rows = table, secrets.token_hex(8), 0
        self._hash = hashlib.sha256()

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Count rows and take them into the digest."""
        for row in rows:
            self.add_values(row[name] for name in COLUMNS[self.table])

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
    session.execute(insert(model), [{**row, "batch": written.token} for row in rows])
    written.add(rows)
    return [written.detail()]


def canonical(row: Mapping[str, Any], columns: Iterable[str]) -> bytes:
    """Return a row's content as bytes that are the same before and after storage."""
    return canonical_values(row[name] for name in columns)


def canonical_values(values: Iterable[object]) -> bytes:
    """Return values, in the order of their table's columns, as `canonical` does."""
    return _ENCODER.encode([_plain(value) for value in values]).encode() + b"\n"


def log(session: Session, actor: str, action: str, detail: Mapping[str, Any]) -> None:
    """Append one event to the chain, inside the caller's transaction."""
    _one_at_a_time(session)
    last = session.exec(select(Event.sha256).order_by(desc(Event.id)).limit(1)).first()
    event = Event(
        at=now(),
        actor=actor,
        action=action,
        detail=dict(detail),
        previous=last or GENESIS,
        sha256="",
    )
    event.sha256 = event_hash(event)
    session.add(event)
    session.flush()


def _one_at_a_time(session: Session) -> None:
    """Let no other transaction append meanwhile, or two events would follow the same one.

    SQLite has one writer anyway.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(CHAIN)))


def event_hash(event: Event | Row[Any]) -> str:
    """Return the SHA-256 over an event's content and its predecessor's hash."""
    body = [event.at.isoformat(), event.actor, event.action, event.detail, event.previous]
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
            '`medjury lock --reopen --reason "..."`, which is recorded'
        )


def _plain(value: object) -> object:
    """Return a value as JSON has it: times in UTC, whole numbers and text as they are."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return value


def lock(engine: Engine, who: str) -> str:
    """Lock a study against every change; return the hash of the chain's last event.

    Keep that hash elsewhere: `verify` against it proves that nothing was cut off since.
    """
    with transaction(engine) as session:
        if (held := session.get(Setting, LOCKED)) is not None:
            raise Conflict(f"the study is locked already, since {held.value}")
        log(session, who, "locked", {})
        session.add(Setting(key=LOCKED, value=f"{now():%Y-%m-%d %H:%M} UTC by {who}"))
        newest = select(Event.sha256).order_by(col(Event.id).desc()).limit(1)
        return session.exec(newest).one()


def reopen(engine: Engine, who: str, reason: str) -> None:
    """Open a locked study again, with a reason that stays in the record."""
    _need(reason)
    with transaction(engine) as session:
        held = session.get(Setting, LOCKED)
        if held is None:
            raise Conflict("the study is not locked")
        session.delete(held)
        log(session, who, "reopened", {"reason": reason.strip()})


def unblind(engine: Engine, who: str, reason: str) -> list[tuple[str, str]]:
    """Record that the blind is lifted, and return (response_id, model) of every response."""
    _need(reason)
    with transaction(engine) as session:
        log(session, who, "unblinded", {"reason": reason.strip()})
        rows = session.exec(
            select(Response.response_id, Authorship.model)
            .join(Authorship)
            .order_by(col(Response.id))
        )
        return [(response, model) for response, model in rows]


def _need(reason: str) -> None:
    if not reason.strip():
        raise BadInput("a reason is needed; it stays in the record")
