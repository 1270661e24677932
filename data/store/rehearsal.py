"""Trying an import without storing anything: all of it is checked as if it were stored."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, event


@contextmanager
def rehearsal(engine: Engine) -> Iterator[Engine]:
    """Yield an engine on the same study on which every commit is a rollback.

    What is written in one transaction is seen to its end and then gone, whoever wrote it.
    """
    trial = engine.execution_options(rehearsal=True)
    event.listen(trial, "commit", _take_back)
    yield trial


def _take_back(connection: Connection) -> None:
    """Undo all, in the driver, just before a commit: the commit then has nothing to keep."""
    driver: Any = connection.connection.dbapi_connection
    driver.rollback()
