"""What screens say in words, without a browser: judgements, differences, names and short texts."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from annotate.screens.export.record import actor_label
from annotate.screens.monitor import compared
from data.errors import BadFile
from data.importers.table import TableFile
from data.person import OPERATOR, Person
from data.schema import Report, Role
from data.study import people
from data.study.people import add_people

ROW = {"scorer": "jury", "benchmark": "aci", "icc": 0.98657, "low": 0.951, "high": 0.991}
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


def test_a_coordinator_reads_who_locked_by_name_and_a_researcher_by_number(engine: Engine) -> None:
    add_people(OPERATOR, engine, ["Rita"], Role.COORDINATOR)
    (rita,) = people.people(OPERATOR, engine)
    actor = f"account {rita.id}"
    names = people.names_of_actors(OPERATOR, engine)
    assert actor_label(actor, names) == f"Rita ({actor})"
    assert actor_label("coordinator", names) == "coordinator"
    assert people.names_of_actors(Person(9, "Rob", Role.RESEARCHER), engine) == {}
