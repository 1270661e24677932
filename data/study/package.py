"""A study in one file, as `medjury share export --package` writes it; it may come from a stranger.

A package is a zip of a SQLite database with the study's tables, of the files for analysis and of a
manifest with the SHA-256 of each. The tables are bare: names and types of columns, no index, no
constraint, no view, no trigger; a database that holds anything else is not read. Authors who stay
behind are never written to it, nor is a way in or a secret.
"""

import hashlib
import secrets
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.metadata import version
from itertools import count
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from sqlalchemy import URL, Engine, create_engine, delete, func, insert, literal, update
from sqlalchemy import Table as DbTable
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from sqlalchemy.pool import NullPool, StaticPool
from sqlmodel import Session, col, select

from data.card import SEVERITIES, SIDES
from data.database import HEAD, one_moment, reading, transaction
from data.description import Description
from data.errors import BadFile, BadInput, Conflict, MedjuryError
from data.files import private, whole_file
from data.importers.safe import BROKEN, in_child
from data.record import AUTHORS_ADDED, PAST_RECORD, RESTORED, log
from data.rubric import Rubric
from data.safe_text import one_line, refuse_nul
from data.schema import Event, Kind, Pair, Rater, Response, Setting
from data.study.access import KEY_MADE
from data.study.authors import forget_withheld, has_named_authors, responses_without
from data.study.base import columns_of
from data.study.copies import (
    AUTHORS,
    PACKED,
    PAGE,
    WITHHELD,
    Row,
    head,
    holds,
    kept_setting,
    kind_of,
    leaving,
    pages,
)
from data.study.export import (
    DICTIONARY_CSV,
    DICTIONARY_PAGE,
    FILES,
    write_dictionary,
    write_files,
)
from data.study.moving import continue_keys
from data.study.settings import STUDY_TEXT
from data.study.verify import verify_in
from data.training import SECRET

Page = tuple[str, list[Row]]
VERSION = 2
DATABASE, MANIFEST = "study.db", "manifest.json"
NAMES = {DATABASE, MANIFEST, DICTIONARY_CSV, DICTIONARY_PAGE, *FILES}
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the same study gives the same package
ACCEPTED = "findings accepted"
MOST_BYTES = 4 << 30
MOST_MANIFEST = 1 << 20
MOST_RATIO = 200  # unpacked to packed; tables of ratings have 10 to 40
FREE_BYTES = 16 << 20  # below this a part may be as dense as it likes
LONGEST_CELL = 64 << 20
PAGE_LENGTH = 16 << 20  # characters of rows that are read at once
STEPS, STEPS_A_BYTE, FREE_STEPS = 10_000, 20, 10_000_000  # of SQLite, to read a file once or twice
CHUNK = 1 << 20
SECONDS_EACH_MB = 10  # of processor time to read it; a file of rows takes less
TABLES = {table.name: table for table in PACKED}
PAST = {PAST_RECORD: True}  # the events that come with the rows seal them


class Manifest(BaseModel):
    """What a package says of itself; `files` has the SHA-256 of each, `rows` those of each table."""

    model_config = ConfigDict(strict=True)
    format: Literal["medjury-package"] = "medjury-package"
    version: int
    medjury: str
    tables: str
    authors: Literal["with", "without", "only"]
    head: str = Field(pattern="^[0-9a-f]{64}$")
    rows: dict[str, int]
    files: dict[str, str]


def write_package(
    engine: Engine, path: Path, authors: str, who_wrote: list[tuple[str, str]]
) -> dict[str, int]:
    """Write the study at one moment as a package, readable by its owner alone.

    Parameters
    ----------
    authors
        "with", "without" or "only" them.
    who_wrote
        response_id and model of every response, none "without" the authors.

    Returns
    -------
    File or table -> number of rows.

    Raises
    ------
    BadFile
        If it cannot be written.
    """
    try:
        with TemporaryDirectory(".part", f".{path.name}.", path.parent) as folder:
            rows = _write_parts(engine, Path(folder), authors, who_wrote)
            with (
                whole_file(path) as part,
                open(part, "xb", opener=private) as raw,
                zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive,
            ):
                for file in sorted(Path(folder).iterdir()):
                    info = zipfile.ZipInfo(file.name, LONG_AGO)
                    info.compress_type = zipfile.ZIP_DEFLATED
                    info.external_attr = 0o600 << 16
                    with file.open("rb") as body, archive.open(info, "w", force_zip64=True) as to:
                        copyfileobj(body, to, CHUNK)
    except OSError as error:
        raise BadFile(f"--package {path}: {error.strerror}") from error
    return rows


