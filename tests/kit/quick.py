"""Which tests are quick: values in, values out, without study, server, browser or process.

A test is quick if its module and the helpers it imports import none of `BUSY`, if it asks for no
fixture of `FIXTURES`, and if its module is not among `LONG`. That it then starts nothing is not
believed but held: while a quick test runs, whatever starts a process, opens a socket or a database
fails it.
"""

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
BUSY = {
    *("aiosmtpd", "asyncio", "http", "httpx2", "multiprocessing", "playwright", "psutil", "signal"),
    *("socket", "sqlite3", "streamlit", "subprocess", "threading", "urllib", "websockets"),
    *("annotate.server", "data.database", "data.migrations"),
}
FIXTURES = {"browser", "empty_study", "server", "stub", "study_in"}
LONG = {  # they compute for five seconds and more
    *("test_blind", "test_first_page", "test_linear_texts", "test_marks", "test_models_decision"),
    *("test_monitoring_decision", "test_order", "test_predict", "test_report"),
    *("test_report_hangs", "test_top_up"),
}
STARTED = {
    *("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"),
    *("pty.spawn", "socket.bind", "socket.connect", "sqlite3.connect", "subprocess.Popen"),
}
_watching = False


@cache
def may_be_quick(module: Path) -> bool:
    """Tell whether a test module may hold quick tests, by what it imports, without importing it."""
    return module.stem not in LONG and not _imports(module) & BUSY


def is_quick(module: Path, fixtures: tuple[str, ...], marks: set[str]) -> bool:
    """Tell whether a test of a module is quick, by the fixtures it asks for and its marks."""
    apart = FIXTURES & set(fixtures) or {"slow", "e2e", "real"} & marks
    return not apart and may_be_quick(module)


@contextmanager
def nothing_starts() -> Iterator[None]:
    """Fail what starts a process, opens a socket or a database meanwhile."""
    global _watching
    _watching = True
    try:
        yield
    finally:
        _watching = False


def watch() -> None:
    """Put the hook in place that `nothing_starts` turns on."""
    sys.addaudithook(_refuse)


def _refuse(event: str, given: tuple[Any, ...]) -> None:
    if _watching and event in STARTED:
        raise AssertionError(f"a quick test comes to {event}{given!r:.200}")


@cache
def _imports(module: Path) -> frozenset[str]:
    """Return what a module imports, and what the helpers do that it imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
        else:
            continue
        for name in names:
            found |= {name, name.split(".")[0]}
            helper = TESTS / f"{name.replace('.', '/')}.py"
            if name.startswith("kit.") and helper.exists():
                found |= _imports(helper)
    return frozenset(found)
