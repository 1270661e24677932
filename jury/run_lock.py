"""One jury run per study at a time, so that no two runs pay for the same call."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import SQLAlchemyError

from data.database import database_errors, shown
from data.errors import Conflict

WAIT_SECONDS = 0.2
KEY = {"key": 0x6D65646A}
NEWEST = text(  # of what only jury runs write
    "SELECT (SELECT MAX(id) FROM attempt), (SELECT MAX(id) FROM reference_check), "
    "(SELECT MAX(id) FROM jury_batch), (SELECT MAX(at) FROM intent)"
)


@contextmanager
def run_lock(engine: Engine, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
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
    """Hold a lock of the PostgreSQL server, over its restarts too."""
    with database_errors(engine.url):
        lock = _ServersLock(engine, waiting)
        with _listening(engine, "begin", lock.see), _listening(engine, "commit", lock.note):
            try:
                yield
            finally:
                lock.leave()


@contextmanager
def _listening(engine: Engine, name: str, listener: Callable[[Connection], None]) -> Iterator[None]:
    """Call a function at an event of an engine's connections."""
    event.listen(engine, name, listener)
    try:
        yield
    finally:
        event.remove(engine, name, listener)


class _ServersLock:
    """A lock that the server keeps for one connection, and forgets when that ends.

    So each transaction that writes, having begun, looks whether it is still held, and if not takes
    it again. One at a time does so: none writes to a study beside another. Had the server restarted
    after that look, it would have ended the transaction too.
    """

    def __init__(self, engine: Engine, waiting: Callable[[], None]) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._connection = self._engine.connect()
        if not self._take():
            waiting()
            self._connection.execute(text("SELECT pg_advisory_lock(:key)"), KEY)
        self._newest = self._connection.execute(NEWEST).one()
        self._is_overtaken = False  # for good: what waits to be stored comes after the refusal

    def see(self, connection: Connection) -> None:
        """Raise Conflict if another run held the lock, even for a while, since it was lost."""
        if not _writes(connection):
            return
        if not self._is_overtaken and not self._is_held():
            self._connection, lost = self._engine.connect(), self._connection
            lost.close()
            self._is_overtaken = (
                not self._take() or connection.execute(NEWEST).one() != self._newest
            )
        if self._is_overtaken:
            raise Conflict(
                f"study {shown(self._engine.url)}: while its server restarted another jury run "
                "began, so this one has stopped; what was stored stays. Wait until that one ends, "
                "then start this again: only what is missing is asked for"
            )

    def note(self, connection: Connection) -> None:
        """Note what was stored last: anything newer is another run's."""
        if _writes(connection):
            self._newest = connection.execute(NEWEST).one()

    def leave(self) -> None:
        """Release the lock; with a lost connection it is released already."""
        with suppress(SQLAlchemyError):  # the error of a lost connection has a class of its own
            self._connection.execute(text("SELECT pg_advisory_unlock(:key)"), KEY)
        self._connection.close()

    def _take(self) -> bool:
        """Return whether the lock could be taken now."""
        return bool(self._connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), KEY))

    def _is_held(self) -> bool:
        """Return whether the connection that holds the lock still works."""
        try:
            self._connection.execute(text("SELECT 1"))
        except SQLAlchemyError:
            return False
        return True


def _writes(connection: Connection) -> bool:
    return bool(connection.get_execution_options().get("writes", False))
