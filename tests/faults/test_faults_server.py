"""PostgreSQL is killed, restarts and comes back: while clinicians rate, and in a jury run, whose lock goes with it."""

import asyncio
import threading
from collections import Counter
from contextlib import ExitStack

import pytest
from kit.jurors import Do, Seen, Stub
from kit.jury_runs import attempts, many, panel_at
from kit.jury_runs import run as run_jury
from kit.page_client import Page, entered, sign_in
from kit.postgres import killable
from kit.rating_study import FULL, build, row, rubric, scores_of
from kit.servers import serving
from sqlalchemy import Engine, text

from data.card import Reply
from data.database import open_study, transaction
from data.errors import Conflict, NoStudy
from data.record import log
from data.rubric import read_rubric
from data.schema import Attempt, Setting, Status
from data.study.calls import Step, record_steps
from data.study.verify import verify
from jury.run import KEY, run_lock


@pytest.fixture
def database():
    with killable() as server:
        yield server


@pytest.fixture
def study(database):
    engine = open_study(database.url, create=True)
    yield engine
    engine.dispose()


def test_whoever_writes_or_reads_is_told_and_goes_on_when_the_server_is_back(database, study):

    def write(engine: Engine) -> None:
        with transaction(engine) as session:
            session.add(Setting(key="half", value="1"))
            session.flush()
            database.kill()
            session.add(Setting(key="other half", value="1"))

    for look in (write, verify, open_again):
        with pytest.raises(NoStudy, match="see that the server runs"):
            look(study)
    database.start()
    with study.connect() as connection:
        query = text("SELECT COUNT(*) FROM setting WHERE key LIKE '%half'")
        assert connection.scalar(query) == 0
    with transaction(study) as session:
        session.add(Setting(key="whole", value="1"))
        log(session, "test", "setting changed", {})


def open_again(study):
    open_study(study.url).dispose()


def test_a_clinician_rates_on_when_the_server_comes_back(database, study):
    code = build(study, [row(n, f"Note {n}.") for n in (1, 2, 3)], ["dr-a"], rubric())["dr-a"]

    async def rate(address: str) -> None:
        cookie = await sign_in(address, code)
        async with await Page.open(address, cookie) as page:
            shown = await page.run()
            first = entered(shown, page.name, shown.seq + 1, FULL, submit=True)
            shown = await page.run(shown, first)
            assert shown.acknowledges(first)
            second = entered(shown, page.name, shown.seq + 1, FULL, submit=True)
            draft = second | {"submit": False}
            database.kill()
            assert (await page.desk.post("/room", json=draft)).status_code == 503
            for path in ("/room", "/login"):
                assert (await page.desk.get(path)).status_code == 503
            away = await page.run(shown, second)
            assert (away.busy, away.code) == (True, second["code"])
            database.start()
            shown = await page.run(shown, second | {"attempt": 1})
            assert shown.acknowledges(second)
            assert shown.code not in ("", first["code"])

    with serving(database.url) as server:
        asyncio.run(rate(server.address))
    assert [score for _, _, score in scores_of(study, "dr-a")] == [*FULL.values()] * 2
    assert verify(study).findings == ()


def test_a_jury_run_whose_server_dies_ends_with_a_word_and_goes_on_later(database, study, write):
    many(study, write, 60)
    with Stub(lambda _: Do(seconds=0.02)) as stub:

        def kill() -> None:
            while len(stub.seen) < 20:
                threading.Event().wait(0.005)
            database.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(NoStudy, match="see that the server runs"):
            run_jury(study, panel_at(stub), concurrency=4)
        killer.join()
        asked = len(stub.seen)
        database.start()
        kept = len(attempts(study))
        assert 0 < kept < 60
        assert asked - kept <= 8, "more was lost than was in flight"
        result = run_jury(study, panel_at(stub))
    assert (result.rated, result.calls) == (60, 60 - kept)
    assert set(Counter((one.rater, one.response) for one in attempts(study)).values()) == {1}


RESPONSES = 10


@pytest.mark.parametrize("another", [False, True])
def test_a_jury_run_whose_server_restarts_stops_and_is_taken_up_again(
    another, database, study, write
):
    other = open_study(study.url)

    def restart(_: Seen) -> Do:
        if len(stub.seen) == 3:
            database.restart()
            if another:
                with run_lock(other):
                    rate_third(other)
        return Do()

    many(study, write, RESPONSES)
    with Stub(restart) as stub:
        panel = panel_at(stub)
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
    database, study
):
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


def begin_to_write(study):
    with transaction(study) as session:
        session.execute(text("SELECT 1"))


def is_free(study):
    """Tell whether a jury run could begin now."""
    with study.connect() as connection:
        took = connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), KEY)
        connection.execute(text("SELECT pg_advisory_unlock_all()"))
    return bool(took)


def rate_third(study):
    """Store what the juror answered another run about the third response."""
    rubric = read_rubric("generic")
    with study.connect() as connection:
        rater = connection.scalar(text("SELECT id FROM rater"))
    record = Attempt(rater=rater or 0, response=3, status=Status.OK, request_sha256="0" * 64)
    entry = record, rubric, Reply(dict.fromkeys(rubric.criteria, 3))
    record_steps(study, [Step(attempt=entry)])
