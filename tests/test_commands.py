"""Screens not yet converted ask the command line for figures, once for an unchanged study."""

from pathlib import Path

import pytest
from report_study import rated
from small import Run
from sqlalchemy import Engine

from annotate.commands import ask
from data.errors import BadInput, NotAllowed
from data.person import OPERATOR, Person
from data.queries.ledger import tried
from data.schema import Role

WAIT_SECONDS = 120


@pytest.mark.usefixtures("small_study")
def test_a_command_that_refuses_says_why(engine: Engine) -> None:
    with pytest.raises(BadInput, match="no clinician has rated anything in this study yet"):
        ask(OPERATOR, engine, "calibrate").result(WAIT_SECONDS)


def test_figures_that_left_a_trace_in_the_ledger_are_not_asked_for_again(
    engine: Engine, run: Run, tmp_path: Path
) -> None:
    rated(run, tmp_path, n=8)
    first = ask(OPERATOR, engine, "calibrate", "--reps", "20")

    assert first.result(WAIT_SECONDS)["rows"]

    assert [one.times for one in tried(engine)] == [1]
    assert ask(OPERATOR, engine, "calibrate", "--reps", "20") is first


def test_a_clinician_is_told_no_figures(engine: Engine) -> None:
    with pytest.raises(NotAllowed):
        ask(Person(1, "dr-a", Role.CLINICIAN), engine, "calibrate")
