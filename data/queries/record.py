"""Verifying the audit chain and all rows against it; reading past events."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Row, exists, func
from sqlmodel import Session, col, select

from data.database import reading
from data.importers.package import EVERY, RESTORED
from data.queries.base import RATED_THING, columns_of
from data.queries.descriptions import description_findings
from data.queries.ledger import ledger_findings, report_findings
from data.queries.row_checks import (
    PARTS,
    Promise,
    Seals,
    act_findings,
    promises,
    sealed_findings,
    stream,
)
from data.record import Head, commitment, head_given
from data.schema import (
    Authorship,
    Drill,
    Event,
    Instance,
    Mask,
    Rating,
    Response,
    Setting,
    Superseded,
    Table,
)
from data.store.audit import COLUMNS, GENESIS, LOCKED, event_hash
from data.store.masks import MASKED, places_digest, shown_digest
from data.store.training import ANSWERED, IMPORTED, experts_digest

PAGE = 2000
EVENT = ("id", "at", "actor", "action", "detail", "previous", "sha256")


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
    """

    events: int
    head: str
    rows: Mapping[str, int]
    findings: tuple[str, ...]
    authors_withheld: bool = False


def verify(engine: Engine, head: str | None = None) -> Verified:
    """Check every event and every row: `data.record` says what is under which digest.

    Finds a row that was changed, deleted, added or moved within its table, and an event that
    was changed, deleted or moved. What was cut off from the end together with its rows can
    only be found with a `head` that was kept elsewhere: its hash, or the file of it.

    Raises
    ------
    BadInput, BadFile
        If `head` is neither a hash nor a file of one.
    """
    expected_head = None if head is None else head_given(head)
    with reading(engine) as session:
        _one_snapshot(session)
        return verify_in(session, expected_head)


def verify_in(session: Session, head: Head | None = None) -> Verified:
    """Check a study as a session sees it, also what it has not committed: see `verify`."""
    findings: list[str] = []
    try:
        chain = _Chain(session, findings)
    except (ValueError, TypeError):
        unread = "event: a cell is not of its column's type; nothing else could be checked"
        return Verified(0, GENESIS, {}, (*findings, unread))
    if head is not None:
        findings += _head_findings(chain.hashes, head)
    seals = chain.seals
    rows: dict[str, int] = {}
    for check in _checks(session, chain, rows):
        findings += _readable(check)
    tables = sorted(rows, key=lambda table: (table not in COLUMNS, table))
    sealed_rows = {table: rows[table] for table in tables if table != "progress"}
    distinct = tuple(dict.fromkeys(findings))
    withheld = seals.authors_withheld
    return Verified(len(chain.hashes), chain.head, sealed_rows, distinct, withheld)


def _checks(session: Session, chain: "_Chain", rows: dict[str, int]) -> Iterator[Iterable[str]]:
    """Yield what is to be compared, one table or act at a time; note the sealed rows in `rows`."""
    seals = chain.seals
    for table in COLUMNS:
        yield act_findings(session, table, chain.promised, rows)
    for part in PARTS:
        yield sealed_findings(session, part, seals, rows)
    yield _texts(session, authors_withheld=seals.authors_withheld)
    yield _masks(session, chain, authors_withheld=seals.authors_withheld)
    yield orphans(session)
    more = training_findings, description_findings, ledger_findings, report_findings
    for check in (superseded_findings, *more):
        yield (finding for _ in (0,) for finding in check(session))


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
    query = select(Event).where(col(Event.action).in_(actions)).order_by(col(Event.id))
    with reading(engine) as session:
        events = list(session.exec(query))
        session.expunge_all()
    return events


def superseded_findings(session: Session) -> list[str]:
    """Return a sentence if other ratings are marked as superseded than those that a newer one replaced."""
    newest = select(func.max(Rating.id)).group_by(*RATED_THING)
    replaced = select(Rating.id).where(col(Rating.id).not_in(newest))
    marked = select(Superseded.rating)
    wrong = {
        "are marked as superseded, and no newer one is there": marked.except_(replaced),
        "were given again later, and are not marked as superseded": replaced.except_(marked),
    }
    return [
        f"rating: {len(keys)} ratings {what}, rating {min(keys)} first"
        for what, query in wrong.items()
        if (keys := session.scalars(query).all())
    ]


