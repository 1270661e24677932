"""Verifying the record of a study against all its rows; reading past events."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, Row, exists, func
from sqlmodel import Session, col, select

from data.database import reading
from data.record import (
    ACTS,
    AUTHORS_ADDED,
    CHANGES,
    DELETED,
    GENESIS,
    HELD,
    LOCKED,
    REOPENED,
    RESTORED,
    SETTINGS,
    WHILE_LOCKED,
    Columns,
    Head,
    Key,
    columns_of_table,
    commitment,
    event_hash,
    head_given,
    joined,
    keys_of,
)
from data.schema import Event, Instance, Response, Setting, Table
from data.study.access import SESSION_KEY
from data.study.base import columns_of
from data.study.copies import AUTHORS, STAYS, WITHHELD, kept_setting

PAGE = 2000
MOST_NAMED = 5
SEALED = tuple(
    name
    for name, table in Table.metadata.tables.items()
    if {*table.c.keys()} - {*HELD.get(name, ())}
)


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
    authors_withheld
        Whether the study came without its authors, so that nothing is said of them.
    findings
        A sentence for each thing that is wrong; empty where the record is whole.
    since
        Act -> how often it came since the head that was kept elsewhere; None without one.
    """

    events: int
    head: str
    rows: Mapping[str, int]
    findings: tuple[str, ...]
    authors_withheld: bool = False
    since: Mapping[str, int] | None = None


def verify(engine: Engine, head: str | None = None) -> Verified:
    """Check every event and every row: `data.record` says what is under which seal.

    Finds a row that was changed, deleted, added or moved within its table, an event that was changed,
    deleted or moved, one that seals what no act of its kind writes or what was sealed before, and one
    that came while the study was locked. What was cut off from the end together with its rows can
    only be found with a `head` that was kept elsewhere, its hash or the file of it; with one, what
    came since is told, and is a finding where the study was locked then.

    Raises
    ------
    BadInput, BadFile
        If `head` is neither a hash nor a file of one.
    """
    expected_head = None if head is None else head_given(head)
    with reading(engine) as session:
        if session.get_bind().dialect.name != "sqlite":  # which always sees one snapshot
            session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        return verify_in(session, expected_head)


def verify_in(session: Session, head: Head | None = None) -> Verified:
    """Check a study as a session sees it, also what it has not committed: see `verify`."""
    try:
        chain = _Chain(session, head)
    except (ValueError, TypeError):
        unread = "event: a cell is not of its column's type; nothing else could be checked"
        return Verified(0, GENESIS, {}, (unread,))
    findings = [*chain.findings, *([] if head is None else _head_findings(chain.hashes, head))]
    rows: dict[str, int] = {}
    for table in SEALED:
        findings += _readable(_table_findings(session, table, chain, rows))
    findings += _readable(_texts(session, authors_withheld=chain.authors_withheld))
    findings += _readable(orphans(session))
    found = tuple(dict.fromkeys(findings))
    since = None if head is None else Counter(chain.since)
    return Verified(len(chain.hashes), chain.head, rows, found, chain.authors_withheld, since)


def _readable(findings: Iterable[str]) -> Iterator[str]:
    """Yield findings; that a cell is no time, or no JSON, where it must be one is a finding too."""
    try:
        yield from findings
    except (KeyError, ValueError, TypeError) as error:
        yield f"a table has a cell that is not of its column's type ({type(error).__name__})"


def present_head(engine: Engine) -> Head:
    """Return the head of the record as it stands; of an empty one, zeros."""
    with reading(engine) as session:
        hashes = session.exec(select(Event.sha256).order_by(col(Event.id))).all()
    return Head(hashes[-1], len(hashes), hashes[0]) if hashes else Head(GENESIS, 0, GENESIS)


def _head_findings(hashes: Sequence[str], head: Head) -> Iterator[str]:
    """Yield how a chain does not go through a head that was kept elsewhere."""
    if head.study and hashes and hashes[0] != head.study:
        yield "the head is of another study, or this record was written anew from its beginning"
    elif head.events and len(hashes) < head.events:
        yield f"the record was cut: it has {len(hashes)} events, and had {head.events} at the head"
    elif head.events and hashes[head.events - 1] != head.sha256:
        yield f"event {head.events} of the record is not the one of the head: it was rewritten"
    elif head.sha256 not in (GENESIS, *hashes):
        yield "the event with the given hash is gone: the record was cut or rewritten"


def acts(engine: Engine, *actions: str) -> list[Event]:
    """Return the events of some kinds, oldest first."""
    with reading(engine) as session:
        return acts_in(session, *actions)


def acts_in(session: Session, *actions: str) -> list[Event]:
    """Return the events of some kinds, oldest first, as a session sees them; it lets go of all."""
    query = select(Event).where(col(Event.action).in_(actions)).order_by(col(Event.id))
    events = list(session.exec(query))
    session.expunge_all()
    return events


