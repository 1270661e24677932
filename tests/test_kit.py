"""Test modules take what they are made with from `tests/kit/`; what benchmarks take from it, and from us, is there."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

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
