"""The record of a study: events that each carry the hash of the one before and seal what an act wrote.

Whatever a transaction writes is noted as it is flushed (`Written`), and `log` seals it in the event of
the act that wrote it. Of each row the columns that never change are sealed once, and those that may
change (`CHANGES`) with every change, each by an act that may write to the table (`ACTS`). What stands
nowhere here is under a seal.
"""

import hashlib
import json
import re
import secrets
from array import array
from collections.abc import Iterable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Float, Insert, Row, delete, event, insert, inspect, text
from sqlalchemy import Table as DbTable
from sqlalchemy import select as select_rows
from sqlalchemy import update as update_rows
from sqlalchemy.orm import ORMExecuteState, UOWTransaction
from sqlmodel import Session, desc, select

from data.errors import BadFile, BadInput, NotAllowed
from data.safe_text import refuse_nul
from data.schema import Event, Setting, Table, now
from data.settings import Settings

Key = int | str
GENESIS = "0" * 64
LOCKED = "locked"  # also the setting that says since when
REOPENED, UNBLINDED = "reopened", "unblinded"
RESTORED, AUTHORS_ADDED = "study imported from a package", "authors imported"
REVIEWED = "response reviewed"
WITHDRAWN = "withdrawn"
RUN, TRAINING = "jury_run", "training:"
PROBED = "jurors probed"
SALT_BYTES = 16
CHAIN = 6_337_589  # any number, as long as nothing else in the database locks it
WRITTEN, PAST_RECORD = "written", "past the record"
_ENCODER = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))  # made once: it is slow
_LAST = select(Event.sha256).order_by(desc(Event.id)).limit(1)
_LOCKED = select(Setting.value).where(Setting.key == LOCKED)

