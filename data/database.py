"""A study's database: where it is, opening it, and bringing its tables up to date."""

import atexit
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakSet

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    create_engine,
    event,
    inspect,
    make_url,
    text,
)
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DataError,
    NoSuchModuleError,
    OperationalError,
)
from sqlmodel import Session

from data import DEFAULT_STUDY_URL
from data.errors import BadInput, NoStudy
from data.record import WRITTEN, Written, refuse_unlogged

BUSY_SECONDS = 10
# To PostgreSQL, that a process keeps open: a new one costs the server a process with empty caches.
CONNECTIONS = 15
# The lock of PostgreSQL that whoever writes to a study holds: clinicians who rate share it.
WRITER = 6_337_590
FORBIDDEN = ("42501", "25006")  # PostgreSQL's codes for no right to do it, and read-only
ROOM = "make room on its disk and try again; nothing of it was stored"
READ_ONLY = "it can only be read; use a copy of it in a place that you may write to"
SERVER = "see that the server runs, then try again; what was stored stays"
WHO = "check user and password, in the URL, PGPASSWORD or ~/.pgpass, and whom the server lets in"
NOWHERE = "make it with createdb, or check --db or the URL you gave"
RIGHTS = "let whoever owns it grant that right (a new study needs CREATE on its schema), or own it"
CROWDED = "the server takes no more connections: close some, or try again later"
STATES = {  # how one of PostgreSQL's codes begins -> what to do
    "53100": ROOM,
    "25006": READ_ONLY,
    "42501": RIGHTS,
    "3D000": NOWHERE,
    "53300": CROWDED,
    "28": WHO,
    "08": SERVER,
    "57P": SERVER,
}
HINTS = (  # part of what a database complains of, names in it blanked -> what to do; sharper first
    ("is locked", "wait for the other process or stop it"),
    ("disk is full", ROOM),
    ("no space left", ROOM),
    ("readonly database", READ_ONLY),
    ("read-only", READ_ONLY),
    ("unable to open", "may you write to this file and to its folder? check --db"),
    ("authentication failed", WHO),
    ("no password supplied", WHO),
    ("no pg_hba.conf entry", WHO),
    ('role "" does not exist', WHO),
    ('database "" does not exist', NOWHERE),
    ("too many connections", CROWDED),
    ("too many clients", CROWDED),
    ("connection slots are reserved", CROWDED),
    ("resolve host", "check the name of the host in --db, and the network"),
    ("connection", SERVER),
)
MIGRATIONS = Path(__file__).parent / "migrations"
HEAD = "study_6"  # the revision in migrations/versions/0001_study.py

_opened: WeakSet[Engine] = WeakSet()
_moment: ContextVar[tuple[Engine | None, Session | None]] = ContextVar(
    "moment", default=(None, None)
)
OWNERS = 0o600  # a study holds patients' texts and who wrote what
ENCODED = "in a password write @ as %40, : as %3A, / as %2F and # as %23"
AFTER_USER = re.compile(r"(://[^:/]*):.*@", re.DOTALL)  # to the last "@": a password may hold one
A_URL = re.compile(r"([a-z][\w+]+):/", re.IGNORECASE)
SECRETS = re.compile(r"([?&](?:password|passwd|sslpassword)=)[^&]*", re.IGNORECASE)


def open_study(url: str | URL = DEFAULT_STUDY_URL, create: bool = False) -> Engine:
    """Return an engine on the study at `url`, its tables migrated to the newest form.

    Parameters
    ----------
    url
        Any SQLAlchemy URL. One transaction writes at a time, on PostgreSQL as on SQLite (which
        runs in WAL mode), and the others wait up to 10 seconds; on PostgreSQL, clinicians who
        rate different responses wait for each other only while the event is appended.
    create
        Make the study if there is none yet; otherwise a missing one is an error.

    Raises
    ------
    NoStudy
        If the database is absent, locked, unreadable, or holds something else.
    """
    try:
        refuse_unclear(url)
        engine = _engine(url)
        prepare_file(engine.url, create)
        with database_errors(url):
            _migrate(engine, create)
            if engine.dialect.name == "sqlite":  # WAL, once the file is known to be a study
                with closing(engine.raw_connection()) as connection:
                    connection.cursor().execute("PRAGMA journal_mode=WAL").close()
    except ModuleNotFoundError as error:
        raise NoStudy(
            f"--db: the driver {error.name} is not installed; for PostgreSQL run "
            "`uv sync --extra postgres` and begin the URL with postgresql+psycopg://"
        ) from error
    except (ArgumentError, NoSuchModuleError) as error:
        raise NoStudy(f"--db {shown(url)}: not a URL that can be opened ({error})") from error
    except ValueError as error:  # of a port that is no number; its words quote the URL
        raise NoStudy(
            f"--db: not a database URL; its port must be a number, and {ENCODED}"
        ) from error
    return engine