def locked_since(engine: Engine) -> str | None:
    """Return since when and by whom a study is locked, None if it is not."""
    with reading(engine) as session:
        setting = session.get(Setting, LOCKED)
        return setting.value if setting else None


@dataclass(slots=True, eq=False)
class _Added:
    """The rows of one table that one event seals as new; `gone` were deleted since, as they were."""

    event: int
    keys: list[Key]
    sha256: str
    gone: dict[Key, bytes] = field(default_factory=dict)
    is_withheld: bool = False


class _Chain:
    """All events, and what they say of the rows that there must be.

    Attributes
    ----------
    added : table -> key -> the seal of what never changes of the row
    changed : table -> key -> SHA-256 of what may change of it, and the event that says so
    authors_withheld : whether the study came without authors, and they were not added since
    since : the acts since the head that was kept elsewhere
    """

    def __init__(self, session: Session, head: Head | None) -> None:
        self.head = GENESIS
        self.hashes: list[str] = []
        self.findings: list[str] = []
        self.added: dict[str, dict[Key, _Added]] = {name: {} for name in SEALED}
        self.changed: dict[str, dict[Key, tuple[bytes, int]]] = {name: {} for name in CHANGES}
        self.authors_withheld = False
        self.since: list[str] = []
        self._kept, self._is_past_head = head, False
        self._locked: int | None = None
        self._locked_at_head = False
        events = select(*(getattr(Event, name) for name in Event.model_fields))
        for event in session.execute(
            events.order_by(col(Event.id)).execution_options(yield_per=PAGE)
        ):
            self._take(event)

    def _take(self, event: Row[Any]) -> None:
        """Take in one event, and note how it does not follow from those before."""
        if event.previous != self.head:
            self.findings.append(
                f"event {event.id}: an event before it was deleted, added or moved"
            )
        if event_hash(event) != event.sha256:
            self._find(event, "its content was changed")
        self.head = event.sha256
        self.hashes.append(event.sha256)
        try:
            self._take_lock(event)
            self._take_seals(event)
        except (AttributeError, KeyError, TypeError, ValueError):
            self.findings.append(f"event {event.id}: what it says of rows cannot be read")

    def _find(self, event: Row[Any], problem: str) -> None:
        self.findings.append(f"event {event.id} ({event.action}): {problem}")

    def _take_lock(self, event: Row[Any]) -> None:
        if self._is_past_head:
            self.since.append(event.action)
            if self._locked_at_head and event.action not in WHILE_LOCKED:
                self._find(event, "came after the head, at which the study was locked")
        if self._locked is not None and event.action not in {*WHILE_LOCKED, REOPENED}:
            self._find(event, f"came while the study was locked since event {self._locked}")
        if event.action in (LOCKED, REOPENED):
            self._locked = event.id if event.action == LOCKED else None
        if self._kept is not None and event.sha256 == self._kept.sha256:
            self._is_past_head, self._locked_at_head = True, self._locked is not None

    def _take_seals(self, event: Row[Any]) -> None:
        if event.action == RESTORED:
            self._leave_behind(authors=event.detail.get("authors") == "with")
        if event.action == AUTHORS_ADDED:
            self.authors_withheld = False
        own = ACTS.get(event.action, frozenset())
        for table, seal in event.detail.get("sealed", {}).items():
            if table not in own:
                self._find(event, f"seals rows of {table}, which no act of this kind writes")
            elif table == "setting" and (odd := _foreign_settings(event.action, seal)):
                self._find(event, f"seals setting {_named(odd)}, which no act of this kind writes")
            else:
                self._take_seal(event, table, seal)

    def _take_seal(self, event: Row[Any], table: str, seal: Mapping[str, Any]) -> None:
        added = self.added[table]
        new = _Added(event.id, list(keys_of(seal.get("added", ()))), seal.get("sha256", ""))
        # A copy has not the key that signs sessions, and makes its own.
        if again := [key for key in new.keys if key in added and key != SESSION_KEY]:
            self._find(event, f"seals {table} {_named(again)} as new, once more")
        else:
            added |= dict.fromkeys(new.keys, new)
        for leaf, runs in seal.get("changed", {}).items():
            for key in keys_of(runs):
                self.changed[table][key] = bytes.fromhex(leaf), event.id
        for key, leaf in seal.get("gone", ()):
            if table in DELETED and key in added:
                added.pop(key).gone[key] = bytes.fromhex(leaf)
                self.changed[table].pop(key, None)

    def _leave_behind(self, *, authors: bool) -> None:
        """Forget what no package brings: ways in, secrets, and work at a provider."""
        for table in self.added.keys() & STAYS.keys():
            self.added[table].clear()
            self.changed.get(table, {}).clear()
        for key in [key for key in self.added["setting"] if not kept_setting(str(key))]:
            del self.added["setting"][key]
        self.authors_withheld = not authors
        for table in AUTHORS:
            for seal in self.added[table].values():
                seal.is_withheld = not authors


