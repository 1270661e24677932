"""One jury run a study at a time, so that no two runs pay for the same call."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, text

from data.database import told

WAIT_SECONDS = 0.2
ADVISORY_KEY = 0x6D65646A


@contextmanager
def alone(engine: Engine, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the study's jury lock; `waiting` is called once if another run holds it.

    The lock is the operating system's or the server's and ends with its process, however that
    dies, so a killed run never blocks the next one.
    """
    path = engine.url.database
    if engine.dialect.name == "postgresql":
        with _advisory(engine, waiting):
            yield
    elif engine.dialect.name == "sqlite" and path and path != ":memory:":
        with _beside(f"{path}-jury", waiting):
            yield
    else:
        yield


@contextmanager
def _beside(path: str, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold an exclusive lock on an empty database beside the study's."""
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        if not _taken(connection):
            waiting()
            while not _taken(connection):
                time.sleep(WAIT_SECONDS)
        yield
    finally:
        connection.close()


def _taken(connection: sqlite3.Connection) -> bool:
    """Return whether the lock could be taken now."""
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        return False
    return True


@contextmanager
def _advisory(engine: Engine, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock of the PostgreSQL server; it is told where that lost it meanwhile."""
    key = {"key": ADVISORY_KEY}
    with told(engine.url), engine.connect() as connection:
        if not connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), key):
            waiting()
            connection.execute(text("SELECT pg_advisory_lock(:key)"), key)
        try:
            yield
        finally:
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), key)
