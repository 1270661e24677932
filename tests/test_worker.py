"""Screens ask the command line for figures, once, and again when the study has changed."""

from pathlib import Path

import pytest
from report_study import rated
from small import Run
from sqlalchemy import Engine
from study_place import StudyIn

from annotate import worker
from annotate.worker import ask
from data.database import open_study
from data.errors import BadInput, NotAllowed
from data.person import OPERATOR, Person
from data.queries.ledger import tried
from data.queries.version import version
from data.schema import Role
from data.store.settings import set_setting

WAIT_SECONDS = 120


@pytest.mark.usefixtures("small_study")
def test_figures_are_those_of_the_command(engine: Engine, run: Run) -> None:
    asked = ("assign", "--raters", "2", "--plan", "--repeats", "0")

    found = ask(OPERATOR, engine, *asked).result(WAIT_SECONDS)

    assert found["per_response"] == 2
    assert ask(OPERATOR, engine, *asked).result() is found
    assert run(*asked, "--json", "-")[0] == 0


@pytest.mark.usefixtures("small_study")
def test_a_command_that_refuses_says_why(engine: Engine) -> None:
    with pytest.raises(BadInput, match="no clinician has rated anything in this study yet"):
        ask(OPERATOR, engine, "calibrate").result(WAIT_SECONDS)


def test_a_command_is_asked_once_until_the_study_changes_or_it_failed(engine: Engine) -> None:
    first = ask(OPERATOR, engine, "calibrate")
    assert ask(OPERATOR, engine, "calibrate", "--method", "published") is not first
    before = version(engine)

    set_setting(engine, "pause_minutes", "30")

    assert version(engine) != before
    second = ask(OPERATOR, engine, "calibrate")
    assert second is not first
    assert first not in worker._answers.values(), "nobody can ask for it again"
    assert second.exception(WAIT_SECONDS)
    assert ask(OPERATOR, engine, "calibrate") is not second


def test_figures_that_left_a_trace_in_the_ledger_are_not_asked_for_again(
    engine: Engine, run: Run, tmp_path: Path
) -> None:
    rated(run, tmp_path, n=8)
    first = ask(OPERATOR, engine, "calibrate", "--reps", "20")

    assert first.result(WAIT_SECONDS)["rows"]

    assert [one.times for one in tried(engine)] == [1]
    assert ask(OPERATOR, engine, "calibrate", "--reps", "20") is first


def test_two_studies_have_answers_of_their_own(
    engine: Engine, tmp_path: Path, study_in: StudyIn
) -> None:
    other = open_study(study_in(tmp_path, "other.db"), create=True)
    first = ask(OPERATOR, engine, "calibrate")
    assert ask(OPERATOR, other, "calibrate") is not first
    assert first in worker._answers.values()
    other.dispose()


def test_a_clinician_is_told_no_figures(engine: Engine) -> None:
    with pytest.raises(NotAllowed):
        ask(Person(1, "dr-a", Role.CLINICIAN), engine, "calibrate")
