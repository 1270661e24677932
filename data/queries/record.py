"""Reading the record: what happened, and whether anything was changed behind its back."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Row
from sqlmodel import Session, col, select

from data.database import reading
from data.errors import BadInput
from data.queries.base import columns_of
from data.queries.descriptions import description_findings
from data.queries.ledger import ledger_findings, report_findings
from data.schema import (
    Authorship,
    Drill,
    Event,
    Instance,
    Mask,
    Rating,
    Remark,
    Response,
    Setting,
    Span,
    Subgroup,
    Submission,
)
from data.store.audit import COLUMNS, GENESIS, INSTANCE, LOCKED, Batch, event_hash
from data.store.masks import MASKED, mask_digest
from data.store.training import experts_digest

PAGE = 2000
IMPORTED, ANSWERED = "expert scores imported", "training answered"
HEAD = re.compile("[0-9a-f]{64}")
EVENT = ("id", "at", "actor", "action", "detail", "previous", "sha256")
STREAMED = {
    "rating": Rating,
    "subgroup": Subgroup,
    "remark": Remark,
    "span": Span,
    "submission": Submission,
}
Promised = Mapping[tuple[str, str], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Verified:
    """What a check of the record found.

    Attributes
    ----------
    events
        Length of the chain.
    head
        Hash of its last event; compare it with one that was kept elsewhere.
    rows
        Table -> rows that an event vouches for.
    findings
        A sentence for each thing that is wrong; empty where the record is whole.
    """

    events: int
    head: str
    rows: Mapping[str, int]
    findings: tuple[str, ...]


def verify(engine: Engine, head: str | None = None) -> Verified:
    """Check every event and every row that an event vouches for.

    Finds a row that was changed, deleted, added or moved within its table, and an event that
    was changed, deleted or moved. What was cut off from the end together with its rows can
    only be found with a `head` that was kept elsewhere.

    Raises
    ------
    BadInput
        If `head` is no hash at all: a slip of the pen is no forgery.
    """
    findings: list[str] = []
    kept = None if head is None else _head(head)
    with reading(engine) as session:
        _one_snapshot(session)
        chain = _Chain(session, findings)
        if kept is not None and kept not in chain.hashes:
            findings.append(
                "the event with the given hash is gone: the record was cut or rewritten"
            )
        rows = {table: _check(session, table, chain.promised, findings) for table in COLUMNS}
        _check_masks(session, chain.masks, findings)
    findings += training_findings(engine)
    findings += description_findings(engine)
    findings += ledger_findings(engine)
    findings += report_findings(engine)
    return Verified(len(chain.hashes), chain.head, rows, tuple(findings))


def _head(given: str) -> str:
    """Return a head as the chain has it; refuse what cannot be one."""
    head = given.strip().lower()
    if not HEAD.fullmatch(head):
        raise BadInput(
            f"head {given[:80]!r}: not a hash of the record; it has 64 characters 0-9 and a-f, as "
            "`medjury verify` and `medjury lock` print it"
        )
    return head


def acts(engine: Engine, *actions: str) -> list[Event]:
    """Return the events of some kinds, oldest first."""
    query = select(Event).where(col(Event.action).in_(actions)).order_by(col(Event.id))
    with reading(engine) as session:
        found = list(session.exec(query))
        session.expunge_all()
    return found


def training_findings(engine: Engine) -> list[str]:
    """Return a sentence for each expert score or training answer changed behind the record's back."""
    with reading(engine) as session:
        query = select(Event).where(col(Event.action).in_((IMPORTED, ANSWERED)))
        events = list(session.exec(query.order_by(col(Event.id))))
        return _experts(session, events) + _answers(session, events)


def locked_since(engine: Engine) -> str | None:
    """Return since when and by whom a study is locked, None if it is not."""
    with reading(engine) as session:
        held = session.get(Setting, LOCKED)
        return held.value if held else None


def _one_snapshot(session: Session) -> None:
    """See the study as it stands now, whatever is written meanwhile; SQLite always does."""
    if session.get_bind().dialect.name != "sqlite":
        session.connection(execution_options={"isolation_level": "REPEATABLE READ"})


class _Chain:
    """All events, and what they say of the rows they wrote.

    Attributes
    ----------
    promised
        (table, batch) -> number and digest of its rows.
    masks
        response_id -> digest of its newest masks.
    """

    def __init__(self, session: Session, findings: list[str]) -> None:
        self.head = GENESIS
        self.hashes: set[str] = set()
        self.promised: dict[tuple[str, str], Mapping[str, Any]] = {}
        self.masks: dict[str, str] = {}
        for event in _stream(session, Event, EVENT):
            findings += self._take(event)

    def _take(self, event: Row[Any]) -> Iterator[str]:
        """Take in one event; yield how it does not follow from the one before."""
        if event.previous != self.head:
            yield f"event {event.id}: an event before it was deleted, added or moved"
        if event_hash(event) != event.sha256:
            yield f"event {event.id} ({event.action}): its content was changed"
        self.head = event.sha256
        self.hashes.add(event.sha256)
        for said in _batches(event.detail):
            self.promised[said["table"], said["batch"]] = said
        if event.action == MASKED:
            self.masks |= event.detail.get("masks", {})


