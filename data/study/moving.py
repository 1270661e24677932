"""Copying a whole study into an empty database or one SQLite file, compared row by row."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, Engine, Integer, create_engine, func, insert, text
from sqlalchemy import Table as DbTable
from sqlalchemy import select as select_columns
from sqlalchemy.exc import IntegrityError
from sqlalchemy.pool import NullPool
from sqlmodel import Session

from data.database import open_study, reading, shown, transaction
from data.errors import BadFile, Conflict, NoStudy
from data.files import part_of, publish
from data.record import PAST_RECORD
from data.study.access import SESSION_KEY
from data.study.copies import (
    ALL_TABLES,
    Row,
    content,
    copied,
    counts,
    has_event,
    head,
    pages,
)
from data.study.verify import verify

Step = Callable[[int], None]
BESIDE = ("", "-wal", "-shm", "-journal")
OWNERS = 0o600  # it holds who wrote what, and the hashes of sign-in codes


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied.

    Attributes
    ----------
    rows
        Table -> rows.
    head
        Hash of the last event, the same in both.
    events, findings
        Of a backup: the length of its record, and what `verify` says of it; what is wrong in the
        study is wrong in its backup.
    """

    rows: dict[str, int]
    head: str
    events: int = 0
    findings: tuple[str, ...] = ()


def move_study(source: Engine, target: Engine, step: Step = lambda rows: None) -> Copied:
    """Copy all rows of a study into an empty one; meanwhile nobody else writes to either.

    Parameters
    ----------
    step
        Called with the number of rows that were copied since it was last called.

    Raises
    ------
    Conflict
        If `target` holds anything, `source` holds nothing, a row of it refers to none, or what
        was stored is not what was read. Nothing is stored then; `source` never changes.
    """
    with transaction(target) as session:
        _refuse_filled(session, target)
    with transaction(source) as origin:
        if not any(counts(origin).values()):
            raise Conflict(f"{shown(source.url)}: holds nothing to move")
        return copy_into(target, origin, step)


def copy_into(target: Engine, origin: Session, step: Step = lambda rows: None) -> Copied:
    """Copy all that the session `there` sees into an empty study, in one transaction.

    Raises
    ------
    Conflict
        As `move_study`.
    """
    try:
        with transaction(target) as copy:
            _refuse_filled(copy, target)
            rows = {table.name: _copy_table(origin, copy, table, step) for table in ALL_TABLES}
            continue_keys(copy)
            if head(copy) != head(origin):
                raise _differs("the head of the record")
            return Copied(rows, head(copy))
    except IntegrityError as error:
        raise Conflict(
            "the study that is copied has rows that refer to none, or are twice there; nothing "
            "was stored (`medjury study verify` may say more)"
        ) from error


def _refuse_filled(session: Session, target: Engine) -> None:
    filled = next(((name, rows) for name, rows in counts(session).items() if rows), None)
    if filled is not None:
        raise Conflict(
            f"{shown(target.url)}: is not empty ({filled[0]}: {filled[1]} rows), and a study is "
            "never mixed into another; name an empty database"
        )


def _copy_table(origin: Session, copy: Session, table: DbTable, step: Step) -> int:
    """Copy one table, then read it again and compare; return how many rows it has."""

    def stored() -> Iterator[list[Row]]:
        for page in pages(origin, copied(table)):
            copy.execute(insert(table), page, execution_options={PAST_RECORD: True})
            step(len(page))
            yield page

    read = content(stored())
    if content(pages(copy, copied(table))) != read:
        raise _differs(table.name)
    return read[0]


def _differs(part: str) -> Conflict:
    return Conflict(
        f"{part}: what was stored is not what was read; nothing was stored. Please report this"
    )


def continue_keys(session: Session) -> None:
    """Let PostgreSQL number on after the keys that came with the rows; SQLite does of itself."""
    if session.get_bind().dialect.name != "postgresql":
        return
    sequence = text("SELECT setval(pg_get_serial_sequence(:table, 'id'), :last, :used)")
    for table in ALL_TABLES:
        if "id" in table.c and isinstance(table.c.id.type, Integer):
            last = session.scalar(select_columns(func.max(table.c.id)))
            values = {"table": table.name, "last": last or 1, "used": last is not None}
            session.execute(sequence, values)


def back_up(engine: Engine, to: Path) -> Copied:
    """Write the study as it stands at one moment into a new SQLite file; nobody waits for it.

    The file appears under its name when it is whole, stored and checked.

    Raises
    ------
    BadFile
        If the file is there already, cannot be written, or is not whole.
    """
    part = part_of(to)
    try:
        part.touch(mode=OWNERS, exist_ok=False)
        if engine.dialect.name == "sqlite":
            with closing(engine.raw_connection()) as own, closing(sqlite3.connect(part)) as copy:
                own.driver_connection.backup(copy)  # type: ignore[union-attr]  # there while it is held
        else:
            _copy_rows(engine, part)
        damage = _finish_file(part)
        backup = _verified(engine, part, damage)
        publish(part, to)
    except FileExistsError as error:
        raise BadFile(f"{to}: is there already; name another file") from error
    except (OSError, sqlite3.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadFile(f"{to}: {why}; nothing was written") from error
    finally:
        for ending in BESIDE:
            part.with_name(part.name + ending).unlink(missing_ok=True)
    return backup


def _copy_rows(engine: Engine, part: Path) -> None:
    """Copy a study of another database row by row, as it stood when the first was read.

    Trouble with the new file, such as a full disk, is told from trouble with the study itself.
    """
    target = None
    try:
        target = open_study(_url(part), create=True)
        with reading(engine) as origin:
            copy_into(target, origin)
    except NoStudy as error:
        cause = getattr(error.__cause__, "orig", None)
        raise cause if isinstance(cause, sqlite3.Error) else error from None
    finally:
        if target is not None:
            target.dispose()


def _url(path: Path) -> URL:
    return URL.create("sqlite", database=str(path))


def _finish_file(part: Path) -> list[str]:
    """Make a file that needs none beside it, without the key of sessions; return what is wrong."""
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("PRAGMA secure_delete=ON")  # its bytes too
        connection.execute("DELETE FROM setting WHERE key = ?", (SESSION_KEY,))
        integrity = connection.execute("PRAGMA integrity_check").fetchone()[0]
        if integrity != "ok":
            raise sqlite3.DatabaseError(f"the copy is damaged ({integrity})")
        orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
    return [f"{table}: row {row} refers to none" for table, row, *_ in orphans]


def _verified(engine: Engine, part: Path, damage: list[str]) -> Copied:
    """Read the copy as a study, and look its last event up in the study it was made of."""
    copy = create_engine(_url(part), poolclass=NullPool)
    record = verify(copy)
    with reading(copy) as session:
        rows = counts(session)
    copy.dispose()
    with reading(engine) as session:
        if not has_event(session, record.head):
            raise sqlite3.DatabaseError("the copy's record does not end in the study's")
    return Copied(rows, record.head, record.events, (*damage, *record.findings))
