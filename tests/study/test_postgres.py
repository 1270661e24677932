"""A study on PostgreSQL keeps the promises it makes on SQLite, on a real server."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kit import postgres
from kit.studies import import_small
from sqlalchemy import Engine, create_engine, inspect, make_url, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from data import database
from data.card import Reply
from data.database import open_study, reading, transaction
from data.errors import BadInput, NoStudy
from data.record import log
from data.schema import Setting
from data.study.assignments import Slot, assign, claim
from data.study.people import invite
from data.study.ratings import submit
from data.study.room import next_task
from data.study.verify import verify

SCORES = {"accuracy": 2, "completeness": 3, "clarity": 5}
CLINICIANS = [f"dr_{n}" for n in range(6)]


@pytest.fixture
def server() -> str:
    return postgres.new_database()


@pytest.fixture
def ward(server: str, tmp_path: Path) -> Iterator[Engine]:
    """Return a study on the server: four responses, and clinicians at the door."""
    engine = open_study(server, create=True)
    import_small(engine, tmp_path)
    invite(engine, CLINICIANS)
    yield engine
    engine.dispose()


def test_ratings_are_vouched_for_whatever_the_servers_time_zone(ward: Engine) -> None:
    assign(ward, [Slot("dr_0", 1, 1)], seed=0, per_response=1)
    task = next_task(ward, 1).task
    assert task is not None
    submit(ward, 1, task.card.code, Reply(SCORES, comment="\u00e9 \U0001f600"), 5)
    with ward.connect() as connection:
        assert connection.scalar(text("SHOW timezone")) == postgres.ZONE
    found = verify(ward)
    assert (found.findings, found.rows["rating"]) == ((), 3)


def test_a_change_behind_the_records_back_is_found(ward: Engine) -> None:
    with ward.begin() as connection:
        connection.execute(text("UPDATE response SET text = 'better' WHERE id = 2"))
    assert len(verify(ward).findings) == 1


def test_processes_may_open_a_new_study_at_once(server: str) -> None:
    script = f"from data.database import open_study; open_study({server!r}, create=True)"
    started = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(3)]
    assert [one.wait() for one in started] == [0, 0, 0]


def test_the_last_free_place_is_given_once(ward: Engine) -> None:
    assign(ward, [Slot("dr_0", 1, 1)], seed=0, per_response=2)
    with ThreadPoolExecutor(len(CLINICIANS)) as pool:
        given = list(pool.map(lambda rater: claim(ward, rater), range(2, len(CLINICIANS) + 1)))
    with ward.connect() as connection:
        query = text("SELECT response, COUNT(*) FROM assignment GROUP BY response")
        readers = dict(map(tuple, connection.execute(query)))
    assert any(given)
    assert max(readers.values()) <= 2
    assert verify(ward).findings == ()


def test_who_writes_waits_for_the_one_who_does_and_is_told(
    ward: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    late = Setting(key="late", value="2")
    with transaction(ward) as session:
        session.add(Setting(key="held", value="1"))
        session.flush()
        with pytest.raises(NoStudy, match="locked; wait"), transaction(ward) as other:
            other.add(late)
        log(session, "test", "setting changed", {})


def test_who_reads_sees_one_moment_and_waits_for_nobody(ward: Engine) -> None:
    count = text("SELECT COUNT(*) FROM setting")
    with reading(ward) as reader:
        before = reader.scalar(count)
        with transaction(ward) as session:
            session.add(Setting(key="new", value="1"))
            log(session, "test", "setting changed", {})
        assert reader.scalar(count) == before
    with reading(ward) as reader:
        assert reader.scalar(count) == (before or 0) + 1


def test_texts_are_sorted_as_sqlite_and_python_do(ward: Engine) -> None:
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


def test_a_character_postgresql_cannot_hold_is_told_and_nothing_is_stored(ward: Engine) -> None:
    both = [Setting(key="first", value="1"), Setting(key="nul", value="a\0b")]
    with pytest.raises(BadInput, match="cannot hold a value"), transaction(ward) as session:
        session.add_all(both)
    with reading(ward) as session:
        assert session.get(Setting, "first") is None


def test_a_user_who_may_not_write_is_told(ward: Engine) -> None:
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


def test_an_empty_database_is_no_study_and_stays_empty(server: str) -> None:
    with pytest.raises(NoStudy, match=r"there is no study at postgresql.*medjury demo"):
        open_study(server)
    engine = create_engine(server)
    assert inspect(engine).get_table_names() == []
    engine.dispose()


def test_an_absent_database_is_named(server: str) -> None:
    with pytest.raises(NoStudy, match='"nowhere" does not exist; make it with createdb'):
        open_study(make_url(server).set(database="nowhere"), create=True)


def test_who_is_not_let_in_is_told_why_and_never_by_a_word_in_a_name(ward: Engine) -> None:
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


def lets_in(engine: Engine) -> bool:
    try:
        engine.connect().close()
    except OperationalError:
        return False
    return True


def _reloaded(ward: Engine, closed: bool) -> None:
    """Let the server read its rules, and wait until a new connection has them."""
    with ward.begin() as connection:
        connection.execute(text("SELECT pg_reload_conf()"))
    asked = create_engine(make_url(ward.url).set(username="fuller"), poolclass=NullPool)
    for _ in range(500):
        if lets_in(asked) != closed:
            return
        threading.Event().wait(0.01)
    raise AssertionError("the server's rules stay as they were")
