"""Opening a study: made once, migrated, and refused with one message where it cannot be."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, text

from data import database
from data.database import open_study, transaction
from data.errors import NoStudy
from data.record import log
from data.schema import Setting, Table

OPENED = "from data.database import open_study; study = "


def test_migrations_build_exactly_the_tables_of_the_schema(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Table.metadata) == []


@pytest.mark.usefixtures("study_file")
def test_sqlite_runs_in_wal_and_enforces_foreign_keys(engine: Engine) -> None:
    with engine.connect() as connection:
        assert connection.scalar(text("PRAGMA journal_mode")) == "wal"
        assert connection.scalar(text("PRAGMA foreign_keys")) == 1


def test_an_absent_study_is_named_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(NoStudy, match=r"no study at .*absent\.db"):
        open_study(f"sqlite:///{tmp_path / 'absent.db'}")
    assert not (tmp_path / "absent.db").exists()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoStudy, match=r"folder .*nowhere does not exist"):
        open_study(f"sqlite:///{tmp_path / 'nowhere' / 'study.db'}", create=True)


@pytest.mark.parametrize("url", ["nonsense", "nosuch://x", "postgresql+nodriver://h/d"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(NoStudy, match="--db"):
        open_study(url, create=True)


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("these are notes, not a database" * 100)
    with pytest.raises(NoStudy, match="not a database"):
        open_study(f"sqlite:///{tmp_path / 'notes.db'}")
    assert (tmp_path / "notes.db").read_text().startswith("these are notes")


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE patients (id)")
    other.close()
    with pytest.raises(NoStudy, match="not those of a study"):
        open_study(f"sqlite:///{tmp_path / 'other.db'}")


def test_a_locked_study_is_named_after_the_wait(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    impatient = open_study(engine.url.render_as_string())
    with transaction(engine) as session:
        session.add(Setting(key="held", value="1"))
        session.flush()
        with pytest.raises(NoStudy, match="locked; wait"), transaction(impatient) as other:
            other.add(Setting(key="late", value="2"))
        log(session, "test", "setting changed", {})
    impatient.dispose()


def test_processes_may_open_a_new_study_at_once(url: str) -> None:
    script = f"from data.database import open_study; open_study({url!r}, create=True)"
    started = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(4)]
    assert [one.wait() for one in started] == [0, 0, 0, 0]


def test_writers_at_once_lose_nothing(engine: Engine) -> None:
    def add(start: int) -> None:
        for number in range(start, start + 20):
            with transaction(engine) as session:
                session.add(Setting(key=str(number), value="x"))
                log(session, "test", "setting changed", {})

    threads = [threading.Thread(target=add, args=(100 * one,)) for one in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT COUNT(*) FROM setting")) == 160


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


@pytest.mark.usefixtures("study_file")
def test_an_empty_file_is_no_study_and_stays_empty(url: str, study_file: Path) -> None:
    study_file.touch()
    with pytest.raises(NoStudy, match="there is no study at"):
        open_study(url)
    assert study_file.stat().st_size == 0