def package_bytes(engine: Engine, authors: str) -> bytes:
    """Return the study as one package, as `write_package` writes it without tables of CSV."""
    with TemporaryDirectory(prefix="medjury-package-") as folder:
        path = Path(folder, "study.zip")
        write_package(engine, path, authors, [])
        return path.read_bytes()


def _write_parts(
    engine: Engine, folder: Path, authors: Any, who_wrote: list[tuple[str, str]]
) -> dict[str, int]:
    """Write the files of a package into a folder; return file or table -> number of rows."""
    with one_moment(engine), reading(engine) as session:
        rows = _write_database(session, folder / DATABASE, authors)
        written = write_files(engine, folder, authors, who_wrote)
        tables = [f"{DATABASE}/{table}" for table in rows if holds(authors, table)]
        write_dictionary(folder, [*written, *tables])
        last = head(session)
    manifest = Manifest(
        version=VERSION,
        medjury=version("medjury"),
        tables=HEAD,
        authors=authors,
        head=last,
        rows=rows,
        files={file.name: _sha256(file) for file in sorted(folder.iterdir())},
    )
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n", "utf-8")
    return written | rows


def _write_database(session: Session, path: Path, authors: str) -> dict[str, int]:
    """Write the tables that leave into a new file; return table -> rows."""
    written = {}
    engine = create_engine(URL.create("sqlite", database=str(path)), poolclass=NullPool)
    with engine.connect() as to:
        with _file_errors(path):
            for pragma in ("journal_mode=OFF", "synchronous=OFF"):  # it is packed when it is whole
                to.exec_driver_sql(f"PRAGMA {pragma}")
            for table in PACKED:
                to.exec_driver_sql(bare(table))
        for table in PACKED:
            written[table.name] = 0
            for page in pages(session, leaving(session, table, authors)):
                with _file_errors(path):
                    to.execute(insert(table), page)
                written[table.name] += len(page)
        with _file_errors(path):
            to.commit()
    return written


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    """Tell trouble with the new file, such as a full disk, from trouble with the study itself."""
    try:
        yield
    except DBAPIError as error:
        raise BadFile(f"{path}: {error.orig}; nothing was written") from error


def bare(table: DbTable) -> str:
    """Return the statement that makes a table of a package: column names and types alone."""
    columns = [f'"{one.name}" {one.type.compile(sqlite.dialect())}' for one in table.c]
    return f'CREATE TABLE "{table.name}" ({", ".join(columns)})'


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Package:
    """A package that is open, its form checked.

    Attributes
    ----------
    sha256
        Of the whole file: what the record of the study calls it by.
    pages
        Table and rows of it, some at a time, checked as they come; those of a table follow each other.
    """

    path: Path
    sha256: str
    manifest: Manifest
    pages: Iterator[Page]


def _wrong(path: Path, why: str) -> BadFile:
    return BadFile(f"{path}: {why}; nothing was imported")


