"""A backup is the whole study at one moment, in one file, while clinicians rate."""

import json
import resource
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kit import postgres
from kit.behind import behind_the_record
from kit.packaged_study import SCORES, made, whole
from kit.studies import RESPONSES, Run, import_file
from sqlalchemy import Engine, text

from data.card import Reply
from data.database import open_study, reading
from data.errors import BadFile
from data.study.assignments import Slot, assign
from data.study.copies import ALL_TABLES, content, has_event
from data.study.moving import back_up
from data.study.people import invite
from data.study.ratings import submit
from data.study.room import next_task
from data.study.verify import verify

__all__ = ["made", "whole"]
HEADER = RESPONSES.splitlines()[0]
BACKUPS, CLINICIANS, SHOWN = 4, 3, 30


@pytest.fixture(params=["sqlite", "postgres"])
def ward(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """Return a study with clinicians who have work, in a database of either kind."""
    file = f"sqlite:///{tmp_path / 'ward.db'}"
    engine = open_study(postgres.new_database() if request.param == "postgres" else file, True)
    rows = [f"i{n},visits,dialogue {n},write,,r{n},model,answer {n}" for n in range(SHOWN)]
    (tmp_path / "responses.csv").write_text("\n".join([HEADER, *rows]), encoding="utf-8")
    import_file(engine, tmp_path / "responses.csv")
    names = [f"dr_{n}" for n in range(CLINICIANS)]
    invite(engine, names)
    slots = [Slot(who, place, place) for who in names for place in range(1, SHOWN + 1)]
    assign(engine, slots, seed=0, per_response=CLINICIANS)
    yield engine
    engine.dispose()


@contextmanager
def rated_meanwhile(engine: Engine) -> Iterator[list[int]]:
    """Let every clinician rate one response after another; yields who submitted so far."""
    over, submitted = threading.Event(), list[int]()

    def rate(rater: int) -> None:
        while not over.is_set() and (task := next_task(engine, rater).task) is not None:
            submit(engine, rater, task.card.code, Reply(SCORES), 5)
            submitted.append(rater)

    with engine.connect() as connection:
        raters = [one for (one,) in connection.execute(text("SELECT id FROM rater"))]
    threads = [threading.Thread(target=rate, args=(one,)) for one in raters]
    for one in threads:
        one.start()
    try:
        yield submitted
    finally:
        over.set()
        for one in threads:
            one.join(60)


def test_backups_takenwhile_clinicians_rate_are_whole(ward: Engine, tmp_path: Path) -> None:
    with rated_meanwhile(ward) as submitted:
        taken = [back_up(ward, tmp_path / f"backup-{n}.db") for n in range(BACKUPS)]
        there = len(submitted)
    assert there
    for number, found in enumerate(taken):
        assert found.findings == ()
        copy = open_study(f"sqlite:///{tmp_path / f'backup-{number}.db'}")
        assert verify(copy).head == found.head
        copy.dispose()
        assert found.rows["rating"] % len(SCORES) == 0
        with reading(ward) as session:
            assert has_event(session, found.head)
    assert [one.events for one in taken] == sorted(one.events for one in taken)
    assert verify(ward).findings == ()


def test_a_backup_holds_every_row_of_every_table(whole: Engine, tmp_path: Path) -> None:
    back_up(whole, tmp_path / "backup.db")
    copy = open_study(f"sqlite:///{tmp_path / 'backup.db'}")
    with reading(whole) as here, reading(copy) as there:
        assert all(content(here, one) == content(there, one) for one in ALL_TABLES)
    copy.dispose()


def test_a_backup_is_one_file_that_only_its_owner_reads(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
    to = tmp_path / "backup.db"
    code, out, err = run("study", "backup", str(to), "--json", "-", "--db", str(whole.url))
    assert code == 0, err
    assert json.loads(out)["head"] == verify(whole).head
    assert [one.name for one in to.parent.glob("*backup.db*")] == ["backup.db"]
    assert stat.S_IMODE(to.stat().st_mode) == 0o600
    assert run("study", "verify", "--db", f"sqlite:///{to}")[0] == 0


def test_a_backup_is_restored_into_a_server(run: Run, whole: Engine, tmp_path: Path) -> None:
    server = postgres.new_database()
    assert run("study", "backup", str(tmp_path / "backup.db"), "--db", str(whole.url))[0] == 0
    assert run("study", "backup", server, "--db", f"sqlite:///{tmp_path}/backup.db")[0] == 0
    code, out, _ = run("study", "verify", "--head", verify(whole).head, "--db", server)
    assert (code, "whole" in out) == (0, True)
    assert [one.name for one in tmp_path.glob("*backup.db*")] == ["backup.db"]


@pytest.mark.parametrize("name", ["study.db", "study.db-wal"])
@pytest.mark.usefixtures("study_file")
def test_a_backup_is_never_written_over_the_study(
    run: Run, whole: Engine, tmp_path: Path, name: str
) -> None:
    refused(run, whole, tmp_path, name)


@pytest.mark.parametrize("name", ["notes.txt", "none/backup.db", "."])
def test_a_place_that_is_taken_or_absent_is_refused(
    run: Run, whole: Engine, tmp_path: Path, name: str
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    refused(run, whole, tmp_path, name)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("password", ["hunter2", "a@hunter2", "a/hunter2", "hunter2@b/c"])
def test_a_database_where_a_file_belongs_is_refused_without_its_password(
    run: Run, password: str
) -> None:
    code, out, err = run(
        "study", "verify", f"postgresql+psycopg://study:{password}@127.0.0.1:1/ward"
    )
    assert (code, out) == (2, "")
    assert "verify postgresql+psycopg://study:***@127.0.0.1:1/ward: is a database" in err
    assert "hunter2" not in err


def refused(run: Run, whole: Engine, tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.iterdir())
    code, out, err = run("study", "backup", str(tmp_path / name), "--db", str(whole.url))
    assert (code, out) == (2, "")
    assert "name another file" in err
    assert sorted(tmp_path.iterdir()) == before


def test_a_file_that_came_meanwhile_is_kept(whole: Engine, tmp_path: Path) -> None:
    (tmp_path / "backup.db").write_text("mine")
    with pytest.raises(BadFile, match="already"):
        back_up(whole, tmp_path / "backup.db")
    assert (tmp_path / "backup.db").read_text() == "mine"
    assert not list(tmp_path.glob(".*"))


def test_what_is_wrong_in_the_study_is_told_of_its_backup(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
    with behind_the_record(whole) as session:
        session.execute(text("UPDATE rating SET comment = 'changed' WHERE id = 1"))
    code, out, _ = run("study", "backup", str(tmp_path / "backup.db"), "--db", str(whole.url))
    assert (code, "FINDING rating" in out) == (1, True)
    assert (tmp_path / "backup.db").exists()


def test_a_full_disk_leaves_nothing(whole: Engine, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(BadFile, match="nothing was written"):
            back_up(whole, tmp_path / "backup.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(tmp_path.iterdir()) == before
