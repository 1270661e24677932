"""The methods section and the GRRAS checklist: numbers from the study, the rest left to its authors."""

import json
import re
from pathlib import Path

import pytest
from kit.packaged_study import made, whole
from kit.studies import Run
from sqlalchemy import Engine, text
from sqlmodel import Session

from calibration.tables.numbers import DASH, MINUS, scorer
from medjury.cli.methods import ITEMS, OWN, page
from medjury.services.methods import study_facts

__all__ = ["made", "whole"]


@pytest.fixture
def written(whole: Engine) -> str:
    return page(study_facts(whole, reps=20))


def answers(page: str) -> list[str]:
    rows = re.findall(r"^\| (\d+) \| \w+ \| .* \| (.*) \|$", page, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 16))
    return [answer for _, answer in rows]


def test_the_checklist_has_all_fifteen_items(written: str) -> None:
    assert len(ITEMS) == 15
    answers(written)


def test_what_the_tool_cannot_know_is_left_to_the_authors(written: str) -> None:
    found = answers(written)
    assert [number for number, one in enumerate(found, 1) if one == OWN] == [1, 5, 14]
    assert all(OWN in found[number - 1] for number in (3, 4, 6, 7, 9, 10, 12, 15))


def test_the_numbers_are_those_of_the_study(written: str) -> None:
    assert "12 responses of 3 models to 12 instances" in written
    assert "4 clinicians rated" in written
    assert "2 language models rated as a jury: j1, j2" in written
    assert "53 readings by 4 clinicians" not in written
    assert "49 readings by 4 clinicians, 12 of them second readings" in written
    assert "0 readings of 49 by clinicians lack a criterion" in written
    assert "1 done, 1 open" in written
    assert "36 readings came from outside the rating page" in written
    assert "In 1 response words that named the author were masked" in written


def test_every_figure_is_that_of_calibrate(run: Run, whole: Engine, tmp_path: Path) -> None:
    to = tmp_path / "methods.md"
    assert run("calibrate", "--json", str(tmp_path / "c.json"))[0] == 0
    code, _, err = run("export", "--methods", str(to))
    assert code == 0, err
    written = to.read_text("utf-8").replace("\\", "").replace(MINUS, "-").replace(DASH, "-")
    shown = re.findall(r"^\| ([^|]+) \| (-?[0-9.]+|-) \|", written, re.MULTILINE)
    rows = json.loads((tmp_path / "c.json").read_text("utf-8"))["rows"]
    assert [icc for _, icc in shown] == [
        "-" if row["icc"] is None else f"{row['icc']:.3f}" for row in rows
    ]
    for row, (name, _) in zip(rows, shown, strict=True):
        assert name.startswith(scorer(row["scorer"]))


def test_no_author_and_no_text_is_quoted(written: str) -> None:
    assert "model-" not in written
    assert "answer 1" not in written


def test_simulated_raters_are_said_first(whole: Engine) -> None:
    assert "Simulated" not in page(study_facts(whole, reps=20))
    with Session(whole) as session:
        session.execute(text("UPDATE rater SET simulated = true WHERE handle = 'dr_a'"))
        session.commit()
    lines = page(study_facts(whole, reps=20)).splitlines()
    assert lines[2].startswith(
        "**Simulated: nothing here is evidence.** Nobody stands behind dr_a."
    )


def test_a_missing_criterion_and_a_lifted_blind_are_told(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
    with Session(whole) as session:
        session.execute(
            text("DELETE FROM rating WHERE response = 5 AND rater = 1 AND criterion = 'clarity'")
        )
        session.commit()
    run("unblind", "--reason", "interim look", "--out", str(tmp_path / "a.csv"))
    written = page(study_facts(whole, reps=20))
    assert "1 reading of 49 by clinicians lack" in written
    assert "interim look" in answers(written)[7]


def test_without_clinicians_there_is_nothing_to_report(
    run: Run, small_study: Engine, tmp_path: Path
) -> None:
    code, _, err = run("export", "--methods", str(tmp_path / "m.md"))
    assert code == 2
    assert "no clinician has rated" in err
    assert not (tmp_path / "m.md").exists()