WORKING = "work at a provider that is not done: what comes of it is stored, and sealed, as calls"
# Column that no event seals -> why a change of it moves no figure, no right and no name.
UNSEALED: Mapping[str, Mapping[str, str]] = {
    "assignment": {
        "draft": "what a clinician has entered and not submitted: it counts nowhere, and they "
        "see it before they submit it",
        "draft_seq": "the number of the draft: it keeps two windows of one clinician apart",
        "submitted_seq": "the number of the draft that was submitted: as `draft_seq`",
        "seconds_active": "grows with each draft; the time that a rating took is "
        "`submission.seconds`, which is sealed. Only working time is told from it",
        "opened_at": "when a response was first shown; the record says when it was rated, "
        "recused, or its reference opened",
    },
    "jury_batch": dict.fromkeys(
        ["state", "provider_id", "input_file", "counts", "reason", "asked", "submitted", "closed"],
        WORKING,
    ),
    "jury_request": {"outcome": WORKING},
}
# Of these settings a part is sealed. The rest is rewritten with each draft, or each few seconds: what is
# entered in training and not answered, and which page was read last; whether the run that is on still
# lives, and what it told last.
SEALED_PARTS: Mapping[str, tuple[str, ...]] = {
    TRAINING: ("ended", "rounds"),
    RUN: ("token", "by", "order", "since", "started"),
}
# Held otherwise: the text by `response.commitment`, events by the chain.
HELD = {"response": ("text", "salt"), "event": tuple(Event.model_fields)}
# Columns that a later act may change; all others of a row stay what they were when it was added.
CHANGES: Mapping[str, tuple[str, ...]] = {
    "benchmark": ("category", "subcategory", "rubric_sha256"),
    "response": ("shown",),
    "rater": ("specialty",),
    "account": ("email", "ended"),
    "access": ("used", "revoked"),
    "assignment": ("state", "revision", "done_at", "previous", "reference_opened_at"),
    "expert": ("score", "why"),
    "intent": ("counted",),
    "improvement": ("opened", "learned", "result"),
    "setting": ("value",),
    "composition": (
        *("icc", "n_responses", "fingerprint", "simulated", "compared", "times", "last_at"),
    ),
}
DELETED = {"assignment", "intent", "setting"}  # of all other tables no row ever goes
# Act -> the tables that it may write to.
ACTS: Mapping[str, frozenset[str]] = {
    action: frozenset(tables.split())
    for action, tables in {
        "responses imported": "instance response authorship subgroup",
        "pairs added": "instance response authorship pair",
        "benchmark added": "benchmark",
        "rubric added": "rubric",
        "rubric set": "benchmark",
        "place in the taxonomy set": "benchmark",
        "points imported": "point_set",
        "authors masked": "response mask setting",
        "searched for authors": "setting",
        "possible names left": "",
        "names in responses shown": "",
        "ratings imported": "rater rating withdrawal",
        WITHDRAWN: "withdrawal",
        "raters joined": "rating withdrawal",
        "open work given back": "assignment",
        "failed verdicts imported": "",
        "responses assigned": "assignment setting",
        "assignment taken back": "assignment",
        "free place taken": "assignment",
        "adjudication assigned": "assignment setting",
        "rated": "rating remark span submission assignment",
        "recused": "assignment remark",
        "reference opened": "assignment",
        "flag answered": "remark",
        "answer seen": "remark",
        REVIEWED: "review",
        "expert scores imported": "expert setting",
        "training answered": "drill",
        "training passed": "",
        "training not passed": "",
        "training stands": "setting",
        "training waived": "",
        "clinician added": "rater",
        "specialty said": "rater",
        "person added": "account",
        "person let back in": "account",
        "person shut out": "account",
        "e-mail given": "account access",
        "e-mail changed": "account access",
        "e-mail removed": "account access",
        "reminder sent": "",
        "code issued": "access",
        "codes revoked": "access",
        "signed in": "access",
        "signed out": "",
        "key made": "setting",
        LOCKED: "setting",
        REOPENED: "setting",
        UNBLINDED: "",
        "protocol set": "",
        "study described": "study_text setting",
        "consent given": "setting",
        "setting changed": "setting",
        "panel kept": "setting",
        "panel forgotten": "setting",
        "jury run started": "setting",
        "jury run stopped": "",
        PROBED: "",
        "juror added": "rater",
        "jurors asked": "attempt intent",
        "jurors rated": "attempt rating intent",
        "calls in flight": "intent",
        "calls carried over": "intent",
        "batch prepared": "jury_batch jury_request",
        "improvement begun": "improvement",
        "rubric learned": "improvement",
        "test part opened": "improvement",
        "improvement ended": "improvement",
        "routing rule kept": "",
        "juries evaluated": "composition",
        "report frozen": "report",
        "report withdrawn": "",
        RESTORED: "setting",
        AUTHORS_ADDED: "",
        "findings accepted": "",
    }.items()
}
# Act that writes settings -> how the keys of those begin.
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "authors masked": ("searched_for_authors",),
    "searched for authors": ("searched_for_authors",),
    "responses assigned": ("per_response",),
    "adjudication assigned": ("signing_key",),
    "expert scores imported": ("training",),
    "training stands": (TRAINING,),
    "key made": ("session_key", "signing_key"),
    LOCKED: (LOCKED,),
    REOPENED: (LOCKED,),
    "study described": ("study_text", "consent_text"),
    "consent given": ("consent:",),
    "setting changed": tuple(Settings().as_text()),
    "panel kept": ("panel:",),
    "panel forgotten": ("panel:",),
    "jury run started": (RUN,),
    RESTORED: ("training",),
}
# Who comes and goes, and what is made of the figures: that is no change of a locked study.
WHILE_LOCKED = {
    *("signed in", "signed out", "code issued", "codes revoked", "key made", "reminder sent"),
    *("person added", "person let back in", "person shut out"),
    *("e-mail given", "e-mail changed", "e-mail removed"),
    *("juries evaluated", "report frozen", "report withdrawn", "routing rule kept", UNBLINDED),
    *(RESTORED, AUTHORS_ADDED, "findings accepted", PROBED),
}

