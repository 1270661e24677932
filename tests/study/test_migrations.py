"""The one form of a study: its tables are the schema's, and a study of another form is left alone."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from kit import postgres
from kit.studies import Run
from sqlalchemy import inspect, text

from data import database
from data.database import HEAD, MIGRATIONS, open_study
from data.errors import NoStudy
from data.schema import Table
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
