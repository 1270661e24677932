"""A study moves between databases and into a file whole, with its record, at one moment, or not at all."""

import json
import stat

import pytest
from kit import postgres
from kit.packaged_study import SCORES, made, whole
from kit.rating_study import task_of
from kit.study_place import behind_the_record
from sqlalchemy import make_url, text

from data import database
from data.card import Reply
from data.database import open_study, reading, shown, transaction
from data.errors import BadFile, BadInput, Conflict, NoStudy
from data.schema import Setting
from data.study.access import PSEUDONYM_KEY, SESSION_KEY, study_key
from data.study.copies import ALL_TABLES, content, copied, pages
from data.study.moving import back_up, move_study
from data.study.ratings import submit
from data.study.verify import verify

__all__ = ["made", "whole"]
SECRET = "hunter2-of-the-ward"


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request, tmp_path):
    """Return where there is no study yet, in a database of either kind."""
    return postgres.new_database() if request.param == "postgres" else file_of(tmp_path)


def file_of(tmp_path):
    return f"sqlite:///{tmp_path / 'new.db'}"


@pytest.fixture
def opened():
    engines = []

    def call(url):
        engines.append(open_study(url, create=True))
        return engines[-1]

    yield call
    for one in engines:
        one.dispose()


def held(engine):
    with reading(engine) as session:
        return {table.name: content(pages(session, copied(table))) for table in ALL_TABLES}


def url_of(engine):
    return engine.url.render_as_string()


def calibrated(run, url, to):
    code, _, err = run("analyse", "calibrate", "--reps", "20", "--json", str(to), "--db", url)
    assert code == 0, err
    return to.read_bytes()


def test_a_moved_study_is_and_calibrates_the_same_and_back(run, whole, empty, opened, tmp_path):
    told = tmp_path / "moved.json"
    code, out, err = run("study", "backup", empty, "--db", url_of(whole), "--json", str(told))
    assert (code, "the record is whole" in out) == (0, True), err
    before = held(whole)
    assert held(opened(empty)) == before
    said = json.loads(told.read_text())
    assert said["rows"] == {name: rows for name, (rows, _) in before.items()}
    assert said["head"] == verify(whole).head
    assert run("study", "verify", "--head", said["head"], "--db", empty)[0] == 0
    back = f"sqlite:///{tmp_path / 'back.db'}"
    assert run("study", "backup", back, "--db", empty)[0] == 0
    assert held(opened(back)) == before
    here = calibrated(run, url_of(whole), tmp_path / "here.json")
    assert calibrated(run, empty, tmp_path / "there.json") == here


def test_no_copy_has_the_key_that_signs_sessions(run, whole, empty, opened, tmp_path):
    key, names = study_key(whole, SESSION_KEY), study_key(whole, PSEUDONYM_KEY)
    backup = tmp_path / "backup.db"
    for to in (empty, str(backup)):
        assert run("study", "backup", to, "--db", url_of(whole))[0] == 0
    assert key.encode() not in backup.read_bytes()
    for copy in (opened(empty), opened(f"sqlite:///{backup}")):
        with reading(copy) as session:
            assert session.get(Setting, SESSION_KEY) is None
        assert study_key(copy, PSEUDONYM_KEY) == names
        assert study_key(copy, SESSION_KEY) not in (key, names)
        assert verify(copy).findings == ()
    assert study_key(whole, SESSION_KEY) == key


def test_clinicians_rate_on_where_the_study_went(run, whole, empty, opened):
    run("study", "backup", empty, "--db", url_of(whole))
    moved = opened(empty)

    def found(query):
        with moved.connect() as connection:
            return int(connection.scalar(text(query)) or 0)

    rater, last = found("SELECT id FROM rater WHERE handle = 'dr_z'"), "SELECT MAX(id) FROM rating"
    before = found(last)
    submit(moved, rater, task_of(moved, rater).card.code, Reply(SCORES), 5)
    assert found(last) > before
    assert verify(moved).findings == ()


def test_a_target_that_holds_anything_is_refused_and_kept(run, whole, empty, opened):
    target = opened(empty)
    with behind_the_record(target) as session:
        session.add(Setting(key="ours", value="1"))
    before = held(target)
    code, out, err = run("study", "backup", empty, "--db", url_of(whole))
    assert (code, out) == (2, "")
    assert "not empty (setting: 1 rows)" in err
    assert held(target) == before
    code, _, err = run("study", "backup", url_of(whole), "--db", url_of(whole))
    assert (code, "not empty" in err) == (2, True)
    assert verify(whole).findings == ()


def test_what_is_no_study_or_an_empty_one_is_named_and_nothing_is_made(run, opened, tmp_path):
    absent = f"sqlite:///{tmp_path / 'absent.db'}"
    code, _, err = run("study", "backup", file_of(tmp_path), "--db", absent)
    assert (code, "absent.db" in err) == (2, True)
    assert not list(tmp_path.glob("*.db"))
    one, other = (opened(f"sqlite:///{tmp_path / name}") for name in ("a.db", "b.db"))
    with pytest.raises(Conflict, match="nothing to move"):
        move_study(one, other)