FIRST_LINE = "medjury head 1"
HEAD_ENDING = ".head"
MOST_HEAD_BYTES = 10_000
EVENT_HASH = re.compile("[0-9a-f]{64}")
HEAD_LINES = re.compile(
    rf"{FIRST_LINE}\nstudy ([0-9a-f]{{64}})\nevents (0|[1-9][0-9]{{0,17}})\nhead ([0-9a-f]{{64}})\n"
)


def canonical_values(values: Iterable[object]) -> bytes:
    """Return a row's values as bytes that are the same before and after storage."""
    plain = [_utc_text(value) if isinstance(value, datetime) else value for value in values]
    return _ENCODER.encode(plain).encode() + b"\n"


@lru_cache(maxsize=256)
def _utc_text(time: datetime) -> str:
    """Return a time as its rows are sealed; rows that were written together share it."""
    return time.astimezone(UTC).isoformat()


def commitment(salt: str, text: str) -> str:
    """Return a salted SHA-256 of a text: it proves the text and reveals nothing without the salt."""
    return hashlib.sha256(canonical_values([salt, text])).hexdigest()


def new_salt() -> str:
    """Return a random salt."""
    return secrets.token_hex(SALT_BYTES)


def joined(leaves: Iterable[bytes]) -> str:
    """Return one SHA-256 for rows that were sealed together, from their own."""
    whole = hashlib.sha256()
    for leaf in leaves:
        whole.update(leaf)
    return whole.hexdigest()


class Leaves:
    """SHA-256 of new rows by their keys, all whole numbers or all texts: 40 bytes a row with a number."""

    def __init__(self) -> None:
        self._keys: MutableSequence[Any] = array("q")
        self._digests = bytearray()

    def add(self, key: Key, leaf: bytes) -> None:
        """Note a row."""
        if isinstance(key, str) and isinstance(self._keys, array):
            self._keys = []
        self._keys.append(key)
        self._digests += leaf

    def seal(self) -> dict[str, Any]:
        """Return the runs of keys, ascending, and one SHA-256 of their rows in that order."""
        keys, size = self._keys, hashlib.sha256().digest_size
        order: Sequence[int] = range(len(keys))
        if any(keys[at] < keys[at - 1] for at in order[1:]):
            order = sorted(order, key=keys.__getitem__)
        leaves = (bytes(self._digests[at * size : (at + 1) * size]) for at in order)
        return {"added": _runs(keys[at] for at in order), "sha256": joined(leaves)}


def sealed_setting(key: str, value: str) -> object:
    """Return the sealed part of a setting's value: all of it, but for `SEALED_PARTS`."""
    names = SEALED_PARTS.get(TRAINING if key.startswith(TRAINING) else key)
    if names is None:
        return value
    try:
        stored = json.loads(value)
        return [stored.get(name) for name in names]
    except (ValueError, AttributeError):
        return value


class Columns:
    """What of one table's rows is sealed.

    Attributes
    ----------
    key : name of the primary key
    lasting : columns that are sealed once, the key first
    changing : columns that are sealed with each change, after the salt if there is one
    """

    def __init__(self, table: DbTable) -> None:
        self.name, self.key = table.name, next(iter(table.primary_key)).name
        moving = CHANGES.get(table.name, ())
        out = {*UNSEALED.get(table.name, ()), *HELD.get(table.name, ()), *moving, self.key}
        rest = sorted({*table.c.keys()} - out)
        self.lasting = (self.key, *rest)
        self.changing = (*(name for name in rest if name == "salt"), *moving) if moving else ()
        self._floats = {one.name for one in table.columns if isinstance(one.type, Float)}

    def lasting_leaf(self, row: Mapping[str, Any]) -> bytes:
        """Return the SHA-256 of what never changes of a row."""
        return self._leaf(row, self.lasting)

    def changing_leaf(self, row: Mapping[str, Any]) -> bytes:
        """Return the SHA-256 of what may change of a row: the same for rows that are alike in it."""
        if self.name == "setting":
            row = {"value": sealed_setting(row["key"], row["value"])}
        return self._leaf(row, self.changing)

    def _leaf(self, row: Mapping[str, Any], names: Sequence[str]) -> bytes:
        cells = [row[name] for name in names]
        if self._floats:  # where a whole number is read back as one of them
            cells = [
                float(cell) if name in self._floats and isinstance(cell, int) else cell
                for name, cell in zip(names, cells, strict=True)
            ]
        return hashlib.sha256(canonical_values([self.name, *cells])).digest()


