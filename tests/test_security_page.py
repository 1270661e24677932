"""docs/security.md names a test for every threat, and each of them is there."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "security.md"
NAMED = re.compile(r"`(\w+)::(\w+)`")


def threats() -> dict[str, list[tuple[str, str]]]:
    """Return the tests that the page names, by threat."""
    rows = [line.split("|") for line in PAGE.read_text("utf-8").splitlines() if line[:1] == "|"]
    return {cells[1].strip(): NAMED.findall(cells[3]) for cells in rows[2:]}


def test_every_threat_has_a_test_that_is_there() -> None:
    found = threats()
    assert len(found) > 20
    assert [threat for threat, tests in found.items() if not tests] == []
    missing = [
        f"{file}::{name}"
        for tests in found.values()
        for file, name in tests
        if f"def test_{name}(" not in (HERE / f"test_{file}.py").read_text("utf-8")
    ]
    assert missing == []
