"""Comparing rows with what events say of them: seals by key, and digests by act."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from sqlalchemy import Row, String, collate
from sqlalchemy import Table as DbTable
from sqlmodel import Session

from data.importers.package import AUTHORS_ADDED, EVERY, RESTORED, WITHHELD
from data.queries.base import columns_of
from data.queries.package import kept_setting
from data.record import (
    SEALS,
    How,
    Key,
    joined,
    leaf_of,
    sealed_setting,
    table_of,
)
from data.schema import Table
from data.store.access import SESSION_KEY
from data.store.audit import COLUMNS, Batch

PAGE = 2000
MOST_NAMED = 5
PARTS = tuple(name for name, seal in SEALS.items() if seal.how is How.KEYS)
STAYS = tuple(name for name in PARTS if table_of(name) not in EVERY)
FIRST = 5


@dataclass(slots=True)
class Seal:
    """What one event says of some rows of a part of `SEALS`.

    Attributes
    ----------
    displaced
        Key -> SHA-256 of rows that a later act changed or deleted, as they were.
    """

    part: str
    event: int
    keys: list[Key]
    sha256: str
    is_withheld: bool = False
    displaced: dict[Key, bytes] = field(default_factory=dict)


class Seals:
    """All seals of a chain, the newest of each row.

    Attributes
    ----------
    authors_withheld
        Whether this study came from a package without authors, and they were not added since.
    """

    def __init__(self) -> None:
        self.newest: dict[str, dict[Key, Seal]] = {part: {} for part in PARTS}
        self.authors_withheld = False

    def take(self, event: Row[Any]) -> None:
        """Take in what an event seals, and what of the study it leaves behind."""
        if event.action == RESTORED:
            self._leave_behind(authors=event.detail.get("authors") == "with")
        if event.action == AUTHORS_ADDED:
            self.authors_withheld = False
        for content in event.detail.get("sealed", ()):
            if content["table"] in self.newest:
                self._take(event.id, content)

    def _take(self, event: int, content: Mapping[str, Any]) -> None:
        newest = self.newest[content["table"]]
        for key, leaf in zip_longest(content.get("gone", ()), content.get("was", ())):
            before = newest.pop(key, None)
            if before is not None and leaf is not None:
                before.displaced[key] = bytes.fromhex(leaf)
        if "gone" in content:
            return
        keys = list(_keys(content["keys"]))
        seal = Seal(content["table"], event, keys, content["sha256"])
        newest.update(dict.fromkeys(keys, seal))

    def _leave_behind(self, *, authors: bool) -> None:
        """Forget what no package brings: ways in, secrets, and work at a provider."""
        for part in STAYS:
            self.newest[part].clear()
        settings = self.newest["setting"]
        for key in [key for key in settings if not kept_setting(str(key))]:
            del settings[key]
        self.authors_withheld = not authors
        for seal in self.newest["authorship"].values():
            seal.is_withheld = not authors


def sealed_findings(
    session: Session, part: str, seals: Seals, counts: dict[str, int]
) -> Iterator[str]:
    """Yield how rows of a part differ from their seals; note in `counts` how many are sealed."""
    checked = _Part(session, part, seals)
    yield from checked.findings()
    counts[part] = checked.rows


def named(keys: Sequence[object], number: int) -> str:
    """Return the keys of some rows, the first few of many; no text of a row."""
    names = ", ".join(str(key)[:40] for key in keys[:MOST_NAMED])
    return f"{names} and {number - MOST_NAMED} more" if number > MOST_NAMED else names


class _Part:
    """The rows of one part of `SEALS`, compared with their newest seals."""

    def __init__(self, session: Session, part: str, seals: Seals) -> None:
        self.session, self.part, self.seals = session, part, seals
        self.newest = seals.newest[part]
        self.rows = 0

    def findings(self) -> Iterator[str]:
        """Yield what is wrong."""
        leaves: dict[Key, bytes] = {}
        unknown: list[Key] = []
        for key, cells in self._rows():
            seal = self.newest.get(key)
            if seal is None:
                unknown += [] if self._may_be_unsealed(cells) else [key]
            elif seal.is_withheld and self.seals.authors_withheld:
                yield from self._withheld(key, cells)
            else:
                leaves[key] = leaf_of(cells)
                self.rows += 1
        if unknown:
            yield f"{_named(self.part, unknown)}: no event vouches for {_pronoun(unknown)}"
        for seal in {id(one): one for one in self.newest.values()}.values():
            yield from self._compare(seal, leaves)

    def _compare(self, seal: Seal, leaves: Mapping[Key, bytes]) -> Iterator[str]:
        """Yield which rows of one seal are gone or changed."""
        if seal.is_withheld and self.seals.authors_withheld:
            return
        mine = [key for key in seal.keys if self.newest.get(key) is seal]
        gone = [key for key in mine if key not in leaves]
        if self.part == "setting" and gone == [SESSION_KEY]:
            return  # no copy has it: without it nobody is signed in
        if gone:
            yield f"{_named(self.part, gone)}: gone since event {seal.event}"
        found = {key: leaves[key] for key in mine if key in leaves} | seal.displaced
        if not gone and joined(found[key] for key in seal.keys if key in found) != seal.sha256:
            some = "some of them " if len(mine) > 1 else ""
            yield f"{_named(self.part, mine)}: {some}changed since event {seal.event}"

    def _rows(self) -> Iterator[tuple[Key, list[Any]]]:
        """Yield key and cells of every row, in the order of the keys."""
        spec, table = SEALS[self.part], _table(self.part)
        query = columns_of(*(table.c[name] for name in spec.columns))
        query = query.order_by(*table.primary_key)
        for row in self.session.execute(query.execution_options(yield_per=PAGE)):
            cells = list(row)
            if self.part == "setting":
                cells[1] = sealed_setting(*cells)
            yield cells[0], cells

    def _may_be_unsealed(self, cells: Sequence[object]) -> bool:
        """Tell whether a row needs no seal: an assignment with which nobody has done anything."""
        return self.part == "progress" and cells[1:] == ["open", 0, None, None, None]

    def _withheld(self, key: Key, cells: Sequence[object]) -> Iterator[str]:
        if cells[1:] != [WITHHELD, ""]:
            yield f"authorship {key}: an author, where the study came without"


def _table(part: str) -> DbTable:
    return Table.metadata.tables[table_of(part)]


def _keys(runs: Sequence[Any]) -> Iterator[Key]:
    """Yield the keys that a seal names: texts, and runs of whole numbers."""
    for run in runs:
        if isinstance(run, list):
            yield from range(run[0], run[1] + 1)
        else:
            yield run


def _pronoun(keys: Sequence[Key]) -> str:
    return "it" if len(keys) == 1 else "them"


def _named(part: str, keys: Sequence[Key]) -> str:
    """Return table and rows by their keys."""
    return f"{table_of(part)} {named(keys, len(keys))}"


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
    for part in (*([detail] if "batch" in detail else ()), *detail.get("written", ())):
        yield (part["table"], part["batch"]), Promise(event.id, part["rows"], part["sha256"])


def act_findings(
    session: Session, table: str, promised: Promised, counts: dict[str, int]
) -> Iterator[str]:
    """Yield how a table's rows differ from what events say; note how many are vouched for."""
    acts = _Acts(table, promised)
    [key_column] = Table.metadata.tables[table].primary_key
    for row in stream(session, table, ("batch", key_column.name, *COLUMNS[table])):
        batch, key, *cells = tuple(row)
        acts.take(batch, key, cells)
    counts[table] = sum(act.batch.rows for act in acts.acts.values())
    yield from acts.findings()


