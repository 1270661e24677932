"""Damaged files through the commands: taken whole, or refused with the study as it was."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.commands import told_by
from kit.fuzz.readers import CANARY, LONGEST
from kit.fuzz.seeds import RATINGS, RESPONSES, WIDE, lines, table
from kit.study_place import all_rows

from data.database import open_study

Rows = list[dict[str, object]]
EXPERTS: Rows = [
    {"response_id": "r11", "criterion": name, "score": 3, "why": CANARY}
    for name in ("accuracy", "completeness", "clarity")
]
FILES: dict[str, tuple[str, Rows, Callable[[Rows], bytes], str]] = {
    "responses.csv": ("study import", RESPONSES, table, ".csv"),
    "responses.jsonl": ("study import", RESPONSES, lines, ".jsonl"),
    "ratings.csv": ("rate ratings", RATINGS, table, ".csv"),
    "ratings.jsonl": ("rate ratings", RATINGS, lines, ".jsonl"),
    "wide.csv": ("rate ratings", WIDE, table, ".csv"),
    "experts.csv": ("rate training", EXPERTS, table, ".csv"),
}
ODD: list[object] = [
    *("", " ", "0", "6", "-1", "4.5", "1e999", "nan", "inf", "1_0", "4,5", "four", "r11", "dr_a"),
    *("=1+1", "'", '"', "\x00", "\u202e", "a\nb", "a\r\nb", "\u0664", "2026-13-01", CANARY, "x" * 400),
    *("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+14:00", "clinician", "metric", "1" * 5000),
    *(CANARY + "\n" + CANARY, "-" * 41, "9" * 20),
]  # fmt: skip
TYPED = [None, True, [CANARY], {"a": CANARY}, 1e308, float("nan"), 10**30, -0.0]
CHANGES = st.lists(
    st.tuples(st.integers(0, 99), st.integers(0, 99), st.sampled_from([*ODD, *TYPED])), max_size=3
)


@pytest.fixture(scope="module")
def held(tmp_path_factory, study_in):
    """Return a study that holds the responses and nobody's ratings."""
    folder = tmp_path_factory.mktemp("fuzzed")
    (folder / "responses.csv").write_bytes(table(RESPONSES))
    url = study_in(folder)
    assert told_by(url, "study", "import", str(folder / "responses.csv"))[0] == 0
    engine = open_study(url)
    yield engine
    engine.dispose()


def damaged(rows, changes, form):
    """Return rows with some of their cells, or a whole column's name, made odd."""
    found = [dict(one) for one in rows]
    for at, which, odd in changes:
        if form == ".csv" and isinstance(odd, str) and "\ud800" in odd:
            continue
        row = found[at % len(found)]
        row[list(row)[which % len(row)]] = odd
    return found


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(FILES)), CHANGES)
def test_a_damaged_file_is_taken_whole_or_changes_nothing(held, tmp_path, name, changes):
    order, rows, written, form = FILES[name]
    path = tmp_path / f"damaged{form}"
    path.write_bytes(written(damaged(rows, changes, form)))
    before = all_rows(held)
    code, said = told_by(str(held.url), *order.split(), str(path))
    assert code in (0, 2), said
    if code == 2:
        assert all_rows(held) == before
        _one_message(said)


def _one_message(said):
    message = "".join(line for line in said.splitlines(keepends=True) if "medjury: " in line)
    assert message.count("\n") == 1, said
    assert message.startswith("medjury: "), said
    assert len(message) < LONGEST, message
    assert CANARY not in said, said
    assert "Traceback" not in said


def test_an_undamaged_file_of_each_kind_is_taken(tmp_path, study_in):
    url = study_in(tmp_path, "own.db")
    for name in ("responses.csv", "responses.jsonl", "ratings.csv", "wide.csv"):
        order, rows, written, form = FILES[name]
        path = tmp_path / f"{Path(name).stem}{form}"
        path.write_bytes(written(rows))
        code, said = told_by(url, *order.split(), str(path))
        assert code == 0, said


def test_half_a_surrogate_pair_is_refused_and_not_half_stored(held, tmp_path):
    path = tmp_path / "half.jsonl"
    good, bad = (dict(RESPONSES[0]) | {"response_id": one} for one in ("new1", "new2"))
    bad["response"] = "half \ud83d"
    path.write_text("\n".join(json.dumps(one) for one in (good, bad)), encoding="ascii")
    before = all_rows(held)
    code, said = told_by(str(held.url), "study", "import", str(path))
    assert (code, "row 2 holds half a surrogate pair" in said) == (2, True)
    assert all_rows(held) == before
