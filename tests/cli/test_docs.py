"""The docs and docstrings: every shell block and example is run, every command and link in them is there."""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from kit.forked import forked_medjury

from medjury.cli.app import loaded
from medjury.cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DATASETS = ROOT.parent / "shared" / "datasets"


def blocks(page: Path, kind: str) -> list[str]:
    """Return the fenced blocks of a kind: `sh` is run, `console` needs what a test has not."""
    return [body for name, body in FENCE.findall(page.read_text("utf-8")) if name == kind]


DEAR = ("juries", "rate", "unsafe")  # test_commands.py runs an example of each of their commands
RUN = [
    pytest.param(page, id=page.stem, marks=[pytest.mark.slow] if page.stem in DEAR else [])
    for page in PAGES
    if blocks(page, "sh")
]


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Iterator[str]:
    """Return the search path of a shell that finds medjury, which starts at once."""
    with forked_medjury(tmp_path_factory.mktemp("programs")) as folder:
        yield os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])


@pytest.mark.parametrize("page", RUN)
def test_each_shell_block_of_a_page_runs(page, demo, programs, tmp_path):
    if page.stem == "tutorial":
        if not DATASETS.is_dir():
            pytest.skip("the public data sets are not beside the checkout")
        (tmp_path / "datasets").symlink_to(DATASETS)
        (tmp_path / "docs").symlink_to(ROOT / "docs")
        (tmp_path / "data").symlink_to(ROOT / "data")
    shutil.copy(demo.study, tmp_path / "study.db")
    shutil.copytree(ROOT / "docs" / "examples", tmp_path, dirs_exist_ok=True)
    for block in blocks(page, "toml"):
        if named := re.match(r"# (\w+\.toml)\n", block):
            (tmp_path / named[1]).write_text(block, "utf-8")
    place = {"MEDJURY_DB": f"sqlite:///{tmp_path}/study.db", "PATH": programs}
    for block in blocks(page, "sh"):
        shell = ["bash", "-euo", "pipefail", "-c", block]
        ran = subprocess.run(
            shell, cwd=tmp_path, env=os.environ | place, capture_output=True, text=True
        )
        assert ran.returncode == 0, f"{page.name}:\n{block}\n{ran.stdout[-500:]}\n{ran.stderr}"


def calls(page: Path) -> Iterator[list[str]]:
    """Yield the words of each call of medjury in the blocks of a page."""
    for block in blocks(page, "console") + blocks(page, "sh"):
        lines = block.replace("\\\n", " ").splitlines()
        for part in (part for line in lines for part in line.split("|")):
            words = [word for word in shlex.split(part, comments=True) if "MEDJURY_DB=" not in word]
            if words[:1] == ["medjury"]:
                yield words[1:]


def options(words: list[str]) -> set[str]:
    """Return the options of the command that is called; fail where there is none."""
    named = next((n for n in (3, 2, 1) if " ".join(words[:n]) in COMMANDS), 0)
    assert named, f"no command: medjury {' '.join(words)}"
    params = loaded(" ".join(words[:named])).params
    known = {option for each in params for option in (*each.opts, *each.secondary_opts)}
    return known | {"--db", "--quiet", "-q", "--help", "-h"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_a_page_are_ones_that_exist(page):
    for words in calls(page):
        named = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert named <= options(words), words


def test_every_page_stands_in_the_navigation():
    config = (ROOT / "zensical.toml").read_text("utf-8")
    assert [page.name for page in PAGES if f'"{page.name}"' not in config] == []


def test_the_site_builds_and_every_link_leads_somewhere(tmp_path):
    call = [sys.executable, ROOT / ".ci" / "site", tmp_path / "site"]
    built = subprocess.run(call, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert "medjury jury run" in (tmp_path / "site/commands.html").read_text("utf-8")


PAGE = ROOT / "docs" / "security.md"
NAMED = re.compile(r"`(\w+)::(\w+)`")


def threats() -> dict[str, list[tuple[str, str]]]:
    """Return the tests that the page names, by threat."""
    rows = [line.split("|") for line in PAGE.read_text("utf-8").splitlines() if line[:1] == "|"]
    return {cells[1].strip(): NAMED.findall(cells[3]) for cells in rows[2:]}


def test_every_test_that_a_page_names_is_there():
    there = {page.stem for page in (ROOT / "tests").glob("*/test_*.py")}
    pages = (ROOT / "docs" / f"{name}.md" for name in ("evidence", "server"))
    named = {name for one in pages for name in re.findall(r"`(test_\w+)`", one.read_text("utf-8"))}
    assert len(named) > 20
    assert named - there == set()


def test_every_threat_has_a_test_that_is_there():
    found = threats()
    assert len(found) > 20
    assert [threat for threat, tests in found.items() if not tests] == []
    there = {
        (page.stem.removeprefix("test_"), name)
        for page in (ROOT / "tests").glob("*/test_*.py")
        for name in re.findall(r"def test_(\w+)\(", page.read_text("utf-8"))
    }
    assert {one for tests in found.values() for one in tests} - there == set()


PACKAGES = ("annotate", "calibration", "data", "jury", "medjury")


def modules() -> list[str]:
    """Return the modules whose docstrings have examples."""
    files = (file for name in PACKAGES for file in sorted((ROOT / name).rglob("*.py")))
    return [
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for file in files
        if ">>> " in file.read_text("utf-8")
    ]


@pytest.mark.parametrize("name", modules())
def test_the_examples_of_a_module_do_what_they_say(name):
    found = doctest.testmod(import_module(name))
    assert found.attempted
    assert not found.failed
