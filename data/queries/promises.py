"""Comparing rows that name their act (`batch`) with what the act's event says of them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, String, collate, func
from sqlmodel import Session, col, select

from data.queries.base import columns_of
from data.queries.seals import named
from data.schema import Authorship, Instance, Response, Table
from data.store.audit import COLUMNS, INSTANCE, WITH_AUTHOR, Batch

PAGE, FIRST = 2000, 5
BY_ACT = tuple(table for table in COLUMNS if table not in WITH_AUTHOR)


@dataclass(frozen=True, slots=True)
class Promise:
    """What the event of one act says of the rows that it wrote, and which event that is."""

    event: int
    rows: int
    sha256: str


Promised = Mapping[tuple[str, Any], Promise]


def promises(event: Row[Any]) -> Iterator[tuple[tuple[str, Any], Promise]]:
    """Yield (table, batch) and what an event says of the rows it wrote."""
    detail = event.detail
    for said in (*([detail] if "batch" in detail else ()), *detail.get("written", ())):
        yield (said["table"], said["batch"]), Promise(event.id, said["rows"], said["sha256"])


def act_findings(
    session: Session, table: str, promised: Promised, counts: dict[str, int]
) -> Iterator[str]:
    """Yield how a table's rows differ from what events say; note how many are vouched for."""
    found = _Acts(table, promised)
    for row in _rows(session, table):
        batch, key, *cells = tuple(row)
        found.take(batch, key, cells)
    counts[table] = sum(one.batch.rows for one in found.acts.values())
    yield from found.findings()


def batch_findings(session: Session, promised: Promised) -> Iterator[str]:
    """Yield which responses name another act than brought them, where their authors are withheld."""
    query = select(Response.batch, func.count()).where(col(Response.batch).is_not(None))
    found = dict(session.exec(query.group_by(col(Response.batch))).all())
    said = {batch: one.rows for (table, batch), one in promised.items() if table == "response"}
    for batch in sorted({*found, *(one for one, rows in said.items() if rows)}, key=str):
        if found.get(batch, 0) != said.get(batch, 0):
            yield f"response: {found.get(batch, 0)} rows name an act that brought {said.get(batch, 0)}"


def stream(session: Session, table: str, names: Iterable[str]) -> Iterable[Row[Any]]:
    """Return columns of a table page by page: rows, since objects would take five times as long."""
    place = Table.metadata.tables[table]
    [key] = place.primary_key
    text = isinstance(key.type, String)  # each database sorts texts in its own way
    is_server = session.get_bind().dialect.name == "postgresql"
    order = collate(key, "C") if text and is_server else key
    query = columns_of(*(place.c[name] for name in names)).order_by(order)
    return session.execute(query.execution_options(yield_per=PAGE))


@dataclass(slots=True)
class _Keys:
    """The keys of some rows: how many, and the first few, to name them."""

    number: int = 0
    first: list[Any] = field(default_factory=list)

    def add(self, key: Any) -> None:
        """Count one row."""
        self.number += 1
        if len(self.first) < FIRST:
            self.first.append(key)

    @property
    def it(self) -> str:
        """How a sentence calls them."""
        return "it" if self.number == 1 else "them"

    def __str__(self) -> str:
        return named(self.first, self.number)


@dataclass(slots=True)
class _Act:
    """The rows that one act wrote, as they are found."""

    batch: Batch
    keys: _Keys = field(default_factory=_Keys)


class _Acts:
    """The acts whose rows a table holds, in the order of the rows."""

    def __init__(self, table: str, promised: Promised) -> None:
        self.table, self.promised = table, promised
        self.acts: dict[Any, _Act] = {}
        self.unknown, self.moved, self.newest = _Keys(), _Keys(), 0

    def take(self, batch: Any, key: Any, cells: Iterable[object]) -> None:
        """Take in one row; those of a later act stand behind those of an earlier one."""
        promise = self.promised.get((self.table, batch))
        if promise is None:
            if self.table != "response" or batch is not None:  # those are sealed by their keys
                self.unknown.add(key)
            return
        if batch not in self.acts:
            self.acts[batch] = _Act(Batch(self.table))
        self.acts[batch].batch.add_values(cells)
        self.acts[batch].keys.add(key)
        if promise.event < self.newest:
            self.moved.add(key)
        self.newest = max(self.newest, promise.event)

    def findings(self) -> Iterator[str]:
        """Yield what is wrong with the rows taken in."""
        for keys, what in (
            (self.unknown, "no event vouches for"),
            (self.moved, "behind later rows, which changes what counts of"),
        ):
            if keys.number:
                yield f"{self.table} {keys}: {what} {keys.it}"
        nothing = _Act(Batch(self.table))
        for (table, batch), said in self.promised.items():
            if table == self.table and said.rows:
                yield from self._compare(said, self.acts.get(batch, nothing))

    def _compare(self, said: Promise, found: _Act) -> Iterator[str]:
        """Yield how the rows that were found differ from what an event says of them."""
        rows = found.batch.rows
        if rows != said.rows:
            yield f"{self.table}: event {said.event} wrote {said.rows} rows, {rows} are there"
        elif found.batch.sha256 != said.sha256:
            some = "some of them " if rows > 1 else ""
            yield f"{self.table} {found.keys}: {some}changed or moved since event {said.event}"


def _rows(session: Session, table: str) -> Iterable[Row[Any]]:
    """Return batch, key and content of a table's rows in the order they were written."""
    if table == "response":
        return _responses(session)
    [key] = Table.metadata.tables[table].primary_key
    return stream(session, table, ("batch", key.name, *COLUMNS[table]))


def _responses(session: Session) -> Iterable[Row[Any]]:
    """Return batch, key and content of every response with its author and its instance."""
    given = (
        *(Response.batch, Response.id, Response.response_id, Response.text, Authorship.model),
        *(getattr(Instance, name) for name in INSTANCE),
    )
    query = columns_of(*given).select_from(Response).join(Authorship).join(Instance)
    ordered = query.order_by(col(Response.id))
    return session.execute(ordered.execution_options(yield_per=PAGE))
