"""Copying a study into one SQLite file while it goes on, and checking that file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.pool import NullPool

from data.database import open_study, reading
from data.errors import BadFile, NoStudy
from data.queries.moving import counts, has_event
from data.queries.record import verify
from data.store.access import SESSION_KEY
from data.store.moving import copy_into
from data.whole_files import part_of, publish

BESIDE = ("", "-wal", "-shm", "-journal")
OWNERS = 0o600  # it holds who wrote what, and the hashes of sign-in codes


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What a backup holds.

    Attributes
    ----------
    rows
        Table -> rows.
    events, head
        Length and last hash of its record.
    findings
        What `verify` says of it; what is wrong in the study is wrong in its backup.
    """

    rows: dict[str, int]
    events: int
    head: str
    findings: tuple[str, ...]


def back_up(engine: Engine, to: Path) -> BackedUp:
    """Write the study as it stands at one moment into a new SQLite file; nobody waits for it.

    The file appears under its name when it is whole, stored and checked.

    Raises
    ------
    BadFile
        If the file is there already, cannot be written, or is not whole.
    """
    part = part_of(to)
    with _failing(to):
        try:
            part.touch(mode=OWNERS, exist_ok=False)
            if engine.dialect.name == "sqlite":
                _online(engine, part)
            else:
                _copied(engine, part)
            damage = _sealed(part)
            found = _checked(engine, part, damage)
            publish(part, to)
        finally:
            for ending in BESIDE:
                part.with_name(part.name + ending).unlink(missing_ok=True)
    return found


@contextmanager
def _failing(to: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        raise BadFile(f"{to}: is there already; name another file") from error
    except OSError as error:
        raise BadFile(f"{to}: {error.strerror}; nothing was written") from error
    except sqlite3.Error as error:
        raise BadFile(f"{to}: {error}; nothing was written") from error


def _online(engine: Engine, part: Path) -> None:
    """Copy a SQLite study by SQLite's own means: in one step, which is one moment of it."""
    with closing(engine.raw_connection()) as held, closing(sqlite3.connect(part)) as to:
        held.driver_connection.backup(to)  # type: ignore[union-attr]  # there while it is held


def _copied(engine: Engine, part: Path) -> None:
    """Copy a study of another database row by row, as it stood when the first was read."""
    with _of_the_file():
        target = open_study(_url(part), create=True)
        try:
            with reading(engine) as there:
                copy_into(target, there)
        finally:
            target.dispose()


@contextmanager
def _of_the_file() -> Iterator[None]:
    """Tell trouble with the new file, such as a full disk, from trouble with the study itself."""
    try:
        yield
    except NoStudy as error:
        cause = getattr(error.__cause__, "orig", None)
        raise cause if isinstance(cause, sqlite3.Error) else error from None


def _url(path: Path) -> URL:
    return URL.create("sqlite", database=str(path))


def _sealed(part: Path) -> list[str]:
    """Make a file that needs none beside it, without the key of sessions; return what is wrong."""
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("PRAGMA secure_delete=ON")  # its bytes too
        connection.execute("DELETE FROM setting WHERE key = ?", (SESSION_KEY,))
        said = connection.execute("PRAGMA integrity_check").fetchone()[0]
        if said != "ok":
            raise sqlite3.DatabaseError(f"the copy is damaged ({said})")
        orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
    return [f"{table}: row {row} refers to none" for table, row, *_ in orphans]


def _checked(engine: Engine, part: Path, damage: list[str]) -> BackedUp:
    """Read the copy as a study, and look its last event up in the study it was made of."""
    copy = create_engine(_url(part), poolclass=NullPool)
    record = verify(copy)
    with reading(copy) as session:
        rows = counts(session)
    copy.dispose()
    with reading(engine) as session:
        if not has_event(session, record.head):
            raise sqlite3.DatabaseError("the copy's record does not end in the study's")
    return BackedUp(rows, record.events, record.head, (*damage, *record.findings))
