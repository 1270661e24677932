"""Opening a study on SQLite or PostgreSQL, which keeps the same promises, and figures of one moment."""

import os
import shutil
import signal
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
from alembic.script import ScriptDirectory
from kit import postgres
from kit.rating_study import task_of
from kit.studies import HEAD as COLUMNS
from kit.studies import import_file, import_small
from sqlalchemy import create_engine, event, inspect, make_url, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from data import database
from data.card import Reply
from data.database import HEAD, MIGRATIONS, one_moment, open_study, reading, transaction
from data.errors import BadInput, NoStudy
from data.importers.rows import Origin, RatingRow
from data.record import log
from data.schema import Kind, Setting, Table
from data.study.assignments import Slot, assign
from data.study.frames import ratings_frame
from data.study.people import invite
from data.study.ratings import import_ratings, submit
from data.study.verify import verify
from medjury.services.scores import scores_of

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
def place(request, tmp_path):
    """Return where an empty database of either kind is or will be."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'study.db'}"
        return
    url = postgres.new_database()
    yield url
    postgres.drop(url)


def test_a_new_study_has_exactly_the_tables_of_the_schema_and_the_newest_form(place):
    assert ScriptDirectory(str(MIGRATIONS)).get_current_head() == HEAD
    study = open_study(place, create=True)
    with study.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Table.metadata) == []
        assert context.get_current_revision() == HEAD
    assert verify(study).findings == ()
    study.dispose()


@pytest.mark.parametrize("form", ["0021", "study_99"])
def test_a_study_of_another_form_is_refused_and_left_alone(place, form, run):
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
def test_a_beginning_killed_in_the_middle_leaves_no_tables_and_can_be_made_again(place, statements):
    ended = subprocess.run([sys.executable, "-c", KILLED, place, str(statements)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert inspect(database._engine(place)).get_table_names() == []
    study = open_study(place, create=True)
    assert verify(study).findings == ()
    study.dispose()


OPENED = "from data.database import open_study; study = "


@pytest.mark.usefixtures("study_file")
def test_sqlite_runs_in_wal_and_enforces_foreign_keys(engine):
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
def test_what_is_no_study_is_named_and_stays_as_it_is(tmp_path, name, content, said):
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
def test_where_no_study_can_be_made_is_refused(url, said):
    with pytest.raises(NoStudy, match=said):
        open_study(url, create=True)


def test_a_locked_study_is_named_after_the_wait(place, monkeypatch):
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


def test_processes_may_open_a_new_study_at_once(place):
    script = f"{OPENED}open_study({place!r}, create=True)"
    started = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    assert [one.wait() for one in started] == [0, 0]


@pytest.mark.usefixtures("study_file")
def test_a_command_that_ends_leaves_one_file_and_a_copy_of_it_has_all(url, study_file, tmp_path):
    people = ["-m", "medjury", "rate", "people", "add", "dr_a", "--db", url]
    for command in (["-c", f"{OPENED}open_study({url!r}, create=True)"], people):
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        assert [one.name for one in tmp_path.iterdir()] == [study_file.name]
    with closing(sqlite3.connect(shutil.copy(study_file, tmp_path / "copy.db"))) as copy:
        assert copy.execute("SELECT COUNT(*) FROM account").fetchone() == (1,)


@pytest.mark.usefixtures("study_file")
def test_only_its_owner_reads_a_new_study_and_an_old_one_keeps_its_mode(url, study_file, tmp_path):
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


SCORES = {"accuracy": 2, "completeness": 3, "clarity": 5}


@pytest.fixture
def server():
    return postgres.new_database()


@pytest.fixture
def ward(server, tmp_path):
    """Return a study on the server: four responses, and a clinician at the door."""
    engine = open_study(server, create=True)
    import_small(engine, tmp_path)
    invite(engine, ["dr_0"])
    yield engine
    engine.dispose()


def test_ratings_are_vouched_for_whatever_the_servers_time_zone(ward):
    assign(ward, [Slot("dr_0", 1, 1)], seed=0, per_response=1)
    submit(ward, 1, task_of(ward, 1).card.code, Reply(SCORES, comment="\u00e9 \U0001f600"), 5)
    with ward.connect() as connection:
        assert connection.scalar(text("SHOW timezone")) == postgres.ZONE
    found = verify(ward)
    assert (found.findings, found.rows["rating"]) == ((), 3)
    with ward.begin() as connection:
        connection.execute(text("UPDATE response SET text = 'better' WHERE id = 2"))
    assert len(verify(ward).findings) == 1


def test_who_reads_sees_one_moment_and_waits_for_nobody(ward):
    count = text("SELECT COUNT(*) FROM setting")
    with reading(ward) as reader:
        before = reader.scalar(count)
        with transaction(ward) as session:
            session.add(Setting(key="new", value="1"))
            log(session, "test", "setting changed", {})
        assert reader.scalar(count) == before
    with reading(ward) as reader:
        assert reader.scalar(count) == (before or 0) + 1


def test_texts_are_sorted_as_sqlite_and_python_do(ward):
    with transaction(ward) as session:
        session.add_all(Setting(key=f"sort {one}", value="1") for one in ("b", "B", "a", "\u00e4"))
        log(session, "test", "setting changed", {})
    query = text("SELECT key FROM setting WHERE key LIKE 'sort %' ORDER BY key")
    with reading(ward) as session:
        found = list(session.scalars(query))
        kinds = text(
            "SELECT DISTINCT collation_name FROM information_schema.columns WHERE "
            "table_schema = current_schema() AND data_type = 'character varying'"
        )
        assert list(session.scalars(kinds)) == ["C"]
    assert found == sorted(found)


def test_a_character_postgresql_cannot_hold_is_told_and_nothing_is_stored(ward):
    both = [Setting(key="first", value="1"), Setting(key="nul", value="a\0b")]
    with pytest.raises(BadInput, match="cannot hold a value"), transaction(ward) as session:
        session.add_all(both)
    with reading(ward) as session:
        assert session.get(Setting, "first") is None


def test_a_user_who_may_not_write_is_told(ward):
    with ward.begin() as connection:
        connection.execute(text("DROP ROLE IF EXISTS looker"))
        connection.execute(text("CREATE ROLE looker LOGIN"))
        connection.execute(text("GRANT SELECT ON ALL TABLES IN SCHEMA public TO looker"))
    looker = open_study(make_url(ward.url).set(username="looker"))
    assert verify(looker).findings == ()
    with pytest.raises(NoStudy, match=r"permission denied.*grant"), transaction(looker) as session:
        session.add(Setting(key="k", value="1"))
    looker.dispose()
    elsewhere = make_url(postgres.new_database())
    owner = create_engine(elsewhere)
    with owner.begin() as connection:
        connection.execute(text("REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
    owner.dispose()
    with pytest.raises(NoStudy, match=r"for schema public; let whoever owns it grant"):
        open_study(elsewhere.set(username="looker"), create=True)
    with ward.begin() as connection:
        connection.execute(text("DROP OWNED BY looker"))
        connection.execute(text("DROP ROLE looker"))


def test_an_empty_or_absent_database_is_no_study_and_stays_so(server):
    with pytest.raises(NoStudy, match=r"there is no study at postgresql.*medjury demo"):
        open_study(server)
    engine = create_engine(server)
    assert inspect(engine).get_table_names() == []
    engine.dispose()
    with pytest.raises(NoStudy, match='"nowhere" does not exist; make it with createdb'):
        open_study(make_url(server).set(database="nowhere"), create=True)


def test_who_is_not_let_in_is_told_why_and_never_by_a_word_in_a_name(ward):
    with ward.begin() as connection:
        connection.execute(text("DROP ROLE IF EXISTS fuller"))
        connection.execute(text("CREATE ROLE fuller LOGIN PASSWORD 'right'"))
        rules = Path(str(connection.scalar(text("SHOW hba_file"))))
    before = rules.read_text()
    try:
        rules.write_text(f"local all fuller scram-sha-256\n{before}")
        _reloaded(ward, closed=True)
        for name, password in (("fuller", "wrong"), ("no_such_connection", None)):
            with pytest.raises(NoStudy, match="; check user and password"):
                open_study(make_url(ward.url).set(username=name, password=password))
    finally:
        rules.write_text(before)
        _reloaded(ward, closed=False)
    away = "postgresql+psycopg://fuller@127.0.0.1:1/locked"
    with pytest.raises(NoStudy, match="see that the server runs"):
        open_study(away)


def lets_in(engine):
    try:
        engine.connect().close()
    except OperationalError:
        return False
    return True


def _reloaded(ward, closed):
    """Let the server read its rules, and wait until a new connection has them."""
    with ward.begin() as connection:
        connection.execute(text("SELECT pg_reload_conf()"))
    asked = create_engine(make_url(ward.url).set(username="fuller"), poolclass=NullPool)
    for _ in range(500):
        if lets_in(asked) != closed:
            return
        threading.Event().wait(0.01)
    raise AssertionError("the server's rules stay as they were")


RESPONSES = 60
CRITERIA = ("accuracy", "completeness", "clarity")
JURORS = ("a", "b")


@pytest.fixture(params=["sqlite", "postgresql"])
def study(request, tmp_path):
    """Return a study whose responses two jurors have rated, and a clinician the first twenty."""
    file = f"sqlite:///{tmp_path / 'moment.db'}"
    engine = open_study(file if request.param == "sqlite" else postgres.new_database(), create=True)
    lines = [f"i{n},visits,Context.,Write.,,r{n},m,Said {n}." for n in range(RESPONSES)]
    (tmp_path / "many.csv").write_text("\n".join([COLUMNS, *lines]))
    import_file(engine, tmp_path / "many.csv")
    jurors = [row(n, name, Kind.JUROR) for n in range(RESPONSES) for name in JURORS]
    clinicians = [row(n, "dr_a", Kind.CLINICIAN) for n in range(20)]
    import_ratings(engine, [one for rows in (*jurors, *clinicians) for one in rows])
    yield engine
    engine.dispose()


def row(number, rater, kind):
    score = str(1 + (number * 7 + len(rater)) % 5)
    where = Origin("made", number + 1)
    return [RatingRow(where, f"r{number}", rater, kind, name, score) for name in CRITERIA]


@pytest.fixture
def rated_meanwhile(study):
    """Let the clinician rate one more response after each statement of a reader."""
    writer = open_study(study.url)
    left = iter(range(20, RESPONSES))
    rated = 0

    def rate(*_):
        nonlocal rated
        number = next(left, None)
        if number is not None:
            import_ratings(writer, row(number, "dr_a", Kind.CLINICIAN))
            rated += 1

    event.listen(study, "after_cursor_execute", rate)
    yield lambda: rated
    event.remove(study, "after_cursor_execute", rate)
    writer.dispose()


def test_a_response_that_is_rated_meanwhile_is_counted_once(study, rated_meanwhile):
    scores = scores_of(study)
    assert rated_meanwhile() > 5, "the test means nothing where nobody wrote"
    read = scores.ratings[scores.ratings["kind"] == "juror"]["response_id"].nunique()
    assert (read, len(scores.responses)) == (RESPONSES, RESPONSES)
    by_clinicians = scores.ratings[scores.ratings["kind"] == "clinician"]["response_id"].nunique()
    assert by_clinicians < read, "what was rated after the reader's first statement is not seen"


def test_readings_inside_one_moment_share_it_and_the_next_is_of_now(study, rated_meanwhile):
    with one_moment(study):
        first = ratings_frame(study)
        with reading(study) as one, reading(study) as other:
            assert one is other
        assert ratings_frame(study).equals(first)
    assert len(ratings_frame(study)) > len(first)
    assert rated_meanwhile()
