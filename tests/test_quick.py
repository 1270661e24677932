"""What is marked quick starts nothing: neither process nor socket nor database."""

import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from kit.quick import LONG, TESTS, may_be_quick, nothing_starts

STARTS = {
    "a process": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
    "a socket": lambda: socket.socket().bind(("127.0.0.1", 0)),
    "a database": lambda: sqlite3.connect(":memory:"),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=list(STARTS))
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the socket that was not bound
def test_a_quick_test_that_starts_anything_fails(start):
    with pytest.raises(AssertionError, match="a quick test comes to"), nothing_starts():
        start()


@pytest.mark.parametrize(
    ("line", "quick"),
    [
        ("import math", True),
        ("from calibration.scores import Scores", True),
        ("import subprocess", False),
        ("from data import database", False),
        ("from kit import postgres", False),
        ("from kit.servers import Server", False),
        ("from playwright.sync_api import Page", False),
    ],
)
def test_what_a_module_imports_tells_whether_it_may_be_quick(
    tmp_path: Path, line: str, quick: bool
) -> None:
    module = tmp_path / "test_made_up.py"
    module.write_text(line)
    assert may_be_quick(module) is quick


def test_modules_that_are_too_long_to_be_quick_exist():
    assert {one for one in LONG if not (TESTS / f"{one}.py").exists()} == set()


def test_no_test_module_imports_from_another_and_helpers_are_in_the_kit():
    names = {path.stem for path in TESTS.glob("*.py")}
    assert {one for one in names if not one.startswith("test_")} == {"conftest"}
    for path in TESTS.rglob("*.py"):
        lines = path.read_text("utf-8").splitlines()
        words = [line.split() for line in lines if line.lstrip().startswith(("from ", "import "))]
        assert not {one[1] for one in words if len(one) > 1} & (names - {"conftest"}), path