def stream(session: Session, table: str, names: Iterable[str]) -> Iterable[Row[Any]]:
    """Return columns of a table page by page: rows, since objects would take five times as long."""
    table_columns = Table.metadata.tables[table]
    [key] = table_columns.primary_key
    text = isinstance(key.type, String)  # each database sorts texts in its own way
    is_server = session.get_bind().dialect.name == "postgresql"
    order = collate(key, "C") if text and is_server else key
    query = columns_of(*(table_columns.c[name] for name in names)).order_by(order)
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
        for keys, problem in (
            (self.unknown, "no event vouches for"),
            (self.moved, "behind later rows, which changes what counts of"),
        ):
            if keys.number:
                yield f"{self.table} {keys}: {problem} {keys.it}"
        nothing = _Act(Batch(self.table))
        for (table, batch), promise in self.promised.items():
            if table == self.table and promise.rows:
                yield from self._compare(promise, self.acts.get(batch, nothing))

    def _compare(self, promise: Promise, act: _Act) -> Iterator[str]:
        """Yield how the rows that were found differ from what an event says of them."""
        rows = act.batch.rows
        if rows != promise.rows:
            yield f"{self.table}: event {promise.event} wrote {promise.rows} rows, {rows} are there"
        elif act.batch.sha256 != promise.sha256:
            some = "some of them " if rows > 1 else ""
            yield f"{self.table} {act.keys}: {some}changed or moved since event {promise.event}"
