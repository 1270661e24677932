"""PostgreSQL restarts between two writes of a jury run, and with it goes the lock that others respect."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from kit.jurors import Do, Seen, Stub
from kit.jury_runs import attempts, many, panel_at
from kit.jury_runs import run as run_jury
from kit.postgres import Database, killable
from sqlalchemy import Engine, text

from data.card import Reply
from data.database import open_study, transaction
from data.errors import Conflict
from data.rubric import read_rubric
from data.schema import Attempt, Status
from data.study.calls import record_attempts
from data.study.verify import verify
from jury.panel import Panel
from jury.run import KEY, run_lock

RESPONSES = 10


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with killable() as server:
        yield server


@pytest.fixture
def study(database: Database, request: pytest.FixtureRequest) -> Iterator[Engine]:
    engine = open_study(database.another(f"study_{id(request)}"), create=True)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("another", [False, True])
def test_a_jury_run_whose_server_restarts_stops_and_is_taken_up_again(
    another: bool, database: Database, study: Engine, tmp_path: Path
) -> None:
    held = ExitStack()
    other = open_study(study.url)

    def restart(asked: int) -> None:
        if asked == 3:
            database.restart()
            if another:
                held.enter_context(run_lock(other))
                rate_third(other)
                held.close()

    with asked_one_by_one(study, tmp_path, restart) as panel, held:
        with pytest.raises(Conflict, match="its server restarted"):
            run_jury(study, panel, concurrency=1)
        assert is_free(study), "a run that has stopped left its lock behind"
        kept = len(attempts(study))
        assert kept == 2 + another, "the call that the other run makes as well is stored twice"
        assert run_jury(study, panel).calls == RESPONSES - kept
    other.dispose()
    assert set(Counter(one.response for one in attempts(study)).values()) == {1}
    assert verify(study).findings == ()


def test_a_run_that_lost_its_lock_stores_nothing_of_what_waits_behind_the_first_refusal(
    database: Database, study: Engine
) -> None:
    other = open_study(study.url)
    with ExitStack() as held, run_lock(study):
        database.restart()
        held.enter_context(run_lock(other))
        for _ in range(2):
            with pytest.raises(Conflict):
                begin_to_write(study)
        held.close()
        with pytest.raises(Conflict):
            begin_to_write(study)
        begin_to_write(other)
    other.dispose()


@contextmanager
def asked_one_by_one(
    study: Engine, folder: Path, between: Callable[[int], None]
) -> Iterator[Panel]:
    """Open a juror who has much to rate; `between` hears how often it was asked, before it answers."""

    def put(name: str, body: str) -> Path:
        (folder / name).write_text(body, encoding="utf-8")
        return folder / name

    def answer(_: Seen) -> Do:
        between(len(stub.seen))
        return Do()

    many(study, put, RESPONSES)
    with Stub(answer) as stub:
        yield panel_at(stub)


def begin_to_write(study: Engine) -> None:
    """Open a transaction that writes."""
    with transaction(study) as session:
        session.execute(text("SELECT 1"))


def is_free(study: Engine) -> bool:
    """Tell whether a jury run could begin now."""
    with study.connect() as connection:
        took = connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), KEY)
        connection.execute(text("SELECT pg_advisory_unlock_all()"))
    return bool(took)


def rate_third(study: Engine) -> None:
    """Store what the juror answered another run about the third response."""
    rubric = read_rubric("generic")
    with study.connect() as connection:
        rater = connection.scalar(text("SELECT id FROM rater"))
    record = Attempt(rater=rater or 0, response=3, status=Status.OK, request_sha256="0" * 64)
    record_attempts(study, [(record, rubric, Reply(dict.fromkeys(rubric.criteria, 3)))])
