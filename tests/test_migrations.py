"""A study of every released schema comes to today's whole; a failed upgrade leaves it as it was."""

import ast
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from kit import postgres
from kit.old_study import Rows, filled, rows_of
from kit.studies import Run
from sqlalchemy import (
    Engine,
    select,
    text,
)

from data import database
from data.database import HEAD, MIGRATIONS, open_study
from data.errors import NoStudy
from data.queries.record import verify
from data.schema import Table
from data.schema.kept import KEPT

REVISIONS = sorted(path.stem[:4] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))
SLOW = partial(pytest.param, marks=pytest.mark.slow)
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
open_study(sys.argv[1])
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


def moved(engine: Engine, revision: str, way: str = "upgrade") -> None:
    """Bring a study up, or down, to a revision."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = engine
    getattr(command, way)(config, revision)


def kept(before: Rows, after: Rows) -> None:
    """Assert that every row is there still, with its values in all columns that are."""
    for name in before.keys() & after.keys():
        assert len(after[name]) >= len(before[name]) > 0, name
        for old, new in zip(before[name], after[name], strict=False):
            same = old.keys() & new.keys()
            assert {one: old[one] for one in same} == {one: new[one] for one in same}, name


def test_ratings_that_were_given_again_before_are_known_as_superseded(place: str) -> None:
    old = database._engine(place)
    moved(old, "0011")
    first = filled(old)["rating"][0]
    with old.begin() as connection:
        again = first | {"id": 70, "score": 1.0}
        connection.execute(Table.metadata.tables["rating"].insert(), [again])
    old.dispose()
    with open_study(place).connect() as connection:
        marked = connection.execute(select(Table.metadata.tables["superseded"])).all()
    assert marked == [(first["id"],)]


def is_todays(engine: Engine) -> bool:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        return compare_metadata(context, [Table.metadata, KEPT]) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_study_of_every_released_schema_keeps_every_row_and_its_record(
    place: str, revision: str
) -> None:
    old = database._engine(place)
    moved(old, revision)
    before = filled(old)
    before.pop("superseded", None)  # no rating was given again
    old.dispose()
    study = open_study(place)
    after = rows_of(study)
    assert before.keys() <= after.keys()
    kept(before, after)
    assert is_todays(study)
    found = verify(study)
    assert found.findings == ()
    assert found.since is not None
    assert (found.rows["rating"], found.rows["response"]) == (2, 2)
    lost = {name for name in before for one in before[name][0] if one not in after[name][0]}
    assert lost == ({"access"} if revision == "0001" else set())
    if revision == "0001":
        owners = {one["id"]: one["rater"] for one in after["account"]}
        assert [owners[one["account"]] for one in after["access"]] == [1, 2]
    study.dispose()


@pytest.mark.parametrize("revision", ["base", "0001", *map(SLOW, REVISIONS[1:-1])])
def test_every_schema_goes_down_and_up_again(place: str, revision: str) -> None:
    study = open_study(place, create=True)
    before = filled(study)
    moved(study, revision, "downgrade")
    between = rows_of(study)
    assert (between == {}) == (revision == "base")
    kept(before, between)
    moved(study, "head")
    kept(between, rows_of(study))
    assert is_todays(study)
    study.dispose()


def test_no_migration_uses_code_that_a_later_version_may_change() -> None:
    paths = [*(MIGRATIONS / "versions").glob("*.py"), *MIGRATIONS.glob("record_*.py")]
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    named = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    named |= {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
    own = {name for name in named if name.split(".")[0] == "data"}
    assert own == {"data.migrations.record_at_0002", "data.migrations.record_at_0011"}


def test_what_was_changed_in_an_old_study_since_it_was_taken_in_is_found(place: str) -> None:
    old = database._engine(place)
    moved(old, "0001")
    filled(old)
    old.dispose()
    study = open_study(place)
    with study.begin() as connection:
        connection.execute(text("UPDATE rating SET score = 5 WHERE id = 2"))
    said = "rating 1, 2: some of them changed or moved since event "
    assert [one.rstrip("0123456789") for one in verify(study).findings] == [said]
    study.dispose()


def test_a_study_newer_than_the_program_is_refused_and_left_alone(place: str, run: Run) -> None:
    study = open_study(place, create=True)
    with study.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9001'"))
    before = rows_of(study)
    with pytest.raises(NoStudy, match=f"form 9001, and this one knows forms up to {HEAD}; update"):
        open_study(place)
    code, _, said = run("verify", "--db", place)
    assert (code, "9001" in said, "Traceback" in said) == (2, True, False)
    assert rows_of(study) == before
    study.dispose()


@pytest.mark.parametrize("statements", [SLOW(2), 20, SLOW(34)])
def test_an_upgrade_killed_in_the_middle_leaves_the_old_study_whole(
    place: str, statements: int
) -> None:
    old = database._engine(place)
    moved(old, "0001")
    before = filled(old)
    ended = subprocess.run([sys.executable, "-c", KILLED, place, str(statements)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert rows_of(old) == before
    old.dispose()
    study = open_study(place)
    assert verify(study).findings == ()
    study.dispose()