@atexit.register
def close_studies() -> None:
    """Close what this process opened, so that a SQLite study that nobody else uses is one file."""
    for engine in list(_opened):
        engine.dispose()


@contextmanager
def database_errors(url: str | URL) -> Iterator[None]:
    """Raise database errors as one message that says what went wrong and what to do."""
    try:
        yield
    except DataError as error:
        raise BadInput(
            f"study {shown(url)}: the database cannot hold a value ({_first_line(error.orig)}); nothing of "
            "it was stored"
        ) from error
    except DatabaseError as error:
        forbidden = getattr(error.orig, "sqlstate", None) in FORBIDDEN
        if type(error) not in (DatabaseError, OperationalError) and not forbidden:
            raise
        raise _no_study(url, error.orig) from error
    except sqlite3.OperationalError as error:  # of a connection without SQLAlchemy
        raise _no_study(url, error) from error


def _no_study(url: str | URL, error: BaseException | None) -> NoStudy:
    """Return a driver's error as a message, with what to do by PostgreSQL's code or by its words."""
    reason = _first_line(error).replace("canceling statement due to lock timeout", "it is locked")
    state = getattr(error, "sqlstate", None) or ""
    words = re.sub(r'"[^"]*"', '""', reason).lower()
    by_code = (hint for code, hint in STATES.items() if state.startswith(code))
    by_words = (hint for part, hint in HINTS if part in words)
    to_do = next(by_code, "") or next(by_words, "check --db, or the URL you gave")
    return NoStudy(f"study {shown(url)}: {reason}; {to_do}")


def _first_line(error: BaseException | None) -> str:
    """Return the first line of a driver's error; later lines may quote a study's text."""
    return (str(error).strip().splitlines() or ["it gave no reason"])[0]


def shared_transaction(engine: Engine) -> AbstractContextManager[Session]:
    """Open one writing transaction beside others of this kind; it excludes those of `transaction`.

    It writes only to what it has locked by `FOR UPDATE`, or adds rows. On SQLite it is alone.
    """
    return transaction(engine, "shared")


@contextmanager
def transaction(engine: Engine, writes: str = "alone") -> Iterator[Session]:
    """Open one writing transaction, alone in the study: all of it is stored, or nothing.

    Rows that no event seals at its end are an error of the program: see `data.record.log`.
    """
    with (
        database_errors(engine.url),
        Session(_with_options(engine, writes=writes), info={WRITTEN: Written()}) as session,
        session.begin(),
    ):
        yield session
        session.flush()
        refuse_unlogged(session)


@contextmanager
def reading(engine: Engine) -> Iterator[Session]:
    """Open a read-only session on one snapshot of the study; it waits for no writer.

    Inside `one_moment` it is the session of that.
    """
    of, shared = _moment.get()
    if of is engine and shared is not None:
        yield shared
        return
    with database_errors(engine.url), _isolated(engine, "REPEATABLE READ") as session:
        yield session


@contextmanager
def one_moment(engine: Engine) -> Iterator[None]:
    """Have every `reading` inside see the same snapshot, whoever writes meanwhile.

    For what is put together from several queries: a response that a clinician rates between two of
    them would otherwise be in both, or in neither.
    """
    with reading(engine) as session:
        before = _moment.set((engine, session))
        try:
            yield
        finally:
            _moment.reset(before)


@contextmanager
def glance(engine: Engine) -> Iterator[Session]:
    """Open a session for one query: it needs no transaction to see one moment.

    On PostgreSQL that is one round trip instead of three.
    """
    with database_errors(engine.url), _isolated(engine, "AUTOCOMMIT") as session:
        yield session


@lru_cache(maxsize=32)
def _with_options(engine: Engine, **options: str) -> Engine:
    """Return an engine on the same connections with options, as that its transactions take the lock."""
    return engine.execution_options(**options)


def _isolated(engine: Engine, level: str) -> Session:
    """Return a session of this isolation on PostgreSQL; SQLite's always see one snapshot."""
    is_server = engine.dialect.name == "postgresql"
    return Session(_with_options(engine, isolation_level=level) if is_server else engine)