@contextmanager
def opened_package(path: Path) -> Iterator[Package]:
    """Open a package whose files, tables and numbers of rows are those that its manifest names.

    A process of its own reads it, with limits of memory and of processor time.

    Raises
    ------
    BadFile
        If anything is not as it must be; says what and what to do. Of rows, while they are read.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise _wrong(path, error.strerror or str(error)) from error
    with TemporaryDirectory(prefix="medjury-package-") as folder:  # whatever ends the process
        parts = in_child(
            read_parts,
            path,
            Path(folder),
            name=path,
            size=size,
            seconds_each_mb=SECONDS_EACH_MB,
            advice="ask for the package again",
        )
        with closing(parts):
            sha256, manifest = next(parts)
            yield Package(path, sha256, Manifest(**manifest), parts)


def read_parts(path: Path, folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield a package's SHA-256 with its manifest, and then each table's name with some of its rows.

    Its files are unpacked to `folder`.
    """
    try:
        manifest = _unpacked(path, folder)
        sha256 = _sha256(path)
    except ValidationError as error:
        what = one_line(".".join(map(str, error.errors()[0]["loc"])), 60)
        raise _wrong(path, f"its {MANIFEST} is not that of a medjury package ({what})") from error
    except OSError as error:
        raise _wrong(path, error.strerror or str(error)) from error
    except BROKEN as error:
        raise _wrong(
            path,
            "cannot be read as a package: it is cut off, damaged, encrypted or no zip; "
            "copy it again from where it was made",
        ) from error
    with closing(_distrusting(folder / DATABASE)) as connection:
        _check_database(path, connection)
        engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
        with Session(engine) as session:
            for table in PACKED:
                number = session.scalar(columns_of(func.count()).select_from(table))
                if number != manifest.rows.get(table.name):
                    why = f"{table.name} has {number} rows, and its {MANIFEST} says otherwise"
                    raise _wrong(path, why)
                if number and not holds(manifest.authors, table.name):
                    why = f'has rows, in a package of which authors are "{manifest.authors}"'
                    raise _wrong(path, f"{table.name} {why}")
            yield sha256, manifest.model_dump()
            check = _Check(manifest.authors)
            # A setting may name a text, which is of a later table.
            for table in sorted(PACKED, key=lambda table: table.name == "setting"):
                name = str(table.name)  # without SQLAlchemy's type
                yield from ((name, page) for page in _pages(path, session, table, check))


def _unpacked(path: Path, folder: Path) -> Manifest:
    """Check the files of a package, and write them to a folder under the names that we know."""
    with zipfile.ZipFile(path) as archive:
        parts = {part.filename: part for part in archive.infolist()}
        if MANIFEST not in parts:
            raise _wrong(
                path,
                f"this zip is no medjury package (it has no {MANIFEST}); a study is put in one "
                "by `medjury share export --package FILE.zip`",
            )
        if len(parts) < len(archive.infolist()) or not parts.keys() <= NAMES:
            raise _wrong(path, "holds a file that no package has, or one twice")
        sizes = {name: part.file_size for name, part in parts.items()}
        is_dense = any(
            size > max(FREE_BYTES, MOST_RATIO * parts[name].compress_size)
            for name, size in sizes.items()
        )
        if is_dense or sizes[MANIFEST] > MOST_MANIFEST or sum(sizes.values()) > MOST_BYTES:
            raise _wrong(path, "would unpack to more than any package has")
        manifest = Manifest.model_validate_json(archive.read(MANIFEST))
        form, ours = f"{manifest.version}/{manifest.tables}", f"{VERSION}/{HEAD}"
        if form != ours:
            wrote = one_line(f"was written by medjury {manifest.medjury} in form {form}", 100)
            raise _wrong(path, f"{wrote}, here {ours}; import it with the medjury that wrote it")
        if manifest.files.keys() != parts.keys() - {MANIFEST} or DATABASE not in parts:
            raise _wrong(path, f"does not hold the files that its {MANIFEST} names")
        for name, expected in manifest.files.items():
            with archive.open(name) as content, (folder / name).open("xb") as to:
                copyfileobj(content, to, CHUNK)
            if _sha256(folder / name) != expected:
                raise _wrong(
                    path,
                    f"{name} is not as it was when the package was made (SHA-256); copy it again "
                    "from where it was made",
                )
    return manifest


