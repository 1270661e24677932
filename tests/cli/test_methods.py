"""The methods section of a dossier: every number is the study's own."""

import json
import re
from pathlib import Path

import pytest
from kit.packaged_study import made, whole
from kit.studies import Run
from sqlalchemy import Engine, text
from sqlmodel import Session

from calibration.dossier import dossier_markdown
from calibration.tables.numbers import DASH, MINUS, scorer
from medjury.services.dossier import dossier

__all__ = ["made", "whole"]


def page(engine: Engine) -> str:
    """Return the dossier as one reads it, without the marks of Markdown."""
    return dossier_markdown(dossier(engine, "grras", reps=20)).replace("\\", "")


@pytest.fixture
def written(whole: Engine) -> str:
    return page(whole)


def test_every_figure_is_that_of_calibrate(run: Run, whole: Engine, tmp_path: Path) -> None:
    to = tmp_path / "methods.md"
    assert run("analyse", "calibrate", "--json", str(tmp_path / "c.json"))[0] == 0
    code, _, err = run("share", "dossier", "--to", "grras", "--out", str(to))
    assert code == 0, err
    written = to.read_text("utf-8").replace("\\", "").replace(MINUS, "-").replace(DASH, "-")
    shown = re.findall(r"^\| ([^|]+) \| (-?[0-9.]+|-) \|", written, re.MULTILINE)
    rows = json.loads((tmp_path / "c.json").read_text("utf-8"))["rows"]
    assert [icc for _, icc in shown] == [
        "-" if row["icc"] is None else f"{row['icc']:.3f}" for row in rows
    ]
    for row, (name, _) in zip(rows, shown, strict=True):
        assert name.startswith(scorer(row["scorer"]))


def test_no_author_is_named_and_no_text_quoted(written: str) -> None:
    assert "model-" not in written
    assert "answer 1" not in written


def test_a_missing_criterion_and_a_lifted_blind_are_reported(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
    with Session(whole) as session:
        session.execute(
            text("DELETE FROM rating WHERE response = 5 AND rater = 1 AND criterion = 'clarity'")
        )
        session.commit()
    call = ("study", "unblind", "--reason", "interim look", "--out", str(tmp_path / "a.csv"))
    assert run(*call)[0] == 0
    written = page(whole)
    assert "12 responses of 3 models to 12 instances" in written
    assert "1 reading of 49 by clinicians lack" in written
    assert "interim look" in written