def _engine(url: str | URL) -> Engine:
    """Return an engine with the settings each kind of database needs."""
    sqlite = make_url(url).get_backend_name() == "sqlite"
    settings: dict[str, Any] = {"pool_size": CONNECTIONS, "max_overflow": 0, "pool_use_lifo": True}
    if sqlite:
        settings = {"connect_args": {"timeout": BUSY_SECONDS}}
    engine = create_engine(url, **settings, pool_pre_ping=not sqlite)
    _opened.add(engine)
    if sqlite:
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin)
    elif engine.dialect.name == "postgresql":
        event.listen(engine, "begin", _begin_postgres)
    return engine


def _begin(connection: Connection) -> None:
    """Take the write lock at once where we mean to write: a deferred one loses writes."""
    writes = connection.get_execution_options().get("writes", "")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _begin_postgres(connection: Connection) -> None:
    """Let one transaction write at a time, as in SQLite, or what two have read would be old.

    Those of clinicians who rate hold the lock together: they lock the rows they write to.
    """
    writes = connection.get_execution_options().get("writes", "")
    if not writes:
        return
    lock = "pg_advisory_xact_lock_shared" if writes == "shared" else "pg_advisory_xact_lock"
    waits = f"set_config('lock_timeout', '{BUSY_SECONDS}s', true)"
    connection.exec_driver_sql(f"SELECT {waits}, {lock}({WRITER})")


def _set_up_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    """Enforce foreign keys, and leave BEGIN to `_begin`."""
    connection.isolation_level = None
    for pragma in ("synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _migrate(engine: Engine, create: bool) -> None:
    """Bring the tables to the newest form; refuse a database that is not ours, or has none yet."""
    names = set(inspect(engine).get_table_names())
    if not names and not create:
        raise no_study_at(engine.url)
    if names and "alembic_version" not in names:
        raise NoStudy(f"study {engine.url.database}: holds tables, but not those of a study")
    stands = None  # the newest migration that was applied
    if names:
        with engine.connect() as connection:
            stands = connection.scalar(text("SELECT version_num FROM alembic_version"))
    if stands == HEAD:
        return
    if stands is not None:
        raise NoStudy(
            f"study {shown(engine.url)}: another version of medjury made it (form {stands}, here "
            f"{HEAD}): open it with that one, or begin anew with `medjury study import` and another "
            "--db; what `medjury share export` wrote there, `rate ratings` takes in"
        )
    from alembic import command  # slow to import, and needed only when tables change
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = engine
    command.upgrade(config, "head")


def shown(url: str | URL) -> str:
    """Return a database URL without its passwords, for messages."""
    full = _url_text(url)
    hidden = SECRETS.sub(r"\1***", AFTER_USER.sub(r"\1:***@", full))
    try:
        make_url(url)
    except (ArgumentError, ValueError):
        return hidden.rpartition("@")[2]
    return hidden


def refuse_unclear(url: str | URL) -> None:
    """Raise NoStudy for a URL whose password is not encoded, and for `postgres://`."""
    if _url_text(url).startswith("postgres://"):
        raise NoStudy(f"--db {shown(url)}: begin it with postgresql+psycopg://, not postgres://")
    if make_url(url).password is not None and _url_text(url).count("@") > 1:
        raise NoStudy(f"--db {shown(url)}: holds more than one @; {ENCODED}")


def refuse_as_file(command: str, file: Path) -> None:
    """Raise BadInput if a database URL is given in place of a file; hides its password."""
    match = A_URL.match(str(file))  # of which a path has made "//" to "/"
    if match:
        url = f"{match[1]}://{str(file)[match.end() :].lstrip('/')}"
        raise BadInput(
            f"{command} {shown(url)}: is a database, and a file belongs there; name the study's "
            "database by MEDJURY_DB or --db"
        )


def prepare_file(url: URL, create: bool) -> None:
    """Create the file of a new SQLite study, readable by its owner only; refuse a missing one."""
    path = url.database
    if url.get_backend_name() != "sqlite" or not path or path == ":memory:":
        return
    if not create and not (Path(path).exists() and Path(path).stat().st_size):
        raise no_study_at(url)
    if not Path(path).parent.is_dir():
        raise NoStudy(f"study {path}: the folder {Path(path).parent} does not exist")
    if create and not path.startswith("file:"):
        with suppress(OSError):  # SQLite says why, or there is one already, which keeps its mode
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNERS))


def no_study_at(url: URL) -> NoStudy:
    """Return the error that no study exists at a URL."""
    location = url.database if url.get_backend_name() == "sqlite" else shown(url)
    return NoStudy(
        f"there is no study at {location}: `medjury demo` makes a demo study, "
        "`medjury study import FILE` starts your own; --db or MEDJURY_DB names another place"
    )


def _url_text(url: str | URL) -> str:
    return url if isinstance(url, str) else url.render_as_string(hide_password=False)
