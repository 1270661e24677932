"""Importing a study that comes as a package: its tables as they were, its record included."""

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, delete, insert, update
from sqlalchemy.exc import DataError, IntegrityError
from sqlmodel import Session, col, select

from data.card import SEVERITIES, SIDES
from data.database import transaction
from data.description import Description
from data.errors import BadRubric, Conflict, MedjuryError
from data.importers.package import (
    EVERY,
    TABLES,
    WITHHELD,
    Package,
)
from data.importers.rows import batches
from data.queries.package import kept_setting
from data.record import AUTHORS_ADDED, GENESIS, PAST_RECORD, RESTORED, event_hash, log
from data.rubric import Rubric
from data.schema import Event, Kind, Rater, Response, Setting
from data.store.moving import continue_keys
from data.study.access import KEY_MADE
from data.study.authors import forget_withheld, has_named_authors, responses_without
from data.study.settings import STUDY_TEXT
from data.study.verify import verify_in
from data.training import SECRET

ACCEPTED = "findings accepted"
Row = Mapping[str, Any]


@dataclass
class PackageAdded:
    """What a package brought: rows by table; `unchanged` where it was there already.

    `findings` are those of `verify` that were accepted with it.
    """

    rows: dict[str, int] = field(default_factory=dict)
    unchanged: bool = False
    findings: tuple[str, ...] = ()


def import_package(
    engine: Engine, package: Package, actor: str, *, accept_findings: bool = False
) -> PackageAdded:
    """Store a package into an empty study, or its authors into the study they belong to.

    All of it or nothing, and only what `verify` finds whole. The rows keep their keys and the
    record its events, so `verify` and `calibrate` say here what they said there; one event more
    says where it came from.

    Parameters
    ----------
    accept_findings
        Store also what `verify` has findings on: they go into the record.

    Raises
    ------
    BadFile
        If rows contradict each other, the rubrics or the record.
    Conflict
        If the study holds something else, or authors belong to another study.
    """
    added = PackageAdded()
    try:
        with transaction(engine) as session:
            if _was_imported(session, package):
                return PackageAdded(unchanged=True)
            if package.authors == "only":
                _authors_into(session, package, added)
            else:
                _study_into(session, package, added, accept_findings=accept_findings)
            action = AUTHORS_ADDED if package.authors == "only" else RESTORED
            detail = {"sha256": package.sha256, "head": package.manifest["head"]}
            log(session, actor, action, detail | {"authors": package.authors})
            added.findings = _verified(session, package, accept_findings=accept_findings)
            if added.findings:
                log(session, actor, ACCEPTED, {"findings": [*added.findings]})
    except (DataError, IntegrityError) as error:
        raise package.wrong(
            "its rows do not fit together (a row refers to none, or is twice there)"
        ) from error
    return added


def _verified(session: Session, package: Package, *, accept_findings: bool) -> tuple[str, ...]:
    """Return what `verify` finds in what was just stored; refuse it unless that is accepted."""
    session.flush()
    findings = verify_in(session).findings
    if findings and not accept_findings:
        more = f" and {len(findings) - 1} more" if len(findings) > 1 else ""
        raise package.wrong(
            f"is not as its record says ({findings[0]}{more}); ask for the package again, or give "
            "--accept-findings, which stores it and records what was found"
        )
    return findings


def _was_imported(session: Session, package: Package) -> bool:
    """Tell whether this very file was imported before."""
    query = select(Event.detail).where(col(Event.action).in_((RESTORED, AUTHORS_ADDED)))
    return any(detail.get("sha256") == package.sha256 for detail in session.exec(query))


def _study_into(
    session: Session, package: Package, added: PackageAdded, *, accept_findings: bool
) -> None:
    made = delete(Event).where(col(Event.action) == KEY_MADE)  # by a server that runs
    session.execute(made, execution_options={PAST_RECORD: True})
    for model in (Event, Response, Rater):
        if session.exec(select(model).limit(1)).first() is not None:
            raise Conflict(
                f"{package.path}: this study is not empty, and a package becomes a study of its "
                "own; give another place, such as --db sqlite:///restored.db"
            )
    session.execute(delete(Setting), execution_options={PAST_RECORD: True})
    check = _CheckedRows(package, accept_findings=accept_findings)
    for table in TABLES:
        checked_rows = check.of(table, package.rows(table))
        added.rows[table] = _insert(session, table, checked_rows)
    if package.authors == "without":
        keys = session.exec(select(Response.id)).all()
        rows = ({"response": key, "model": WITHHELD} for key in keys)
        _insert(session, "authorship", rows)
    else:
        _store_authors(session, package, added)
    if added.rows["expert"]:
        session.add(Setting(key=SECRET, value=secrets.token_urlsafe(32)))
    continue_keys(session)


