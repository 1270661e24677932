"""Few round trips to PostgreSQL: statements that need no answer travel with those around them.

Only psycopg sends several statements at once; with other drivers, and on SQLite, each is sent by
itself and nothing else differs.
"""

import select
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self
from weakref import WeakKeyDictionary

import psycopg
from sqlalchemy import Engine, event
from sqlalchemy.exc import DBAPIError, InvalidatePoolError
from sqlmodel import Session

IDLE_SECONDS = 60  # after which a connection is asked whether it lives, as firewalls forget it
_CHECKED_IN = "medjury: when it was last used"
_first: WeakKeyDictionary[psycopg.Connection[Any], Sequence[str]] = WeakKeyDictionary()
_last: WeakKeyDictionary[psycopg.Connection[Any], list[str]] = WeakKeyDictionary()


class TogetherCursor(psycopg.Cursor[Any]):
    """A cursor whose first statement of a transaction travels with what `send_first` was given."""

    def execute(self, *arguments: Any, **options: Any) -> Self:
        """Execute one statement, after those that wait for it, in one round trip.

        Inside `together` it is only noted, its values written into it.
        """
        if (last := _last.get(self.connection)) is not None:
            last.append(psycopg.ClientCursor(self.connection).mogrify(*arguments))
            return self
        statements = _first.pop(self.connection, ())
        if not statements:
            return super().execute(*arguments, **options)
        with self.connection.pipeline():
            for statement in statements:
                self.connection.execute(statement)
            super().execute(*arguments, **options)
        return self

    def executemany(self, *arguments: Any, **options: Any) -> None:
        """Execute one statement with many rows, after those that wait for it."""
        if (last := _last.get(self.connection)) is not None:
            write = psycopg.ClientCursor(self.connection).mogrify
            last += [write(arguments[0], values) for values in arguments[1]]
            return
        for statement in _first.pop(self.connection, ()):
            self.connection.execute(statement)
        super().executemany(*arguments, **options)


def listen(engine: Engine) -> None:
    """Make an engine's connections send statements together, and find lost ones without asking."""
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "checkin", _note)
    event.listen(engine, "checkout", _refuse_lost)


def send_first(connection: psycopg.Connection[Any], statements: Sequence[str]) -> None:
    """Have statements sent in the same round trip as the next one of this connection."""
    _first[connection] = statements


@contextmanager
def together(session: Session) -> Iterator[None]:
    """Send what is executed inside as one message at the end, and wait for its answer.

    Nothing inside may read a result or how many rows were changed. A lock that is taken inside is
    held while the server works, and not while this process, with all its threads, writes the rest.

    Raises
    ------
    DBAPIError
        SQLAlchemy's for whatever the database refused.
    """
    connection = session.connection()
    raw = connection.connection.driver_connection
    if not isinstance(raw, psycopg.Connection):
        yield
        return
    statements = _last[raw] = [*_first.pop(raw, ())]
    try:
        yield
        del _last[raw]
        raw.execute("; ".join(statements).encode(raw.info.encoding), prepare=False)
    except psycopg.Error as error:
        dialect = connection.dialect
        lost = dialect.is_disconnect(error, raw, None)  # type: ignore[arg-type] # it asks psycopg's own attributes
        if lost:
            connection.invalidate(error)
        raise DBAPIError.instance(
            None, None, error, psycopg.Error, connection_invalidated=lost, dialect=dialect
        ) from error
    finally:
        _last.pop(raw, None)


def commit_here(session: Session) -> None:
    """Commit inside `together`, in its round trip; the session's own commit then sends nothing."""
    raw = session.connection().connection.driver_connection
    if isinstance(raw, psycopg.Connection):
        raw.execute("COMMIT")  # its own `commit` would be sent by itself


def _set_up(connection: Any, _: Any) -> None:
    connection.cursor_factory = TogetherCursor


def _note(connection: Any, record: Any) -> None:
    """Note when a connection was last used."""
    if connection is not None:
        _first.pop(connection, None)
        record.info[_CHECKED_IN] = time.monotonic()


def _refuse_lost(connection: Any, record: Any, _: Any) -> None:
    """Have the pool open new connections where the server has ended this one.

    A server that ends a connection says so: its socket has something to read, though nothing was
    asked. Only then, or after a long rest, is a round trip spent on asking.
    """
    used = record.info.get(_CHECKED_IN)
    if used is None:
        return
    rested = time.monotonic() - used > IDLE_SECONDS
    if not connection.closed and not rested and not _has_news(connection):
        return
    try:
        connection.execute("SELECT 1")
        connection.rollback()
    except psycopg.Error as error:
        raise InvalidatePoolError from error


def _has_news(connection: psycopg.Connection[Any]) -> bool:
    """Tell whether a connection that asked nothing has something to read."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
