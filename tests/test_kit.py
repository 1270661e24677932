"""Test modules take what they are made with from `tests/kit/`, and fall into tiers by themselves.

What benchmarks take from the kit and from the packages is there.
"""

import ast
import importlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit import tiers

TESTS = Path(__file__).parent
MODULES = {path.stem for path in TESTS.glob("*.py")}


def test_helpers_are_in_the_kit():
    assert {one for one in MODULES if not one.startswith("test_")} == {"conftest"}


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: path.stem)
def test_nothing_imports_from_a_test_module(path):
    nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
    taken = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    taken |= {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
    assert not taken & MODULES


BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
OURS = ("annotate", "calibration", "data", "jury", "kit", "medjury")
SCRIPTS = sorted(path.relative_to(BENCHMARKS).as_posix() for path in BENCHMARKS.rglob("*.py"))


def _imported(script: str) -> Iterator[tuple[str, str]]:
    """Yield module and name of what a script takes from the project, wherever it does."""
    for node in ast.walk(ast.parse((BENCHMARKS / script).read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            yield from ((node.module or "", alias.name) for alias in node.names)


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_a_benchmark_takes_from_the_project_is_there(script: str) -> None:
    """`report_speed.py` once imported a function that had moved, and nobody saw it."""
    absent = []
    for module, name in _imported(script):
        found = importlib.import_module(module)
        if not hasattr(found, name):
            try:
                importlib.import_module(f"{module}.{name}")
            except ModuleNotFoundError:
                absent.append(f"{module}.{name}")
    assert absent == []


LEADS = """
import subprocess
from kit.studies import rated
from kit.jurors import Stub, verdict

CALL = ("true",)

def ran():
    return subprocess.run(CALL)

class Runner:
    run = ran

@pytest.fixture
def started():
    yield Runner()

def test_pure(): assert rated and verdict and CALL
def test_process(): assert Runner().run
def test_server():
    with Stub(): pass
"""


def test_a_test_is_quick_unless_what_it_calls_leads_to_a_process_or_a_server(tmp_path):
    path = tmp_path / "test_some.py"
    path.write_text(LEADS)
    outside = {"subprocess", "Stub", "ran", "Runner", "started", "test_process", "test_server"}
    assert tiers.leads_outside(path) == outside


def test_fixtures_of_all_modules_are_known_by_what_they_start():
    outside = tiers.leads_outside(tiers.CONFTEST)
    assert outside >= {"browser", "page", "run", "server", "stub"}
    assert not outside & {"engine", "small_study", "url", "write"}


def test_a_quick_test_that_starts_a_process_all_the_same_is_ended_and_told(request):
    request.node.add_marker("quick")
    watched = tiers.Watch().over(request.node)
    with watched, pytest.raises(pytest.fail.Exception, match=r"mark it `@pytest\.mark\.not_quick`"):
        os.system("true")  # noqa: S605, S607 it is never run
