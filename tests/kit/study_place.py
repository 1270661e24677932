"""Where the studies of the tests are: SQLite files, or databases of a PostgreSQL server."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, make_url, select
from sqlmodel import Session

from data.schema import Table
from kit import postgres

FILE = "sqlite:///"

StudyIn = Callable[..., str]
"""Say where the study of a folder, and of a name in it, is."""

_made: dict[Path, str] = {}


def study_in(folder: Path, name: str = "study.db") -> str:
    """Return the URL of the study of that name in a test's folder, always the same one."""
    if not postgres.wanted():
        return f"{FILE}{folder / name}"
    if folder / name not in _made:
        _made[folder / name] = postgres.new_study()
    return _made[folder / name]


def leave(folder: Path) -> None:
    """Take away the databases that stand for the studies in a folder."""
    for path in [one for one in _made if one.parent == folder]:
        postgres.drop(_made.pop(path))


def copy_study(like: str, to: str) -> None:
    """Make the study at `to` a copy of another."""
    if postgres.wanted():
        postgres.copy(like, to)
        return
    source, target = (sqlite3.connect(one.removeprefix(FILE)) for one in (like, to))
    with closing(source), closing(target):
        source.backup(target)


def fill(engine: Engine, like: Engine) -> None:
    """Make the study of one engine a copy of that of another: what took long is made once."""
    for opened in (engine, like):
        opened.dispose()
    places = [opened.url.render_as_string(hide_password=False) for opened in (like, engine)]
    copy_study(*places)


def all_rows(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table, sorted by their words."""
    with engine.connect() as connection:
        return {
            name: sorted((tuple(row) for row in connection.execute(select(table))), key=repr)
            for name, table in Table.metadata.tables.items()
        }


def nothing_stored(url: str) -> bool:
    """Tell whether a study was never begun: there is no file, or no row in the database."""
    path = make_url(url).database
    if not postgres.wanted():
        return not Path(str(path)).exists()
    engine = create_engine(url)
    rows = all_rows(engine)
    engine.dispose()
    return not any(rows.values())


READ_ONLY = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"


def only_reading(made: Any, _: object) -> None:
    made.execute(READ_ONLY if postgres.wanted() else "PRAGMA query_only=ON")
    made.commit()


@contextmanager
def behind_the_record(engine: Engine) -> Iterator[Session]:
    """Yield a session that commits what no event tells of."""
    with Session(engine) as session, session.begin():
        yield session