@cache
def columns_of_table(name: str) -> Columns:
    """Return what of a table's rows is sealed."""
    return Columns(Table.metadata.tables[name])


@dataclass
class Written:
    """What a transaction has written and no event seals yet: table -> key -> SHA-256 of the row.

    Attributes
    ----------
    added : of the columns that never change, of new rows
    changed : of those that may, of new and of changed rows
    gone : as `added`, of deleted rows, as they were
    """

    added: dict[str, Leaves] = field(default_factory=dict)
    changed: dict[str, dict[Key, bytes]] = field(default_factory=dict)
    gone: dict[str, dict[Key, bytes]] = field(default_factory=dict)

    @property
    def tables(self) -> set[str]:
        """Return the tables that were written to."""
        return {*self.added, *self.changed, *self.gone}

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Note a new row, of which all columns are known."""
        refuse_nul(row.values())
        sealed = columns_of_table(table)
        key = row[sealed.key]
        self.added.setdefault(table, Leaves()).add(key, sealed.lasting_leaf(row))
        if sealed.changing:
            self.changed.setdefault(table, {})[key] = sealed.changing_leaf(row)

    def change(self, table: str, row: Mapping[str, Any]) -> None:
        """Note a row of which a column that may change was changed."""
        refuse_nul(row.values())
        sealed = columns_of_table(table)
        self.changed.setdefault(table, {})[row[sealed.key]] = sealed.changing_leaf(row)

    def delete(self, table: str, row: Mapping[str, Any]) -> None:
        """Note a row that was deleted."""
        sealed = columns_of_table(table)
        self.gone.setdefault(table, {})[row[sealed.key]] = sealed.lasting_leaf(row)

    def seals(self, tables: Iterable[str]) -> dict[str, Any]:
        """Return what an event says of some tables, and forget it.

        Table -> `added`, runs of keys, with `sha256` of their rows in that order; `changed`, SHA-256 of
        a row's changing columns -> runs of keys; `gone`, pairs of a key and SHA-256 of its row.
        """
        said: dict[str, Any] = {}
        for table in sorted(tables):
            added = self.added.pop(table, None)
            changed, gone = self.changed.pop(table, {}), self.gone.pop(table, {})
            seal: dict[str, Any] = {}
            if added:
                seal |= added.seal()
            if changed:
                of_leaf: dict[str, list[Key]] = {}
                for key in sorted(changed):
                    of_leaf.setdefault(changed[key].hex(), []).append(key)
                seal["changed"] = {leaf: _runs(keys) for leaf, keys in of_leaf.items()}
            if gone:
                seal["gone"] = [[key, gone[key].hex()] for key in sorted(gone)]
            if seal:
                said[table] = seal
        return said


def _runs(keys: Iterable[Key]) -> list[Any]:
    """Return keys, whole numbers as runs from first to last."""
    runs: list[Any] = []
    for key in keys:
        if not isinstance(key, int):
            runs.append(key)
        elif runs and runs[-1][1] == key - 1:
            runs[-1][1] = key
        else:
            runs.append([key, key])
    return runs


def keys_of(runs: Sequence[Any]) -> Iterator[Key]:
    """Yield the keys that a seal names: texts, and runs of whole numbers."""
    for run in runs:
        if isinstance(run, list):
            yield from range(run[0], run[1] + 1)
        else:
            yield run


@event.listens_for(Session, "after_flush")
def _note(session: Session, _: UOWTransaction) -> None:
    """Note what a flush writes; refuse what would change or delete what never is."""
    written: Written | None = session.info.get(WRITTEN)
    if written is None:
        return
    for row in session.new:
        if (sealed := _sealed(row)) is not None:
            written.add(sealed.name, row.__dict__)
    for row in session.dirty:
        if (sealed := _sealed(row)) is not None:
            _note_change(row, sealed, written)
    for row in session.deleted:
        if (sealed := _sealed(row)) is not None:
            if sealed.name not in DELETED:
                raise RuntimeError(f"{sealed.name}: no row of it is ever deleted")
            written.delete(sealed.name, {name: getattr(row, name) for name in sealed.lasting})


def _sealed(row: object) -> Columns | None:
    """Return what of a row is sealed, None of an event, which seals others."""
    return None if isinstance(row, Event) else columns_of_table(str(cast(Table, row).__tablename__))


def _note_change(row: object, sealed: Columns, written: Written) -> None:
    history = {one.key: one.history for one in inspect(row).attrs if one.history.has_changes()}
    refuse_nul(value for one in history.values() for value in one.added or ())
    if lasting := history.keys() & {*sealed.lasting, *HELD.get(sealed.name, ())}:
        names = ", ".join(sorted(lasting))
        raise RuntimeError(f"{sealed.name}: {names} of a stored row never changes")
    if not history.keys() & {*sealed.changing}:
        return
    present = {name: getattr(row, name) for name in (sealed.key, *sealed.changing)}
    if sealed.name == "setting":  # of which a part may be sealed
        before = history["value"].deleted
        stored = before and sealed_setting(present["key"], before[0])
        if before and stored == sealed_setting(present["key"], present["value"]):
            return
    written.change(sealed.name, present)


@event.listens_for(Session, "do_orm_execute")
def _refuse_unseen(state: ORMExecuteState) -> None:
    """Refuse what would go past the unit of work, and so past the record."""
    writes = state.is_insert or state.is_update or state.is_delete
    if writes and WRITTEN in state.session.info and PAST_RECORD not in state.execution_options:
        raise RuntimeError(
            "write rows through the session, or by `add_rows`: the record must see them"
        )


def add_rows(session: Session, model: type[Table], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert many rows at once."""
    if not rows:
        return
    fields, written = model.model_fields.items(), session.info[WRITTEN]
    optional = {name: one for name, one in fields if name != "id" and not one.is_required()}
    defaults = {name: one.get_default(call_default_factory=True) for name, one in optional.items()}
    whole = [{**defaults, **row} for row in rows]
    name, past = str(model.__tablename__), {PAST_RECORD: True}
    if columns_of_table(name).key == "id" and "id" not in whole[0]:
        keys = session.scalars(_returning(model), whole, execution_options=past)
        for row, key in zip(whole, keys, strict=True):
            row["id"] = key
    else:
        session.execute(insertion(model), whole, execution_options=past)
    for row in whole:
        written.add(name, row)


