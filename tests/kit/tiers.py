"""Which tests are quick: those that run no whole command, start no process, browser or server.

A test is in the quick tier unless it has a mark of another tier, or its source leads to something
of `OUTSIDE`: it names that, or a function, class, fixture or helper of the kit that does. So a new
test falls into its tier by itself. What the source does not show (a process that the product starts)
`Watch` finds when the test runs; such a test is marked `not_quick` by hand, as one that takes seconds.
"""

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CONFTEST = TESTS / "conftest.py"
OTHER_TIERS = ("e2e", "not_quick", "real", "slow")
OUTSIDE = frozenset(
    {
        *("aiosmtpd", "distributed", "http.server", "multiprocessing", "pgserver", "playwright"),
        *("socket", "socketserver", "start_server", "streamlit.testing", "subprocess"),
        # In this process, yet a second each: commands, an oracle, whole reports.
        *("medjury.main", "pingouin", "kit.odd_studies", "kit.studies.content_of"),
    }
)
# They start a PostgreSQL only where MEDJURY_TEST_DB asks for one.
ON_REQUEST = frozenset({CONFTEST, TESTS / "kit" / "study_place.py"})
EVENTS = frozenset(
    {
        *("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"),
        *("socket.bind", "subprocess.Popen"),
    }
)


@cache
def leads_outside(path: Path) -> frozenset[str]:
    """Return the names of a module, its own and imported ones, that lead outside this process."""
    source = path.read_text("utf-8")
    if not _may_lead_outside(path, source):
        return frozenset()
    tree = ast.parse(source)
    outside = {name for node in tree.body for name in _imported(node)}
    outside -= {"postgres"} if path in ON_REQUEST else set()
    used = {name: _used_in(node) for node in tree.body for name in _defined(node)}
    while more := {name for name, names in used.items() if names & (outside | OUTSIDE)} - outside:
        outside |= more
    return frozenset(outside)


def has_quick_tests(path: Path) -> bool:
    """Return whether a test file may hold a quick test, without importing it."""
    source = path.read_text("utf-8")
    if re.search(rf"^pytestmark = .*\bmark\.({'|'.join(OTHER_TIERS)})\b", source, re.M):
        return False
    return bool({*re.findall(r"^def (test_\w+)", source, re.M)} - leads_outside(path))


def is_quick(item: pytest.Item) -> bool:
    """Return whether a collected test belongs to the quick tier."""
    if any(item.get_closest_marker(tier) for tier in OTHER_TIERS):
        return False
    fixtures = {*getattr(item, "fixturenames", ())}
    own = {getattr(item, "originalname", item.name)} | fixtures
    return not own & leads_outside(item.path) and not fixtures & leads_outside(CONFTEST)


def _may_lead_outside(path: Path, source: str) -> bool:
    """Return whether it is worth reading a file's syntax: nothing leads outside but by import."""
    return path.parent != TESTS or bool(
        re.search(r"^\s*(from|import) (kit|medjury|" + "|".join(OUTSIDE) + r")\b", source, re.M)
    )


def _imported(node: ast.AST) -> Iterator[str]:
    """Yield the names that an import binds to what leads outside."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if _is_outside(alias.name):
                yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(node, ast.ImportFrom):
        module = node.module or ""
        for alias in node.names:
            if _is_outside(f"{module}.{alias.name}") or _is_outside_in_kit(module, alias.name):
                yield alias.asname or alias.name


def _is_outside(module: str) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in OUTSIDE)


def _is_outside_in_kit(module: str, name: str) -> bool:
    """Return whether a name of a module of the kit, or a whole module, leads outside."""
    if module.partition(".")[0] != "kit":
        return False
    path = TESTS.joinpath(*module.split("."))
    if path.is_dir():
        return bool(leads_outside(path / f"{name}.py"))
    return name in leads_outside(path.with_suffix(".py"))


def _defined(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [one.id for one in targets if isinstance(one, ast.Name)]


def _used_in(node: ast.stmt) -> set[str]:
    """Return each name that a statement's code uses, and what outside it asks of a module."""
    names: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            names.add(part.id)
        elif isinstance(part, ast.Attribute) and part.attr in OUTSIDE:
            names.add(part.attr)
        elif isinstance(part, ast.Import | ast.ImportFrom):
            names.update(_imported(part))
    return names


class Watch:
    """Ends a quick test that starts a process or a server, whatever its source shows."""

    def __init__(self) -> None:
        self.is_on = False
        sys.addaudithook(self._heard)

    @contextmanager
    def over(self, item: pytest.Item) -> Iterator[None]:
        """Watch while a quick test is set up or runs."""
        self.is_on = item.get_closest_marker("quick") is not None
        try:
            yield
        finally:
            self.is_on = False

    def _heard(self, event: str, _: object) -> None:
        if event in EVENTS and self.is_on:
            self.is_on = False
            pytest.fail(f"a quick test does {event}: mark it `@pytest.mark.not_quick`")
