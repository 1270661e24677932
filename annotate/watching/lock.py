"""One watch at a time on a study: a second one is refused, a killed one blocks nobody."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from data.database import database_errors, shown
from data.errors import Conflict
from jury.run import lock_beside

KEY = {"key": 0x6D656477}
Held = Callable[[], bool]


@contextmanager
def watch_lock(engine: Engine) -> Iterator[Held]:
    """Hold the study's watch lock; yield what tells whether it is still held.

    The lock is the operating system's or the server's, and ends with its process however that dies. A
    PostgreSQL server forgets it when it restarts: it is taken again, unless another watch has it.

    Raises
    ------
    Conflict
        If another watch holds it.
    """
    path = engine.url.database

    def refuse() -> None:
        raise Conflict(
            f"study {shown(engine.url)}: another watch is on; end it first, since two would take in and "
            "pay for the same outputs"
        )

    if engine.dialect.name == "postgresql":
        with database_errors(engine.url):
            lock = _ServersLock(engine)
        if not lock.is_held():
            refuse()
        try:
            yield lock.is_held
        finally:
            lock.leave()
    elif path and path != ":memory:":
        with lock_beside(f"{path}-watch", refuse):
            yield lambda: True
    else:
        yield lambda: True


class _ServersLock:
    """A lock that a PostgreSQL server keeps for one connection."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._connection: Connection | None = None

    def is_held(self) -> bool:
        """Tell whether the lock is held, taking it again where its connection was lost."""
        try:
            if self._connection is not None:
                self._connection.execute(text("SELECT 1"))
                return True
        except SQLAlchemyError:
            self.leave()
        try:
            fresh = self._engine.connect()
            if fresh.scalar(text("SELECT pg_try_advisory_lock(:key)"), KEY):
                self._connection = fresh
                return True
            fresh.close()
        except SQLAlchemyError:
            pass
        return False

    def leave(self) -> None:
        """Close the connection; the server lets go of the lock with it."""
        if self._connection is not None:
            self._connection.invalidate()
            self._connection.close()
            self._connection = None
