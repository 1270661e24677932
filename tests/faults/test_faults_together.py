"""Two processes at once on a study that is not there yet, and one that holds it for too long."""

import asyncio
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import Any
from urllib.request import urlopen

import pytest
from kit.commands import responses
from kit.page_client import Page, entered, sign_in
from kit.rating_study import FULL, build, codes_of, row, rubric, scores_of
from kit.servers import Server, free_port, serving
from kit.study_place import all_rows
from sqlalchemy import text
from sqlmodel import select

from data.database import open_study, reading
from data.schema import Rating
from data.study.verify import verify


def begun(*words):
    call = [sys.executable, "-m", "medjury", *words]
    return subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def test_two_imports_at_once_of_one_file_make_one_study_of_it(url, tmp_path):
    words = ("study", "import", str(responses(tmp_path, 40)), "--db", url)
    running = [begun(*words) for _ in range(2)]
    said = [one.communicate(timeout=120)[1] for one in running]
    assert ([one.returncode for one in running], "Traceback" in "".join(said)) == ([0, 0], False)
    engine = open_study(url)
    rows = all_rows(engine)
    assert (len(rows["response"]), len(rows["benchmark"])) == (40, 1)
    assert verify(engine).findings == ()
    engine.dispose()


@pytest.mark.slow
def test_two_servers_at_once_make_one_study_with_one_coordinator(url):
    ports = [free_port(), free_port()]
    servers = [begun("serve", "--create", "--port", f"{port}", "--db", url) for port in ports]
    try:
        for port, server in zip(ports, servers, strict=True):
            _wait_for(port, server)
    finally:
        for one in servers:
            one.terminate()
        said = [one.communicate(timeout=60)[1] for one in servers]
    assert not any("Traceback" in one for one in said), said
    engine = open_study(url)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT COUNT(*) FROM account")) == 1
    assert verify(engine).findings == ()
    engine.dispose()


def _wait_for(port, server):
    """Wait until a server answers; one that refuses to start has to say why, in one line."""
    while server.poll() is None:
        try:
            with urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1):
                return
        except OSError:
            threading.Event().wait(0.1)
    assert server.returncode == 2


@contextmanager
def held(engine):
    """Write to a study, as another process would, and take long over it."""
    with engine.execution_options(writes=True).connect() as connection, connection.begin():
        connection.execute(text("SELECT 1"))
        yield


def test_a_command_that_waited_ten_seconds_for_a_locked_study_says_what_to_do(
    engine, run, tmp_path, monkeypatch
):
    monkeypatch.setattr("data.database.BUSY_SECONDS", 0.3)
    path = str(responses(tmp_path, 3))
    with held(engine):
        code, _, err = run("study", "import", path)
        assert (code, "wait for the other process or stop it" in err) == (2, True), err
        assert len(err.strip().splitlines()) == 1
    assert run("study", "import", path)[0] == 0


def test_while_the_study_is_locked_the_page_keeps_what_was_entered_and_says_so(engine, url):
    code = build(engine, [row(n, f"Note {n}.") for n in (1, 2)], ["dr-a"], rubric())["dr-a"]

    async def rate(address: str) -> None:
        async with await Page.open(address, await sign_in(address, code)) as page:
            shown = await page.run()
            told = entered(shown, page.name, shown.seq + 1, FULL, submit=True)
            with held(engine):
                draft = await page.desk.post("/room", json=told | {"submit": False})
                refused = await page.run(shown, told)
            assert draft.json()["busy"] is True
            assert "kept here" in refused.error
            assert (refused.code, refused.busy) == (told["code"], True)
            stored = await page.run(refused, told | {"attempt": 1})
            assert stored.acknowledges(told)

    server = Server(url, free_port())
    with impatient(server):
        asyncio.run(rate(server.address))
    assert [score for _, _, score in scores_of(engine, "dr-a")] == [*FULL.values()]


@contextmanager
def impatient(server):
    """Serve a study by a process that waits only a moment for a lock."""
    call = "from data import database; database.BUSY_SECONDS = 0.3\n"
    real = subprocess.Popen

    def started(command: list[str], **kind: Any) -> Any:
        return real([*command[:2], call + command[2]], **kind)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", started)
        server.start()
    try:
        yield
    finally:
        server.stop()


def test_a_backup_taken_while_clinicians_rate_holds_all_that_was_answered_before(
    engine, url, run, tmp_path
):
    clinicians = [f"dr-{n}" for n in range(3)]
    rows = [row(n, f"Note {n}.") for n in range(1, 41)]
    codes = build(engine, rows, clinicians, rubric())
    answered, before = set[str](), set[str]()
    to = tmp_path / "backup.db"

    async def rate(address: str, name: str) -> None:
        async with await Page.open(address, await sign_in(address, codes[name])) as page:
            shown = await page.run()
            while shown.code and not to.exists():
                told = entered(shown, page.name, shown.seq + 1, FULL, submit=True)
                shown = await page.run(shown, told)
                assert shown.acknowledges(told)
                answered.add(told["code"])

    async def back_up() -> None:
        while len(answered) < 6:
            await asyncio.sleep(0.01)
        before.update(answered)
        call = [sys.executable, "-m", "medjury", "study", "backup", str(to), "--db", url]
        process = await asyncio.create_subprocess_exec(*call, stdout=subprocess.DEVNULL)
        assert await process.wait() == 0

    async def all_of_them(address: str) -> None:
        async with asyncio.TaskGroup() as group:
            for name in clinicians:
                group.create_task(rate(address, name))
            group.create_task(back_up())

    with serving(url) as server:
        asyncio.run(all_of_them(server.address))
    restored = f"sqlite:///{tmp_path / 'restored.db'}"
    assert run("study", "backup", restored, "--db", f"sqlite:///{to}")[0] == 0
    copy = open_study(restored)
    assert verify(copy).findings == ()
    rated = {code for name in clinicians for code in _rated(copy, name)}
    assert before <= rated <= answered
    with reading(copy) as session:
        assert len(session.exec(select(Rating)).all()) == len(rated) * len(FULL)
    copy.dispose()


def _rated(engine, name):
    codes = codes_of(engine, name)
    return codes[: len(scores_of(engine, name)) // len(FULL)]
