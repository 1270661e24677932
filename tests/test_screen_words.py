"""What screens say in words, without a browser: judgements, differences, names and short texts."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from annotate.screens import study, study_import
from annotate.screens.monitoring import compared
from data import queries
from data.errors import BadFile, BadPanel
from data.importers.table import TableFile
from data.person import OPERATOR, Person
from data.schema import Report, Role
from data.store import add_people
from jury.panel import read_panel

ROW = {"scorer": "jury", "benchmark": "aci", "icc": 0.98657, "boot_low": 0.951, "boot_high": 0.991}
ROW |= {"n_responses": 40, "n_instances": 20, "note": ""}


def report(icc: float = 0.98657, **options: Any) -> Report:
    body = {"rows": [ROW | {"icc": icc}], "jury": ["a"], "method": "paper", "options": options}
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Report(id=1, at=at, fingerprint="f" * 64, body=body)


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        (0.98657, 0.98702, ("0.987 (", "0.987 (")),
        (0.5, 0.6, ("0.500 (", "0.600 (")),
    ],
)
def test_a_changed_icc_is_changed_however_few_digits_are_shown(
    one: float, other: float, shown: tuple[str, str]
) -> None:
    line = next(compared(report(one), report(other)))
    a, b = line.first, line.second
    assert line.differs == "changed"
    assert a != b
    if one == 0.5:
        assert (a[:7], b[:7]) == shown
    else:
        assert (a[:6], b[:6]) == ("0.9866", "0.9870")


def test_the_same_icc_is_unchanged_and_the_whole_composite_has_the_word_of_its_control() -> None:
    lines = {one.what: (one.first, one.second, one.differs) for one in compared(report(), report())}
    assert lines["ICC(C,2) with the clinicians"][2] == ""
    assert lines["ICC(C,2) with the clinicians"][0].startswith("0.987 (0.95 to 0.99)")
    assert lines["Criterion"] == ("composite", "composite", "")
    assert lines["Benchmark"] == ("all combined", "all combined", "")


def test_a_workbook_is_called_one_whatever_its_ending(tmp_path: Path) -> None:
    for name in ("rows.xlsx", "rows.csv"):
        path = tmp_path / name
        path.write_bytes(b"PK\x03\x04rest")
        with pytest.raises(
            BadFile, match=r"an Excel workbook.*cut short or damaged; copy it again"
        ):
            TableFile(path)
    old = tmp_path / "rows.xls"
    old.write_bytes(b"\xd0\xcf\x11\xe0rest")
    with pytest.raises(
        BadFile, match=r"this is an Excel workbook of the old kind.*; save it as \.xlsx"
    ):
        TableFile(old)


def test_a_long_text_is_shown_by_its_beginning_with_its_length() -> None:
    assert study_import.shortened("short") == "short"
    shown = study_import.shortened("x" * 1_048_576)
    assert len(shown) < 6_000
    assert "the first 5,000 of 1,048,576 characters" in shown


def test_a_coordinator_reads_who_locked_by_name_and_a_researcher_by_number(engine: Engine) -> None:
    add_people(OPERATOR, engine, ["Rita"], Role.COORDINATOR)
    (rita,) = queries.people(OPERATOR, engine)
    actor = f"account {rita.id}"
    names = queries.names_of_actors(OPERATOR, engine)
    assert study.actor_label(actor, names) == f"Rita ({actor})"
    assert study.actor_label("coordinator", names) == "coordinator"
    assert queries.names_of_actors(Person(9, "Rob", Role.RESEARCHER), engine) == {}


def test_a_name_that_no_panel_may_have_is_told_which_signs_are_allowed(tmp_path: Path) -> None:
    text = 'name = "our panel"\n[[juror]]\nname = "a"\nprovider = "simulated"\nmodel = "m"\n'
    path = tmp_path / "own.toml"
    path.write_text(text + 'family = "f"\n')
    with pytest.raises(BadPanel, match="letters, digits, underscores, dots and hyphens only") as no:
        read_panel(path)
    assert "pattern" not in str(no.value)
