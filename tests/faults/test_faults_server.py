"""PostgreSQL is killed and comes back: while clinicians rate, and in the middle of a jury run."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.jurors import Do, Stub
from kit.jury_runs import attempts, many, panel_at
from kit.jury_runs import run as run_jury
from kit.page_client import Page, entered, sign_in
from kit.postgres import Database, killable
from kit.rating_study import FULL, build, row, rubric, scores_of
from kit.servers import serving
from sqlalchemy import Engine, text

from data.database import open_study, transaction
from data.errors import NoStudy
from data.record import log
from data.schema import Setting
from data.study.verify import verify


@pytest.fixture
def database() -> Iterator[Database]:
    with killable() as server:
        yield server


@pytest.fixture
def study(database: Database) -> Iterator[Engine]:
    engine = open_study(database.url, create=True)
    yield engine
    engine.dispose()


def test_whoever_writes_or_reads_is_told_and_goes_on_when_the_server_is_back(
    database: Database, study: Engine
) -> None:

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


def open_again(study: Engine) -> None:
    open_study(study.url).dispose()


def test_a_clinician_rates_on_when_the_server_comes_back(database: Database, study: Engine) -> None:
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


def test_a_jury_run_whose_server_dies_ends_with_a_word_and_goes_on_later(
    database: Database, study: Engine, tmp_path: Path
) -> None:
    def put(name: str, body: str) -> Path:
        (tmp_path / name).write_text(body, encoding="utf-8")
        return tmp_path / name

    many(study, put, 60)
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
