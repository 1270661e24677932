"""Opening a study's database, and bringing its tables up to date."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError, OperationalError
from sqlmodel import Session

from data.errors import NoStudy

DEFAULT_URL = "sqlite:///medjury.db"
BUSY_SECONDS = 10
MIGRATIONS = Path(__file__).parent / "migrations"
HEAD = max(path.stem[:4] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))


def open_study(url: str = DEFAULT_URL, create: bool = False) -> Engine:
    """Return an engine on the study at `url`, its tables migrated to the newest form.

    Parameters
    ----------
    url
        Any SQLAlchemy URL. SQLite runs in WAL mode and waits 10 seconds for a lock.
    create
        Make the study if there is none yet; otherwise a missing one is an error.

    Raises
    ------
    NoStudy
        If the database is absent, locked, unreadable, or holds something else.
    """
    try:
        engine = _engine(url)
        _refuse_absent(engine, create)
        with told(url):
            _migrate(engine)
    except ModuleNotFoundError as error:
        raise NoStudy(
            f"--db: the driver {error.name} is not installed; for PostgreSQL run "
            "`uv sync --extra postgres` and begin the URL with postgresql+psycopg://"
        ) from error
    except (ArgumentError, NoSuchModuleError) as error:
        raise NoStudy(f"--db {url}: not a database URL that can be opened ({error})") from error
    return engine


@contextmanager
def told(url: str | URL) -> Iterator[None]:
    """Turn what the database complains of into one message that says what to do."""
    try:
        yield
    except DatabaseError as error:
        if type(error) not in (DatabaseError, OperationalError):
            raise
        shown = make_url(url).render_as_string(hide_password=True)
        said = str(error.orig).strip().splitlines()[0]
        hint = "wait for the other process or stop it" if "locked" in said else "check --db"
        raise NoStudy(f"study {shown}: {said}; {hint}") from error


@contextmanager
def transaction(engine: Engine) -> Iterator[Session]:
    """Open one writing transaction: all of it is stored, or nothing."""
    with told(engine.url), Session(_writing(engine)) as session, session.begin():
        yield session


@contextmanager
def reading(engine: Engine) -> Iterator[Session]:
    """Open a session that only reads; it never waits for a writer."""
    with told(engine.url), Session(engine) as session:
        yield session


@lru_cache(maxsize=16)
def _writing(engine: Engine) -> Engine:
    """Return an engine on the same connections whose transactions begin by taking the lock."""
    return engine.execution_options(writes=True)


def _engine(url: str) -> Engine:
    """Return an engine with the settings each kind of database needs."""
    if make_url(url).get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    """Take the write lock at once where we mean to write: a deferred one loses writes."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _set_up_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    """Use WAL, enforce foreign keys, and leave BEGIN to `_begin`."""
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _refuse_absent(engine: Engine, create: bool) -> None:
    """Raise NoStudy if a SQLite file is missing and should not be made."""
    path = engine.url.database
    if engine.dialect.name != "sqlite" or not path or path == ":memory:":
        return
    if not create and not Path(path).exists():
        raise NoStudy(
            f"there is no study at {path}: `medjury demo` makes a demo study, "
            "`medjury import FILE` starts your own; --db or MEDJURY_DB names another place"
        )
    if not Path(path).parent.is_dir():
        raise NoStudy(f"study {path}: the folder {Path(path).parent} does not exist")


def _migrate(engine: Engine) -> None:
    """Bring the tables to the newest form; refuse a database that is not ours."""
    names = set(inspect(engine).get_table_names())
    if names and "alembic_version" not in names:
        raise NoStudy(f"study {engine.url.database}: holds tables, but not those of a study")
    if names and _version(engine) == HEAD:
        return
    from alembic import command  # slow to import, and needed only when tables change
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = engine
    command.upgrade(config, "head")


def _version(engine: Engine) -> str | None:
    """Return the migration this database stands at."""
    with engine.connect() as connection:
        found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found