def _distrusting(database: Path) -> sqlite3.Connection:
    """Open a stranger's database: read only, no cell without bound, and never longer than it can take."""
    connection = sqlite3.connect(f"{database.as_uri()}?mode=ro&immutable=1", uri=True)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_CELL)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    steps, most = count(), FREE_STEPS + STEPS_A_BYTE * database.stat().st_size
    connection.set_progress_handler(lambda: next(steps) * STEPS > most, STEPS)
    for pragma in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _check_database(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a database that is damaged, or holds anything but bare tables."""
    try:
        there = set(connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall())
        if there != {("table", table.name, bare(table)) for table in PACKED}:
            raise _wrong(path, f"{DATABASE} holds other tables than this medjury writes, or more")
        [damage] = connection.execute("PRAGMA quick_check(1)").fetchone()
        if damage != "ok":
            raise _wrong(path, f"{DATABASE} is damaged")
    except sqlite3.Error as error:
        raise _wrong(path, f"{DATABASE} cannot be read as a SQLite database") from error


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
    authors, last = package.manifest.authors, package.manifest.head
    action = AUTHORS_ADDED if authors == "only" else RESTORED
    with transaction(engine) as session:
        brought = select(Event.detail).where(col(Event.action).in_((RESTORED, AUTHORS_ADDED)))
        if any(detail.get("sha256") == package.sha256 for detail in session.exec(brought)):
            return PackageAdded(unchanged=True)
        try:
            rows = (
                _store_authors(session, package) if authors == "only" else _store(session, package)
            )
        except (DataError, IntegrityError) as error:
            raise _wrong(
                package.path,
                "its rows do not fit together (a row refers to none, or is twice there)",
            ) from error
        if head(session) != last and authors != "only" and not accept_findings:
            raise _wrong(package.path, f"its record does not end as its {MANIFEST} says")
        detail = {"sha256": package.sha256, "head": last, "authors": authors}
        log(session, actor, action, detail)
        session.flush()
        findings = verify_in(session).findings
        if findings and not accept_findings:
            more = f" and {len(findings) - 1} more" if len(findings) > 1 else ""
            raise _wrong(
                package.path,
                f"is not as its record says ({findings[0]}{more}); ask for the package again, or "
                "give --accept-findings, which stores it and records what was found",
            )
        if findings:
            log(session, actor, ACCEPTED, {"findings": [*findings]})
    return PackageAdded(rows, findings=findings)


def _store(session: Session, package: Package) -> dict[str, int]:
    """Store a study into an empty one."""
    made = delete(Event).where(col(Event.action) == KEY_MADE)  # by a server that runs
    session.execute(made, execution_options=PAST)
    for model in (Event, Response, Rater):
        if session.exec(select(model).limit(1)).first() is not None:
            raise Conflict(
                f"{package.path}: this study is not empty, and a package becomes a study of its "
                "own; give another place, such as --db sqlite:///restored.db"
            )
    session.execute(delete(Setting), execution_options=PAST)
    stored = {table.name: 0 for table in PACKED}
    for name, page in package.pages:
        session.execute(insert(TABLES[name]), page, execution_options=PAST)
        stored[name] += len(page)
    if package.manifest.authors == "without":
        of_pairs = select(Pair.response)
        keys = session.exec(select(Response.id).where(col(Response.id).not_in(of_pairs))).all()
        if keys:
            withheld = [{"response": key, "model": WITHHELD, "salt": ""} for key in keys]
            session.execute(insert(TABLES["authorship"]), withheld, execution_options=PAST)
    if stored["expert"]:
        session.add(Setting(key=SECRET, value=secrets.token_urlsafe(32)))
    continue_keys(session)
    return stored


def _store_authors(session: Session, package: Package) -> dict[str, int]:
    """Store authors, masks and the whole texts of what is masked in the study that they belong to."""
    last = select(Event.id).where(Event.sha256 == package.manifest.head)
    if session.exec(last).first() is None:
        raise Conflict(
            f"{package.path}: holds the authors of another study, or of a later state of this one; "
            "import the package of the study first"
        )
    if has_named_authors(session):
        raise Conflict(
            f"{package.path}: this study knows its authors already; nothing was imported"
        )
    forget_withheld(session)
    stored, rows = dict.fromkeys(AUTHORS, 0), list[Row]()
    for name, page in package.pages:
        if name not in AUTHORS:
            rows += page
            continue
        session.execute(insert(TABLES[name]), page, execution_options=PAST)
        stored[name] += len(page)
    if missing := responses_without(session):
        raise _wrong(package.path, f"{missing} responses of the study have no author in it")
    masked = set(session.exec(select(Response.id).where(col(Response.shown).is_not(None))))
    if {row["id"] for row in rows} != masked or len(rows) > len(masked):
        raise _wrong(package.path, "its authors do not fit the responses: other texts are masked")
    for row in rows:
        whole = update(Response).where(col(Response.id) == row["id"])
        whole = whole.values(text=row["text"], salt=row["salt"])
        session.execute(whole, execution_options=PAST)
    continue_keys(session)
    return stored


def _pages(path: Path, session: Session, table: DbTable, check: "_Check") -> Iterator[list[Row]]:
    """Yield the rows of a table of a package, each of its columns' types and held by `check`."""
    number, form = 0, _form(table)
    try:
        length = sum((func.coalesce(func.length(column), 0) for column in table.c), literal(0))
        longest = session.scalar(columns_of(func.max(length)).select_from(table)) or 0
        at_once = max(1, min(PAGE, PAGE_LENGTH // max(longest, 1)))  # few where one is very long
        for page in pages(session, columns_of(table), at_once):
            form.validate_python(page)
            for row in page:
                number += 1
                check(table.name, row)
            yield page
    except ValidationError as error:
        first = error.errors()[0]
        place, column = first["loc"][:2]
        row_number = number + int(place) + 1
        why = f"{table.name} row {row_number}, column {column}: {one_line(first['msg'], 100)}"
        raise _wrong(path, why) from error
    except MedjuryError as error:
        raise _wrong(path, f"{table.name} row {number}: {error}") from error
    except (DBAPIError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise _wrong(
            path,
            f"{table.name}, after row {number}: a cell cannot be read as what its column has",
        ) from error


@cache
def _form(table: DbTable) -> TypeAdapter[Any]:
    """Return what rows of a table must be: of its columns' types, none missing where it must not."""
    columns: dict[str, Any] = {}
    for one in table.c:
        kind: Any = kind_of(table.name, one.name)
        kind = Literal[*kind] if issubclass(kind, StrEnum) else kind
        columns[one.name] = (kind | None if one.nullable else kind, ...)
    strict = ConfigDict(strict=True, allow_inf_nan=False)
    row: Any = create_model(table.name, __config__=strict, **columns)
    return TypeAdapter(list[row])


class _Check:
    """Holds rows against each other as they pass: rubrics, scores, what a package may bring."""

    def __init__(self, authors: str) -> None:
        self.authors = authors
        self.texts: dict[str, Rubric | Description] = {}
        self.raters: dict[int, Row] = {}

    def __call__(self, table: str, row: Row) -> None:
        """Raise BadInput if a row is not as the study would have it."""
        refuse_nul(row.values())
        if table in ("rubric", "study_text"):
            self._take_text(table, row)
        elif table == "rater":
            self.raters[row["id"]] = row
        elif table == "response" and self.authors == "without" and row["shown"] is not None:
            if row["shown"] != row["text"] or row["salt"]:
                raise BadInput("the whole of a masked text, in a package without authors")
        elif table == "rating":
            rater, rubric = self.raters.get(row["rater"], {}), self.texts.get(row["rubric_sha256"])
            if (row["score"] is None) is (row["answer"] == ""):
                raise BadInput("a rating has a score, or an answer in its place")
            if isinstance(rubric, Rubric):
                about = rater.get("handle", ""), f"response {row['response']}"
                rubric.score(row["criterion"], row["answer"] or row["score"], *about)
            elif rater.get("kind") != Kind.METRIC:
                raise BadInput("a rating without its rubric")
        elif table == "span" and (row["side"] not in SIDES or row["severity"] not in SEVERITIES):
            raise BadInput("a mark of a side or severity that there is not")
        elif table == "setting" and not kept_setting(row["key"]):
            raise BadInput("a setting that no package brings")
        elif table == "setting" and row["key"] == STUDY_TEXT and row["value"] not in self.texts:
            raise BadInput("the study's description is not in the package")

    def _take_text(self, table: str, row: Row) -> None:
        form = Rubric if table == "rubric" else Description
        try:
            text = form.from_json(row["body"])
        except ValueError as error:  # of pydantic, which would quote the text
            raise BadInput(f"not a {form.__name__.lower()}") from error
        if text.sha256 != row["sha256"]:
            raise BadInput(f"the {form.__name__.lower()} is not the one its SHA-256 names")
        self.texts[text.sha256] = text
