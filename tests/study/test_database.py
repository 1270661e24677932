"""Opening a study: made once, in one form, and refused with one message where it cannot be; SQLite and PostgreSQL."""

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from kit import postgres
from kit.studies import Run
from sqlalchemy import Engine, inspect, text

from data import database
from data.database import HEAD, MIGRATIONS, open_study, transaction
from data.errors import NoStudy
from data.record import log
from data.schema import Setting, Table
from data.study.verify import verify

KILLED = """
import os, signal, sys
from sqlalchemy import Engine, event
from data.database import open_study
left = [int(sys.argv[2])]
@event.listens_for(Engine, "after_cursor_execute")
def count(connection, cursor, statement, *_):
    left[0] -= statement.split()[0] in ("CREATE", "ALTER", "DROP", "INSERT", "UPDATE")
    if left[0] <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
open_study(sys.argv[1], create=True)
"""


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return where an empty database of either kind is or will be."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'study.db'}"
        return
    url = postgres.new_database()
    yield url
    postgres.drop(url)


def test_a_new_study_has_exactly_the_tables_of_the_schema_and_the_newest_form(place: str) -> None:
    assert ScriptDirectory(str(MIGRATIONS)).get_current_head() == HEAD
    study = open_study(place, create=True)
    with study.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Table.metadata) == []
        assert context.get_current_revision() == HEAD
    assert verify(study).findings == ()
    study.dispose()


@pytest.mark.parametrize("form", ["0021", "study_99"])
def test_a_study_of_another_form_is_refused_and_left_alone(place: str, form: str, run: Run) -> None:
    study = open_study(place, create=True)
    with study.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :form"), {"form": form})
    before = inspect(study).get_table_names()
    with pytest.raises(NoStudy, match=rf"another version of medjury made it \(form {form}"):
        open_study(place)
    code, _, told = run("study", "verify", "--db", place)
    assert (code, form in told, "begin anew" in told, "Traceback" in told) == (2, True, True, False)
    assert inspect(study).get_table_names() == before
    study.dispose()


@pytest.mark.parametrize("statements", [2, 20])
def test_a_beginning_killed_in_the_middle_leaves_no_tables_and_can_be_made_again(
    place: str, statements: int
) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, place, str(statements)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert inspect(database._engine(place)).get_table_names() == []
    study = open_study(place, create=True)
    assert verify(study).findings == ()
    study.dispose()


OPENED = "from data.database import open_study; study = "


@pytest.mark.usefixtures("study_file")
def test_sqlite_runs_in_wal_and_enforces_foreign_keys(engine: Engine) -> None:
    with engine.connect() as connection:
        assert connection.scalar(text("PRAGMA journal_mode")) == "wal"
        assert connection.scalar(text("PRAGMA foreign_keys")) == 1


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("absent.db", None, r"no study at .*absent\.db"),
        ("empty.db", b"", "there is no study at"),
        ("notes.db", b"these are notes, not a database" * 100, "not a database"),
        ("other.db", "CREATE TABLE patients (id)", "not those of a study"),
    ],
)
def test_what_is_no_study_is_named_and_stays_as_it_is(
    tmp_path: Path, name: str, content: str | bytes | None, said: str
) -> None:
    path = tmp_path / name
    if isinstance(content, str):
        with closing(sqlite3.connect(path)) as other:
            other.execute(content)
    elif content is not None:
        path.write_bytes(content)
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(NoStudy, match=said):
        open_study(f"sqlite:///{path}")
    assert (path.read_bytes() if path.exists() else None) == before


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "--db"),
        ("nosuch://x", "--db"),
        ("postgresql+nodriver://h/d", "--db"),
        ("sqlite:////nowhere/study.db", "folder .*nowhere does not exist"),
    ],
)
def test_where_no_study_can_be_made_is_refused(url: str, said: str) -> None:
    with pytest.raises(NoStudy, match=said):
        open_study(url, create=True)


def test_a_locked_study_is_named_after_the_wait(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    study, impatient = (open_study(place, create=True) for _ in range(2))
    with transaction(study) as session:
        session.add(Setting(key="held", value="1"))
        session.flush()
        with pytest.raises(NoStudy, match="locked; wait"), transaction(impatient) as other:
            other.add(Setting(key="late", value="2"))
        log(session, "test", "setting changed", {})
    for one in (study, impatient):
        one.dispose()


def test_processes_may_open_a_new_study_at_once(place: str) -> None:
    script = f"{OPENED}open_study({place!r}, create=True)"
    started = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    assert [one.wait() for one in started] == [0, 0]


@pytest.mark.usefixtures("study_file")
def test_a_command_that_ends_leaves_one_file_and_a_copy_of_it_has_all(
    url: str, study_file: Path, tmp_path: Path
) -> None:
    people = ["-m", "medjury", "rate", "people", "add", "dr_a", "--db", url]
    for command in (["-c", f"{OPENED}open_study({url!r}, create=True)"], people):
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        assert [one.name for one in tmp_path.iterdir()] == [study_file.name]
    with closing(sqlite3.connect(shutil.copy(study_file, tmp_path / "copy.db"))) as copy:
        assert copy.execute("SELECT COUNT(*) FROM account").fetchone() == (1,)


@pytest.mark.usefixtures("study_file")
def test_only_its_owner_reads_a_new_study_and_an_old_one_keeps_its_mode(
    url: str, study_file: Path, tmp_path: Path
) -> None:
    before = os.umask(0o022)
    try:
        for mode in (0o600, 0o640):
            engine = open_study(url, create=True)
            with transaction(engine) as session:
                session.add(Setting(key=str(mode), value="1"))
                log(session, "test", "setting changed", {})
            modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()}
            engine.dispose()
            assert len(modes) == 3
            assert set(modes.values()) == {mode}
            study_file.chmod(0o640)
    finally:
        os.umask(before)