def _authors_into(session: Session, package: Package, added: PackageAdded) -> None:
    """Put the authors of a study that came without them where they belong."""
    head = package.manifest["head"]
    if session.exec(select(Event.id).where(Event.sha256 == head)).first() is None:
        raise Conflict(
            f"{package.path}: holds the authors of another study, or of a later state of this one; "
            "import the package of the study first"
        )
    if has_named_authors(session):
        raise Conflict(
            f"{package.path}: this study knows its authors already; nothing was imported"
        )
    forget_withheld(session)
    _store_authors(session, package, added)
    if missing := responses_without(session):
        raise package.wrong(f"{missing} responses of the study have no author in it")


def _store_authors(session: Session, package: Package, added: PackageAdded) -> None:
    """Store authors and masks, and the whole text of what is shown with a mask."""
    originals: dict[int, tuple[str, str | None]] = {}

    def rows() -> Iterator[Row]:
        for row in package.rows("authorship"):
            if (row["original"] is None) != (row["original_salt"] is None):
                raise package.wrong("its authors have a text without its salt, or the reverse")
            if row["original"] is not None:
                originals[row["response"]] = row["original"], row["original_salt"]
            yield {name: row[name] for name in ("response", "model", "salt")}

    added.rows["authorship"] = _insert(session, "authorship", rows())
    added.rows["mask"] = _insert(session, "mask", package.rows("mask"))
    masked = set(session.exec(select(Response.id).where(col(Response.shown).is_not(None))))
    if set(originals) != masked:
        raise package.wrong("its authors do not fit the responses: other texts are masked")
    for key, (text, salt) in originals.items():
        query = update(Response).where(col(Response.id) == key)
        session.execute(query.values(text=text, salt=salt), execution_options={PAST_RECORD: True})


class _CheckedRows:
    """Rows that hold against each other as they pass: rubrics, scores, the chain of events."""

    def __init__(self, package: Package, *, accept_findings: bool) -> None:
        self.package, self.accept_findings = package, accept_findings
        self.rubrics: dict[str, Rubric] = {}
        self.described: set[str] = set()
        self.raters: dict[int, tuple[str, str]] = {}
        self.head = GENESIS

    def of(self, table: str, rows: Iterator[dict[str, Any]]) -> Iterator[Row]:
        """Yield a table's rows as the study stores them."""
        check = getattr(self, f"_{table}", None)
        for number, row in enumerate(rows, start=2):
            try:
                yield check(row) if check else row
            except (MedjuryError, ValueError) as error:
                raise self.package.wrong(f"tables/{table}.csv row {number}: {error}") from error
        manifest_head = self.package.manifest["head"]
        if table == "event" and self.head != manifest_head and not self.accept_findings:
            raise self.package.wrong("its record does not end as its manifest says")

    def _rubric(self, row: dict[str, Any]) -> Row:
        try:
            rubric = Rubric.from_json(row["body"])
        except ValueError as error:  # of pydantic, which would quote the text
            raise BadRubric("not a rubric") from error
        if rubric.sha256 != row["sha256"]:
            raise BadRubric("the rubric is not the one its SHA-256 names")
        self.rubrics[rubric.sha256] = rubric
        return row

    def _study_text(self, row: dict[str, Any]) -> Row:
        if Description.from_json(row["body"]).sha256 != row["sha256"]:
            raise ValueError("the description is not the one its SHA-256 names")
        self.described.add(row["sha256"])
        return row

    def _rater(self, row: dict[str, Any]) -> Row:
        self.raters[row["id"]] = row["handle"], row["kind"]
        return row

    def _response(self, row: dict[str, Any]) -> Row:
        masked = row.pop("masked")
        return row | {"shown": row["text"] if masked else None}

    def _rating(self, row: dict[str, Any]) -> Row:
        handle, kind = self.raters.get(row["rater"], ("", ""))
        rubric = self.rubrics.get(row["rubric_sha256"] or "")
        if rubric is not None:
            rubric.score(row["criterion"], row["score"], handle, f"response {row['response']}")
        elif kind != Kind.METRIC:
            raise BadRubric("a rating without its rubric")
        return row

    def _span(self, row: dict[str, Any]) -> Row:
        if row["side"] not in SIDES or row["severity"] not in SEVERITIES:
            raise ValueError("a mark of a side or severity that there is not")
        return row

    def _setting(self, row: dict[str, Any]) -> Row:
        if not kept_setting(row["key"]):
            raise ValueError("a setting that no package brings")
        if row["key"] == STUDY_TEXT and row["value"] not in self.described:
            raise ValueError("the study's description is not in the package")
        return row

    def _event(self, row: dict[str, Any]) -> Row:
        is_next = row["previous"] == self.head and event_hash(Event(**row)) == row["sha256"]
        if not (is_next or self.accept_findings):
            raise ValueError(
                "the record does not hold from here on; run `medjury study verify` where it was made"
            )
        self.head = row["sha256"]
        return row


def _insert(session: Session, table: str, rows: Iterator[Row]) -> int:
    stored = 0
    for batch in batches(rows):
        rows_of = insert(EVERY[table])  # the events that came with them seal them
        session.execute(
            rows_of, [dict(row) for row in batch], execution_options={PAST_RECORD: True}
        )
        stored += len(batch)
    return stored
