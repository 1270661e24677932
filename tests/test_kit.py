"""Test modules take what they are made with from `tests/kit/`, and nothing from each other."""

import ast
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