@cache
def _returning(model: type[Table]) -> Any:
    """Return the statement that adds rows and gives their keys, in the order of the rows."""
    table = model.metadata.tables[str(model.__tablename__)]
    return insert(table).returning(table.c.id, sort_by_parameter_order=True)


@cache
def insertion(model: type[Table]) -> Insert:
    """Return the statement that adds rows; making one costs more than running it."""
    return insert(model.metadata.tables[str(model.__tablename__)]).inline()  # no key is asked for


def delete_rows(session: Session, model: type[Table], *where: Any) -> None:
    """Delete many rows at once, of a table of `DELETED`."""
    table, name = model.metadata.tables[str(model.__tablename__)], str(model.__tablename__)
    if name not in DELETED:
        raise RuntimeError(f"{name}: no row of it is ever deleted")
    lasting = (table.c[column] for column in columns_of_table(name).lasting)
    for row in session.execute(select_rows(*lasting).where(*where)).mappings():
        session.info[WRITTEN].delete(name, row)
    session.execute(delete(table).where(*where), execution_options={PAST_RECORD: True})


def update_unsealed(session: Session, model: type[Table], *where: Any, **values: Any) -> None:
    """Change columns that no event seals."""
    if sealed := values.keys() - UNSEALED.get(str(model.__tablename__), {}).keys():
        raise RuntimeError(f"{model.__tablename__}: {', '.join(sorted(sealed))} is sealed")
    refuse_nul(values.values())
    changed = update_rows(model).where(*where).values(**values)
    session.execute(changed, execution_options={PAST_RECORD: True})