def training_findings(session: Session) -> list[str]:
    """Return a sentence for each expert score or training answer changed behind the record's back."""
    query = select(Event).where(col(Event.action).in_((IMPORTED, ANSWERED)))
    events = list(session.exec(query.order_by(col(Event.id))))
    return _experts(session, events) + _answers(session, events)


def locked_since(engine: Engine) -> str | None:
    """Return since when and by whom a study is locked, None if it is not."""
    with reading(engine) as session:
        setting = session.get(Setting, LOCKED)
        return setting.value if setting else None


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
    shown, places
        response_id -> digest of the masked text, and of where it is masked.
    """

    def __init__(self, session: Session, findings: list[str]) -> None:
        self.head = GENESIS
        self.hashes: list[str] = []
        self.promised: dict[tuple[str, Any], Promise] = {}
        self.shown: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.seals = Seals()
        for event in stream(session, "event", EVENT):
            findings += self._take(event)

    def _take(self, event: Row[Any]) -> Iterator[str]:
        """Take in one event; yield how it does not follow from the one before."""
        if event.previous != self.head:
            yield f"event {event.id}: an event before it was deleted, added or moved"
        if event_hash(event) != event.sha256:
            yield f"event {event.id} ({event.action}): its content was changed"
        self.head = event.sha256
        self.hashes.append(event.sha256)
        try:
            self._interpret(event)
        except (AttributeError, KeyError, TypeError, ValueError):
            yield f"event {event.id}: what it says of rows cannot be read"

    def _interpret(self, event: Row[Any]) -> None:
        """Take in what an event says of rows."""
        if event.action == RESTORED:  # a package leaves tables behind
            self.promised = {
                key: promise for key, promise in self.promised.items() if key[0] in EVERY
            }
        self.promised |= promises(event)
        if event.action == MASKED:
            self.shown |= event.detail["shown"]
            self.places |= event.detail["places"]
        self.seals.take(event)


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


def _masks(session: Session, chain: "_Chain", *, authors_withheld: bool) -> Iterator[str]:
    """Yield which responses are shown otherwise than the record says they were masked."""
    masks: dict[int, list[Mask]] = {}
    for mask in session.exec(select(Mask).order_by(col(Mask.id))):
        masks.setdefault(mask.response, []).append(mask)
    query = (
        select(Response.id, Response.response_id, Response.shown, Authorship.salt)
        .join(Authorship, isouter=True)
        .where(col(Response.shown).is_not(None) | col(Response.id).in_(select(Mask.response)))
    )
    masked = {name: (key or 0, shown, salt) for key, name, shown, salt in session.exec(query)}
    for name in sorted({*masked, *chain.shown}):
        key, shown, salt = masked.get(name, (0, None, ""))
        if not _as_masked(chain, name, shown, masks.get(key, []), salt, authors_withheld):
            yield f"response {name}: shown otherwise than it was masked"


def _as_masked(
    chain: "_Chain",
    name: str,
    shown: str | None,
    masks: Sequence[Mask],
    salt: str,
    authors_withheld: bool,
) -> bool:
    """Tell whether a response is shown, and masked, as the events say."""
    if shown is None or shown_digest(shown) != chain.shown.get(name):
        return False
    if authors_withheld:
        return not masks
    cells = [(mask.id, mask.start, mask.end, mask.text, mask.at) for mask in masks]
    return places_digest(salt, cells) == chain.places.get(name)


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


def _experts(session: Session, events: list[Event]) -> list[str]:
    """Compare the expert scores with the digest of the last import."""
    digests = [event.detail["sha256"] for event in events if event.action == IMPORTED]
    expected = digests[-1] if digests else hashlib.sha256().hexdigest()
    changed = experts_digest(session) != expected
    return ["expert: the scores are not those that were imported"] if changed else []


def _answers(session: Session, events: list[Event]) -> list[str]:
    """Compare every training answer with its event."""
    logged = {
        event.detail["drill"]: (event.actor, event.detail)
        for event in events
        if event.action == ANSWERED
    }
    stored = {drill.id or 0: drill for drill in session.exec(select(Drill).order_by(col(Drill.id)))}
    findings = [f"drill: answer {key} is gone" for key in logged.keys() - stored.keys()]
    for key, drill in stored.items():
        if key not in logged:
            findings.append(f"drill: no event vouches for answer {key}")
            continue
        actor, detail = logged[key]
        answer = (f"rater {drill.rater}", drill.response, drill.round + 1, drill.scores)
        if answer != (actor, detail["response"], detail["round"], detail["scores"]):
            findings.append(f"drill: answer {key} was changed")
    return findings
