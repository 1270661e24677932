"""A real LiteLLM proxy that answers from its own mocks, in an environment of its own.

It is installed under the user's cache, since its dependencies are not ours. It needs no network once that is
there, and no model ever.
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from data.rubric import read_rubric

VERSION = "1.108.7"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
PLACE = CACHE / "medjury-tests" / f"litellm-{VERSION}-py{sys.version_info[0]}{sys.version_info[1]}"
KEY = f"sk-{secrets.token_hex(32)}"  # of this run only; the proxy refuses to start with a weak one
VERDICT = {
    name: {"explanation": "a canned one", "score": score}
    for name, score in zip(read_rubric("generic").criteria, (3, 4, 5), strict=True)
}
ANSWERS = {
    "one": json.dumps(VERDICT),
    "two": f"```json\n{json.dumps(VERDICT)}\n```",
    "three": f"<think>Let me see.</think>{json.dumps(VERDICT)}",
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