def _foreign_settings(action: str, seal: Mapping[str, Any]) -> list[str]:
    """Return the settings that a seal is of and that an act of this kind never writes."""
    changed = [key for runs in seal.get("changed", {}).values() for key in runs]
    keys = {*seal.get("added", ()), *changed, *(key for key, _ in seal.get("gone", ()))}
    return sorted(key for key in keys if not key.startswith(SETTINGS[action]))


def _table_findings(
    session: Session, table: str, chain: _Chain, counts: dict[str, int]
) -> Iterator[str]:
    """Yield how a table's rows differ from their seals; note in `counts` how many are sealed."""
    added, changed = chain.added[table], chain.changed.get(table, {})
    sealed = columns_of_table(table)
    leaves: dict[Key, bytes] = {}
    unknown: list[Key] = []
    moved: dict[int, list[Key]] = {}
    for row in _rows(session, sealed):
        key = row[sealed.key]
        seal = added.get(key)
        if seal is None:
            unknown.append(key)
            continue
        if seal.is_withheld and chain.authors_withheld:
            if row.get("model") != WITHHELD or row["salt"]:
                yield f"{table} {key}: an author, where the study came without"
            continue
        leaves[key] = sealed.lasting_leaf(row)
        if sealed.changing:
            leaf, event = changed.get(key, (b"", seal.event))
            if sealed.changing_leaf(row) != leaf:
                moved.setdefault(event, []).append(key)
    counts[table] = len(leaves)
    if unknown:
        yield f"{table} {_named(unknown)}: no event vouches for {'it' if len(unknown) == 1 else 'them'}"
    for event, keys in moved.items():
        yield f"{table} {_named(keys)}: changed since event {event}"
    for seal in {id(one): one for one in added.values()}.values():
        if not (seal.is_withheld and chain.authors_withheld):
            yield from _seal_findings(table, seal, added, leaves)


def _seal_findings(
    table: str, seal: _Added, added: Mapping[Key, _Added], leaves: Mapping[Key, bytes]
) -> Iterator[str]:
    """Yield which rows of one seal are gone or changed."""
    own = [key for key in seal.keys if added.get(key) is seal]
    gone = [key for key in own if key not in leaves]
    if table == "setting" and gone == [SESSION_KEY]:
        return  # no copy has it: without it nobody is signed in
    if gone:
        yield f"{table} {_named(gone)}: gone since event {seal.event}"
        return
    left = [seal.gone.get(key) or leaves.get(key) for key in seal.keys]
    if joined(leaf for leaf in left if leaf) != seal.sha256:
        some = "some of them " if len(own) > 1 else ""
        yield f"{table} {_named(own)}: {some}changed since event {seal.event}"


def _rows(session: Session, sealed: Columns) -> Iterator[Mapping[str, Any]]:
    """Yield what of every row is sealed."""
    table = Table.metadata.tables[sealed.name]
    names = dict.fromkeys((*sealed.lasting, *sealed.changing))
    query = columns_of(*(table.c[name] for name in names)).order_by(*table.primary_key)
    with session.execute(query.execution_options(yield_per=PAGE)) as rows:
        for row in rows:
            yield dict(zip(names, row, strict=True))


def _named(keys: Sequence[object]) -> str:
    """Return the keys of some rows, the first few of many; no text of a row."""
    names = ", ".join(str(key)[:40] for key in keys[:MOST_NAMED])
    return f"{names} and {len(keys) - MOST_NAMED} more" if len(keys) > MOST_NAMED else names


def _texts(session: Session, *, authors_withheld: bool) -> Iterator[str]:
    """Yield which responses have another text than they came with."""
    query = columns_of(
        *(Response.id, Response.text, Response.shown, Response.salt, Response.commitment)
    ).order_by(col(Response.id))
    rows = session.execute(query.execution_options(yield_per=PAGE))
    for key, text, shown, salt, committed in rows:
        if salt is None and authors_withheld and shown == text:
            continue  # what is masked stayed with the authors
        if salt is None or commitment(salt, text) != committed:
            yield f"response {key}: text or salt changed since it came"


def orphans(session: Session) -> Iterator[str]:
    """Yield which tables have rows that refer to a row that there is not."""
    links = [
        (key.parent, key.column)
        for table in Table.metadata.sorted_tables
        for key in sorted(table.foreign_keys, key=lambda key: key.parent.name)
    ]
    remark = Table.metadata.tables["remark"].alias()
    links.append((Table.metadata.tables["remark"].c.about, remark.c.id))
    for own, other in links:
        referred = exists().where(other == own)
        query = columns_of(func.count()).select_from(own.table).where(own.is_not(None), ~referred)
        if number := session.scalar(query):
            yield f"{own.table.name}: {number} rows whose {own.name} refers to none"
    number_of_instances = columns_of(func.count()).select_from(Instance)
    unanswered = number_of_instances.where(~exists().where(col(Response.instance) == Instance.id))
    if number := session.scalar(unanswered):
        yield f"instance: {number} rows that no response answers"