@pytest.mark.usefixtures("study_file")  # PostgreSQL holds no such text
def test_a_move_that_fails_stores_nothing(whole, opened):
    with behind_the_record(whole) as session:
        session.execute(text("UPDATE rating SET comment = 'a' || char(0) || 'b' WHERE id = 1"))
    target = opened(postgres.new_database())
    with pytest.raises(BadInput, match="cannot hold a value"):
        move_study(whole, target)
    assert not any(rows for rows, _ in held(target).values())


@pytest.mark.usefixtures("study_file")  # nor a row that refers to none
def test_rows_that_refer_to_none_are_told_and_the_new_file_is_taken_away(run, whole, tmp_path):
    with whole.connect() as connection:
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        connection.exec_driver_sql("UPDATE rating SET response = 999 WHERE id = 1")
        connection.exec_driver_sql("PRAGMA foreign_keys=ON")
        connection.exec_driver_sql("BEGIN")
    code, _, err = run("study", "backup", file_of(tmp_path), "--db", url_of(whole))
    assert (code, "refer to none" in err) == (2, True)
    assert not list(tmp_path.glob("new.db*"))


def test_findings_of_the_study_move_with_it_and_are_told(run, whole, empty, tmp_path):
    with behind_the_record(whole) as session:
        session.execute(text("UPDATE rating SET comment = 'changed' WHERE id = 1"))
    for to in (empty, str(tmp_path / "backup.db")):
        code, out, _ = run("study", "backup", to, "--db", url_of(whole))
        assert (code, "FINDING rating" in out) == (1, True)
    assert (tmp_path / "backup.db").exists()


def test_nobody_writes_to_a_study_while_it_is_moved(whole, empty, opened, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    late, refused = opened(url_of(whole)), []

    def write(_):
        with pytest.raises(NoStudy, match="wait") as told, transaction(late) as session:
            session.add(Setting(key="late", value="1"))
        refused.append(told)

    move_study(whole, opened(empty), write)
    assert refused


AT = "127.0.0.1:1/study"


@pytest.mark.parametrize(
    "place",
    [
        *(f"postgresql+psycopg://dr:{odd}{SECRET}@{AT}" for odd in ("", "a@", "a@b/", "a@b?")),
        f"postgresql+psycopg://127.0.0.1:1/study?user=dr&password={SECRET}",
        f"postgresql+nodriver://dr:{SECRET}@127.0.0.1/study",
        f"postgresql://dr:{SECRET}@127.0.0.1:port/study",
        f"nonsense://dr:{SECRET}@127.0.0.1/study",
        f"dr:{SECRET}@127.0.0.1://study",
    ],
)
def test_a_database_that_cannot_be_opened_is_told_without_its_password(run, whole, place):
    for source, to in ((url_of(whole), place), (place, url_of(whole))):
        code, out, err = run("study", "backup", to, "--db", source)
        assert (code, out) == (2, "")
        assert "Traceback" not in err
        assert SECRET not in err


@pytest.mark.parametrize(
    ("begin", "told"),
    [
        ("postgresql+psycopg://dr:a@", f"dr:***@{AT}: holds more than one @; in a"),
        ("postgres://dr:", f"postgres://dr:***@{AT}: begin it with postgresql+psycopg://"),
    ],
)
def test_a_url_to_be_written_otherwise_is_told_how_and_without_its_password(run, begin, told):
    db = f"{begin}{SECRET}@{AT}"
    code, _, err = run("study", "verify", "--db", db)
    assert (code, SECRET in err, told in err) == (2, False, True)
    code, _, err = run("study", "verify", db.replace("postgres:", "postgresql:"))  # for a file
    assert (code, SECRET in err, "is a database" in err) == (2, False, True)
    after = f"postgresql+psycopg://127.0.0.1:1/study?user=dr&password={SECRET}"
    assert shown(after).endswith("?user=dr&password=***")
    assert "password=***&" in shown(make_url(after))


def test_a_backup_is_one_file_that_only_its_owner_reads(run, whole, tmp_path):
    to = tmp_path / "backup.db"
    code, out, err = run("study", "backup", str(to), "--json", "-", "--db", str(whole.url))
    assert code == 0, err
    assert json.loads(out)["head"] == verify(whole).head
    assert [one.name for one in to.parent.glob("*backup.db*")] == ["backup.db"]
    assert stat.S_IMODE(to.stat().st_mode) == 0o600
    assert run("study", "verify", "--db", f"sqlite:///{to}")[0] == 0


@pytest.mark.usefixtures("study_file")
@pytest.mark.parametrize("name", ["study.db", "study.db-wal", "notes.txt", "none/backup.db", "."])
def test_a_backup_is_never_written_over_anything(run, whole, tmp_path, name):
    (tmp_path / "notes.txt").write_text("mine")
    before = sorted(tmp_path.iterdir())
    code, out, err = run("study", "backup", str(tmp_path / name), "--db", str(whole.url))
    assert (code, out) == (2, "")
    assert "name another file" in err
    with pytest.raises(BadFile, match="already"):
        back_up(whole, tmp_path / "notes.txt")  # that came meanwhile
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "notes.txt").read_text() == "mine"
