"""SQL of models: what only reads gives what HELM has, and nothing else gets anywhere."""

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from calibration.closed_ended.queries import QueryAnswer, query_match, query_of
from data.errors import BadFile
from data.sql_sandbox import Limits, SqlSandbox, run_queries

RECORDED = Path(__file__).parent / "fixtures" / "helm_closed_ended.json"
SHORT = Limits(seconds=0.5, rows=1_000, memory=300_000_000)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the database that the recorded queries ran on."""
    path = tmp_path_factory.mktemp("sql") / "eicu.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(json.loads(RECORDED.read_text("utf-8"))["schema"])
    connection.close()
    return path


@pytest.fixture(scope="module")
def sandbox(database: Path) -> Iterator[SqlSandbox]:
    """Return a sandbox with little time."""
    with SqlSandbox(database, SHORT) as made:
        yield made


def test_execution_and_validity_are_helms(database: Path) -> None:
    recorded = json.loads(RECORDED.read_text("utf-8"))["queries"]
    assert len(recorded) >= 200
    queries = [query_of(row["answer"]) for row in recorded]
    said = run_queries(database, queries)
    keys = run_queries(database, [row["key"].strip() for row in recorded])
    for row, query, given, key in zip(recorded, queries, said, keys, strict=True):
        failed = bool(given.reason) or not query
        answer = QueryAnswer(
            row["key"], row["can_be_answered"], row["answer"], given.rows, key.rows, failed
        )
        found = query_match(answer)
        assert found.execution == row["execution_accuracy"], row
        if not row["answer"].startswith("explain"):  # ours reads tables, and nothing else
            assert found.valid == row["query_validity"], row
        assert found.rightly_answered == row["precision_answerable"] == row["recall_answerable"]
        assert found.answered == row["total_predicted_answerable"]
        assert found.answerable == row["total_ground_truth_answerable"]


@pytest.mark.parametrize(
    "query",
    [
        "delete from patient",
        "insert into patient values (9, 'x', 1)",
        "update patient set name = 'x'",
        "drop table patient",
        "create table mine (id)",
        "create temp table mine as select * from patient",
        "replace into patient values (1, 'x', 1)",
        "attach database '/etc/passwd' as other",
        "attach ':memory:' as other",
        "vacuum into '/tmp/copied.db'",
        "pragma writable_schema = 1",
        "pragma table_info(patient)",
        "select load_extension('libc.so.6')",
        "select readfile('/etc/passwd')",
        "select writefile('/tmp/written', 'x')",
        "begin immediate",
        "savepoint mine",
        "analyze",
        "with x as (select 1) delete from patient",
    ],
)
def test_whatever_does_not_read_is_refused(sandbox: SqlSandbox, database: Path, query: str) -> None:
    before = hashlib.sha256(database.read_bytes()).digest()
    found = sandbox.run(query)
    assert found.reason in ("refused", "error")
    assert found.rows == ()
    assert hashlib.sha256(database.read_bytes()).digest() == before
    assert [path.name for path in database.parent.iterdir()] == ["eicu.sqlite"]
    assert not Path("/tmp/copied.db").exists()  # noqa: S108 where the query would write
    assert not Path("/tmp/written").exists()  # noqa: S108 where the query would write


LOOP = "with recursive n(x) as (select 1 union all select x + 1 from n) {}"  # without end


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (LOOP.format("select count(*) from n"), "time"),
        (LOOP.format("select x from n"), "rows"),
        (LOOP.format("select group_concat(x, hex(zeroblob(4000000))) from n"), "error"),
        ("select zeroblob(9999999999)", "error"),
        (LOOP.format("select distinct hex(randomblob(2000000)) from n limit 900"), "memory"),
        ("select " + "(" * 5000 + "1" + ")" * 5000, "error"),
        ("select '\x00'; select 2", "error"),
        ("\ud800", "error"),
    ],
)
def test_a_query_without_end_or_bounds_ends(sandbox: SqlSandbox, query: str, reason: str) -> None:
    begin = time.monotonic()
    found = sandbox.run(query)
    assert found.reason in (reason, "time")
    assert time.monotonic() - begin < 30
    assert sandbox.run("select count(*) from patient").rows == ((4,),)  # the next one is answered


def test_values_come_back_as_sqlite_has_them(sandbox: SqlSandbox) -> None:
    found = sandbox.run("select 1, 2.5, 'é', null, x'00ff', 9e999")
    assert found.rows == ((1, 2.5, "é", None, b"\x00\xff", float("inf")),)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database")
    (tmp_path / "torn.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 600)
    for name, said in [("notes.txt", "is no SQLite"), ("absent.db", "cannot be read")]:
        with pytest.raises(BadFile, match=said):
            SqlSandbox(tmp_path / name)
    with SqlSandbox(tmp_path / "torn.db") as torn, pytest.raises(BadFile, match="is no SQLite"):
        torn.run("select 1")


def test_a_database_that_somebody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "busy.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        "pragma journal_mode = wal; create table t (x); insert into t values (1);"
    )
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.execute("begin immediate")
    with SqlSandbox(path, SHORT) as sandbox:
        assert sandbox.run("select x from t").rows == ((1,),)
    connection.close()
