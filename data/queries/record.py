"""Reading the record: what happened, and whether anything was changed behind its back."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading
from data.schema import Authorship, Event, Instance, Rating, Remark, Response, Setting, Span
from data.store.audit import COLUMNS, GENESIS, LOCKED, canonical, event_hash

PAGE = 2000


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
    """
    findings: list[str] = []
    with reading(engine) as session:
        events = _chain(session, findings)
        if head is not None and head not in {one.sha256 for one in events}:
            findings.append(
                "the event with the given hash is gone: the record was cut or rewritten"
            )
        promised = {
            (one["table"], one["batch"]): one for event in events for one in _batches(event.detail)
        }
        rows = {table: _check(session, table, promised, findings) for table in COLUMNS}
        _check_masks(session, findings)
    last = events[-1].sha256 if events else GENESIS
    return Verified(len(events), last, rows, tuple(findings))


def acts(engine: Engine, *actions: str) -> list[Event]:
    """Return the events of some kinds, oldest first."""
    query = select(Event).where(col(Event.action).in_(actions)).order_by(col(Event.id))
    with reading(engine) as session:
        found = list(session.exec(query))
        session.expunge_all()
    return found


def locked_since(engine: Engine) -> str | None:
    """Return since when and by whom a study is locked, None if it is not."""
    with reading(engine) as session:
        held = session.get(Setting, LOCKED)
        return held.value if held else None


def _chain(session: Session, findings: list[str]) -> list[Event]:
    """Return all events; note where one does not follow from the one before."""
    events = list(session.exec(select(Event).order_by(col(Event.id))))
    before = GENESIS
    for event in events:
        if event.previous != before:
            findings.append(f"event {event.id}: an event before it was deleted, added or moved")
        if event_hash(event) != event.sha256:
            findings.append(f"event {event.id} ({event.action}): its content was changed")
        before = event.sha256
    return events


def _batches(detail: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield what an event says of the rows it wrote."""
    if "batch" in detail:
        yield detail
    yield from detail.get("written", ())


def _check(
    session: Session,
    table: str,
    promised: Mapping[tuple[str, str], Mapping[str, Any]],
    findings: list[str],
) -> int:
    """Compare a table's rows with what events say of them; return how many are vouched for."""
    counts: dict[str, int] = {}
    hashes: dict[str, Any] = {}
    unknown = 0
    for batch, row in _rows(session, table):
        if (table, batch) not in promised:
            unknown += 1
            continue
        counts[batch] = counts.get(batch, 0) + 1
        hashes.setdefault(batch, hashlib.sha256()).update(canonical(row, COLUMNS[table]))
    if unknown:
        findings.append(f"{table}: {unknown} rows that no event vouches for")
    for (name, batch), said in promised.items():
        if name != table or not said["rows"]:
            continue
        if counts.get(batch, 0) != said["rows"]:
            found = counts.get(batch, 0)
            findings.append(f"{table}: an act wrote {said['rows']} rows, {found} are there")
        elif hashes[batch].hexdigest() != said["sha256"]:
            findings.append(f"{table}: {said['rows']} rows of one act, some changed or moved")
    return sum(counts.values())


def _rows(session: Session, table: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (batch, row) of a table in the order it was written, page by page."""
    if table == "response":
        yield from _responses(session)
        return
    model: Any = {"rating": Rating, "remark": Remark, "span": Span}[table]
    query = select(model).order_by(model.id).execution_options(yield_per=PAGE)
    for one in session.exec(query):
        yield one.batch or "", {name: getattr(one, name) for name in COLUMNS[table]}


def _responses(session: Session) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (batch, row) of every response with its author and its instance."""
    query = (
        select(Response, Authorship.model, Instance)
        .join(Authorship, col(Authorship.response) == col(Response.id))
        .join(Instance, col(Instance.id) == col(Response.instance))
        .order_by(col(Response.id))
        .execution_options(yield_per=PAGE)
    )
    for one, model, instance in session.exec(query):
        given = {"response_id": one.response_id, "text": one.text, "model": model}
        asked = ("benchmark", "instance_id", "context", "prompt", "reference", "checklist")
        yield one.batch or "", given | {name: getattr(instance, name) for name in asked}


def _check_masks(session: Session, findings: list[str]) -> None:
    """Note responses that are shown otherwise than their masks say."""
    masked = select(Response).where(col(Response.shown).is_not(None))
    for one in session.exec(masked):
        kept = one.shown or ""
        if any(part and part not in one.text for part in kept.split("[author masked]")):
            findings.append(f"response {one.response_id}: shown otherwise than it was masked")
