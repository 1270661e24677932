"""Copying a whole study into an empty database, compared row by row before it is stored."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Engine, Integer, func, insert, text
from sqlalchemy import Table as DbTable
from sqlalchemy import select as select_columns
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from data.address import shown
from data.database import transaction
from data.errors import Conflict
from data.queries.moving import TABLES, Content, content, counts, head, pages

Step = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied: table -> rows, and the hash of the last event, the same in both."""

    rows: dict[str, int]
    head: str


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
    with transaction(source) as there:
        if not any(counts(there).values()):
            raise Conflict(f"{shown(source.url)}: holds nothing to move")
        return copy_into(target, there, step)


def copy_into(target: Engine, there: Session, step: Step = lambda rows: None) -> Copied:
    """Copy all that the session `there` sees into an empty study, in one transaction.

    Raises
    ------
    Conflict
        As `move_study`.
    """
    try:
        with transaction(target) as here:
            _refuse_filled(here, target)
            rows = {one.name: _copy(there, here, one, step) for one in TABLES}
            _continue_keys(here)
            if head(here) != head(there):
                raise _differs("the head of the record")
            return Copied(rows, head(here))
    except IntegrityError as error:
        raise Conflict(
            "the study that is copied has rows that refer to none, or are twice there; nothing "
            "was stored (`medjury verify` may say more)"
        ) from error


def _refuse_filled(session: Session, target: Engine) -> None:
    filled = next(((name, rows) for name, rows in counts(session).items() if rows), None)
    if filled is not None:
        raise Conflict(
            f"{shown(target.url)}: is not empty ({filled[0]}: {filled[1]} rows), and a study is "
            "never mixed into another; name an empty database"
        )


def _copy(there: Session, here: Session, table: DbTable, step: Step) -> int:
    """Copy one table, then read it again and compare; return how many rows it has."""
    read = Content()
    for page in pages(there, table):
        read.add(page)
        here.execute(insert(table), [dict(one) for one in page])
        step(len(page))
    if content(here, table) != read:
        raise _differs(table.name)
    return read.rows


def _differs(what: str) -> Conflict:
    return Conflict(
        f"{what}: what was stored is not what was read; nothing was stored. Please report this"
    )


def _continue_keys(session: Session) -> None:
    """Let PostgreSQL number on after the keys that came with the rows; SQLite does of itself."""
    if session.get_bind().dialect.name != "postgresql":
        return
    sequence = text("SELECT setval(pg_get_serial_sequence(:table, 'id'), :last, :used)")
    for table in TABLES:
        if "id" in table.c and isinstance(table.c.id.type, Integer):
            last = session.scalar(select_columns(func.max(table.c.id)))
            given = {"table": table.name, "last": last or 1, "used": last is not None}
            session.execute(sequence, given)