def log(session: Session, actor: str, action: str, detail: Mapping[str, Any]) -> None:
    """Append one event, with seals of what its act wrote, inside the caller's transaction.

    Of what was written and not sealed yet, the tables that the act may write to are its own.
    """
    refuse_nul((actor, detail))
    session.flush()
    written: Written = session.info.get(WRITTEN) or Written()
    seals = written.seals(ACTS[action])
    at, said = now(), dict(detail) | ({"sealed": seals} if seals else {})
    if session.get_bind().dialect.name == "postgresql":  # whoever rates writes beside others
        session.execute(text(f"SELECT pg_advisory_xact_lock({CHAIN})"))
    previous = session.execute(_LAST).scalar() or GENESIS
    row = {"at": at, "actor": actor, "action": action, "detail": said, "previous": previous}
    row["sha256"] = _link(at, actor, action, said, previous)
    session.execute(insertion(Event), row, execution_options={PAST_RECORD: True})


def refuse_unlogged(session: Session) -> None:
    """Raise RuntimeError if rows were written that no event seals."""
    written: Written | None = session.info.get(WRITTEN)
    if written and written.tables:
        names = ", ".join(sorted(written.tables))
        raise RuntimeError(f"rows of {names} were written without an event")


def event_hash(event: Event | Row[Any]) -> str:
    """Return the SHA-256 over an event's content and its predecessor's hash."""
    return _link(event.at, event.actor, event.action, event.detail, event.previous)


def _link(at: datetime, actor: str, action: str, detail: Mapping[str, Any], previous: str) -> str:
    content = [at.isoformat(), actor, action, detail, previous]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


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
            '(`medjury study lock --reopen --reason "..."`; in the app: Export, Record)'
        )


@dataclass(frozen=True, slots=True)
class Head:
    """The last event of a record at a point in time.

    Attributes
    ----------
    sha256
        Its hash.
    events
        How many events there were; None where only the hash was kept.
    study
        Hash of the first event: of which study it is; "" where only the hash was kept.
    """

    sha256: str
    events: int | None = None
    study: str = ""

    def to_text(self) -> str:
        """Return the file's content, always the same for the same head."""
        return f"{FIRST_LINE}\nstudy {self.study}\nevents {self.events}\nhead {self.sha256}\n"


def head_given(given: str) -> Head:
    """Return a head from its hash, or from the file that has it.

    Raises
    ------
    BadInput
        If it is neither: a slip of the pen is no forgery.
    BadFile
        If the file is no head, or was changed so that it cannot be one.
    """
    name = given.strip()
    if EVENT_HASH.fullmatch(name.lower()):
        return Head(name.lower())
    path = Path(name)
    if path.is_file():
        return _head_of_file(path)
    raise BadInput(
        f"head {name[:80]!r}: neither a file nor a hash of the record; a hash has 64 characters 0-9 "
        "and a-f, as `medjury study verify` and `medjury study lock` print it"
    )


def _head_of_file(path: Path) -> Head:
    try:
        with path.open("rb") as file:
            body = file.read(MOST_HEAD_BYTES).decode("ascii", "replace").replace("\r\n", "\n")
    except OSError as error:
        raise BadFile(f"head {path}: {error.strerror}") from error
    match = HEAD_LINES.fullmatch(body)
    if match is None:
        raise BadFile(
            f"head {path}: not a head as `medjury study lock` and `medjury share export --package` write it "
            f"(its first line is {FIRST_LINE!r}); check its signature, or take another copy"
        )
    study, events, sha256 = match.groups()
    return Head(sha256, int(events), study)