def _batches(detail: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield what an event says of the rows it wrote."""
    if "batch" in detail:
        yield detail
    yield from detail.get("written", ())


def _check(session: Session, table: str, promised: Promised, findings: list[str]) -> int:
    """Compare a table's rows with what events say of them; return how many are vouched for."""
    batches: dict[str, Batch] = {}
    unknown = 0
    for row in _rows(session, table):
        batch = row[0]
        if (table, batch) not in promised:
            unknown += 1
            continue
        if batch not in batches:
            batches[batch] = Batch(table)
        batches[batch].add_values(row[1:])
    if unknown:
        findings.append(f"{table}: {unknown} rows that no event vouches for")
    nothing = Batch(table)
    for (name, batch), said in promised.items():
        if name == table and said["rows"]:
            findings += _compare(said, batches.get(batch, nothing))
    return sum(batch.rows for batch in batches.values())


def _compare(said: Mapping[str, Any], found: Batch) -> Iterator[str]:
    """Yield how the rows that were found differ from what an event says of them."""
    table, rows = said["table"], said["rows"]
    if found.rows != rows:
        yield f"{table}: an act wrote {rows} rows, {found.rows} are there"
    elif found.sha256 != said["sha256"]:
        yield f"{table}: {rows} rows of one act, some changed or moved"


def _rows(session: Session, table: str) -> Iterable[Row[Any]]:
    """Return batch and content of a table's rows in the order they were written."""
    if table == "response":
        return _responses(session)
    return _stream(session, STREAMED[table], ("batch", *COLUMNS[table]))


def _stream(session: Session, model: Any, names: Iterable[str]) -> Iterable[Row[Any]]:
    """Return columns of a table page by page: rows, since objects would take five times as long."""
    query = columns_of(*(getattr(model, name) for name in names)).order_by(model.id)
    return session.execute(query.execution_options(yield_per=PAGE))


def _responses(session: Session) -> Iterable[Row[Any]]:
    """Return batch and content of every response with its author and its instance."""
    given = (Response.batch, Response.response_id, Response.text, Authorship.model)
    asked = (getattr(Instance, name) for name in INSTANCE)
    query = (
        columns_of(*given, *asked)
        .select_from(Response)
        .join(Authorship)
        .join(Instance)
        .order_by(col(Response.id))
    )
    return session.execute(query.execution_options(yield_per=PAGE))


def _check_masks(session: Session, promised: Mapping[str, str], findings: list[str]) -> None:
    """Note responses that are shown otherwise than the record says they were masked."""
    places: dict[int, list[tuple[int, int, str]]] = {}
    for one in session.exec(select(Mask).order_by(col(Mask.id))):
        places.setdefault(one.response, []).append((one.start, one.end, one.text))
    query = select(Response.id, Response.response_id, Response.shown).where(
        col(Response.shown).is_not(None) | col(Response.id).in_(select(Mask.response))
    )
    found = {
        name: mask_digest(shown, places.get(key or 0, []))
        for key, name, shown in session.exec(query)
    }
    findings += [
        f"response {name}: shown otherwise than it was masked"
        for name in sorted({*found, *promised})
        if found.get(name) != promised.get(name)
    ]


def _experts(session: Session, events: list[Event]) -> list[str]:
    """Compare the expert scores with the digest of the last import."""
    said = [one.detail["sha256"] for one in events if one.action == IMPORTED]
    expected = said[-1] if said else hashlib.sha256().hexdigest()
    changed = experts_digest(session) != expected
    return ["expert: the scores are not those that were imported"] if changed else []


def _answers(session: Session, events: list[Event]) -> list[str]:
    """Compare every training answer with its event."""
    said = {
        one.detail["drill"]: (one.actor, one.detail) for one in events if one.action == ANSWERED
    }
    found = {one.id or 0: one for one in session.exec(select(Drill).order_by(col(Drill.id)))}
    findings = [f"drill: answer {key} is gone" for key in said.keys() - found.keys()]
    for key, one in found.items():
        if key not in said:
            findings.append(f"drill: no event vouches for answer {key}")
            continue
        actor, detail = said[key]
        kept = (f"rater {one.rater}", one.response, one.round + 1, one.scores)
        if kept != (actor, detail["response"], detail["round"], detail["scores"]):
            findings.append(f"drill: answer {key} was changed")
    return findings
