"""A real LiteLLM proxy, the one server here that nobody of us wrote, answers from its own mocks.

It is installed in an environment of its own under the user's cache, since its dependencies are not
ours. It needs no network once that is there, and no model ever.
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from kit.studies import Run
from sqlalchemy import Engine
from sqlmodel import select

from data.database import reading
from data.rubric import read_rubric
from data.schema import Attempt, Status
from jury.panel import Panel
from jury.probe import probe
from jury.run import run_panel
from jury.session import Patience

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
VERSION = "1.106.2"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
PLACE = CACHE / "medjury-tests" / f"litellm-{VERSION}-py{sys.version_info[0]}{sys.version_info[1]}"
KEY = f"sk-{secrets.token_hex(32)}"  # of this run only; the proxy refuses to start with a weak one
HASTY = Patience(tries=2, first_wait=0.01, longest_wait=0.02, in_a_row=2)
VERDICT = {
    name: {"explanation": "a canned one", "score": score}
    for name, score in zip(read_rubric("generic").criteria, (3, 4, 5), strict=True)
}
ANSWERS = {
    "one": json.dumps(VERDICT),
    "two": f"```json\n{json.dumps(VERDICT)}\n```",
    "three": f"Let me see. {json.dumps(VERDICT)}",
    "prose": "It reads quite well.",
    "limited": "litellm.RateLimitError",
}
AUTH = f"""
from litellm.proxy._types import ProxyException, UserAPIKeyAuth

async def check(request, api_key):
    if api_key == "{KEY}":
        return UserAPIKeyAuth(api_key=api_key)
    raise ProxyException(message="no such key", type="auth_error", param="key", code=401)
"""
Write = Callable[[str, str], Path]


@pytest.fixture(scope="session")
def litellm() -> Path:
    """Return the proxy's program, installed once; skip with the reason where it cannot be."""
    program = PLACE / ("Scripts" if os.name == "nt" else "bin") / "litellm"
    if (PLACE / "ready").exists():
        return program
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("litellm cannot be installed: uv is not on the path")
    base = str(Path(sys.base_prefix) / "bin" / "python3")
    python = base if Path(base).exists() else sys.executable
    wanted = [
        [uv, "venv", "--quiet", "--no-project", "--clear", "--python", python, str(PLACE)],
        [uv, "pip", "install", "--quiet", "--python", str(PLACE), f"litellm[proxy]=={VERSION}"],
    ]
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    for command in wanted:  # from a folder outside the checkout, whose pins uv would apply
        done = subprocess.run(command, cwd=PLACE.parent, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"litellm cannot be installed: {done.stderr.strip()[-300:]}")
    (PLACE / "ready").touch()
    return program


@contextmanager
def proxy(program: Path, folder: Path, general: dict[str, str]) -> Iterator[str]:
    """Serve the canned answers and yield the base URL for jurors."""
    models = [
        {"model_name": name, "litellm_params": {"model": "openai/canned", "mock_response": text}}
        for name, text in ANSWERS.items()
    ]
    retries = {"router_settings": {"num_retries": 0}, "litellm_settings": {"num_retries": 0}}
    config = folder / "config.yaml"  # JSON is YAML
    config.write_text(json.dumps({"model_list": models, "general_settings": general} | retries))
    (folder / "own_auth.py").write_text(AUTH)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    environment = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": "none"}
    with (folder / "proxy.log").open("w") as log:
        server = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
        try:
            _alive(f"http://127.0.0.1:{port}/health/liveliness", server, folder / "proxy.log")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            server.wait(30)


def _alive(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait until the proxy answers."""
    for _ in range(600):
        if server.poll() is not None:
            break
        try:
            with urlopen(url, timeout=5):  # noqa: S310 - our own server on the loopback
                return
        except (URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"the proxy did not start: {log.read_text()[-2000:]}")


@pytest.fixture(scope="module")
def url_of_proxy(litellm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("litellm")
    with proxy(litellm, folder, {"master_key": KEY, "custom_auth": "own_auth.check"}) as url:
        yield url


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_KEY", KEY)


def panel(url: str, *models: str) -> Panel:
    one = {"provider": "openai", "family": "canned", "base_url": url, "api_key_env": "LITELLM_KEY"}
    jurors = [one | {"name": model, "model": model} for model in models]
    return Panel.model_validate({"name": "proxied", "juror": jurors})


def reasons(engine: Engine) -> set[tuple[Status, str]]:
    with reading(engine) as session:
        return {(row.status, row.reason) for row in session.exec(select(Attempt)) if row.number}


def test_three_jurors_behind_the_proxy_rate_everything(
    run: Run, small_study: Engine, url_of_proxy: str, write: Write
) -> None:
    jurors = "".join(
        f'[[juror]]\nname = "{name}"\nprovider = "openai"\nmodel = "{name}"\nfamily = "canned"\n'
        f'base_url = "{url_of_proxy}"\napi_key_env = "LITELLM_KEY"\n'
        for name in ("one", "two", "three")
    )
    path = write("proxied.toml", f'name = "proxied"\n{jurors}')
    code, out, said = run("jury", "run", str(path), "--json", "-")
    assert code == 0, said
    body = json.loads(out)
    assert (body["rated"], body["missing"], body["calls"]) == (12, 0, 12)
    with reading(small_study) as session:
        rows = session.exec(select(Attempt)).all()
        assert Counter(row.returned_model for row in rows) == {"one": 4, "two": 4, "three": 4}
        assert all(row.tokens_in and row.tokens_out for row in rows)


def test_an_answer_in_prose_is_invalid_json_and_no_rating(
    small_study: Engine, url_of_proxy: str
) -> None:
    result = run_panel(small_study, panel(url_of_proxy, "prose"), patience=HASTY)
    assert (result.rated, dict(result.by_status)) == (0, {"invalid_json": 4})
    assert result.calls == 8


def test_a_wrong_key_stops_the_juror_as_auth(
    small_study: Engine, url_of_proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITELLM_KEY", "sk-wrong")
    result = run_panel(small_study, panel(url_of_proxy, "one"), concurrency=1)
    assert (dict(result.by_status), result.calls) == ({"auth": 4}, 1)
    assert result.stopped["one"] == "HTTP 401 401: the key was refused"


def test_a_rate_limit_of_the_model_behind_comes_through_as_one(
    small_study: Engine, url_of_proxy: str
) -> None:
    result = run_panel(small_study, panel(url_of_proxy, "limited"), patience=HASTY)
    assert (result.rated, dict(result.by_status)) == (0, {"rate_limited": 4})


def test_a_probe_tells_what_the_proxy_supports(url_of_proxy: str) -> None:
    (row,) = probe(panel(url_of_proxy, "one"))
    # The proxy's fixed answer rates other criteria than the probe asks for, and the probe says so.
    missing = Status.MISSING_CRITERION
    assert (row.status, row.schema, row.returned_model) == (missing, "json_schema", "one")


def test_a_proxy_without_a_database_answers_a_wrong_key_with_400_and_nothing_is_rated(
    small_study: Engine, litellm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy(litellm, tmp_path, {"master_key": KEY}) as url:
        right = run_panel(small_study, panel(url, "one"), patience=HASTY)
        monkeypatch.setenv("LITELLM_KEY", "sk-wrong")
        wrong = run_panel(small_study, panel(url, "two"), patience=HASTY)
    assert (right.rated, wrong.rated) == (4, 0)
    assert (Status.REQUEST_FAILED, "HTTP 400 400") in reasons(small_study)
