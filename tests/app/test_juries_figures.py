"""What the juries screen is handed: the decision and tables as values, light enough for the server."""

import json
from pathlib import Path

import pytest
from kit.studies import Run, rated_by_three
from sqlalchemy import Engine

from annotate import figures
from calibration.decision import DecisionKind
from calibration.values import AnalysisOptions
from medjury.services.juries import ComparisonQuestion, RankingQuestion

OPTIONS = AnalysisOptions(reps=60)


@pytest.fixture
def study(run: Run, tmp_path: Path, engine: Engine) -> Engine:
    rated_by_three(run, tmp_path, n=60)
    return engine


def test_the_screen_shows_what_the_command_says(study: Engine, run: Run) -> None:
    shown = figures.jury_ranking(study, RankingQuestion(OPTIONS))
    body = json.loads(run("analyse", "juries", "--reps", "60", "--json", "-")[1])
    assert shown["decision"].headline == body["decision"]["headline"]
    assert shown["decision"].kind is DecisionKind.NO_PROTOCOL
    rows = shown["ranking"].groups[0].rows
    assert [one[0] for one in rows] == [", ".join(row["jurors"]) for row in body["rows"]]


def test_two_juries_are_shown_as_the_command_compares_them(study: Engine, run: Run) -> None:
    shown = figures.jury_comparison(study, ComparisonQuestion(OPTIONS, ("alpha",), ("gamma",)))
    asked = (
        "analyse",
        "juries",
        "--compare",
        "alpha",
        "--compare",
        "gamma",
        "--reps",
        "60",
        "--json",
        "-",
    )
    body = json.loads(run(*asked)[1])
    assert shown["decision"].headline == body["decision"]["headline"]
    (row,) = shown["table"].groups[0].rows
    assert row[0] == "gamma"
    assert list(row[1:4]) == [f"{body[name]:.3f}" for name in ("icc_a", "icc_b", "difference")]
