"""The workbench's jury where none is chosen: real jurors never sit with simulated ones."""

from collections.abc import Callable
from pathlib import Path

from kit.studies import Run
from sqlalchemy import Engine

from data.person import OPERATOR
from data.queries.workbench import Chosen, compared, simulated_among
from jury.panel import read_panel
from jury.run import run_panel

REAL = """response_id,rater,kind,accuracy,completeness,clarity
r11,dr,clinician,4,4,4
r11,real,juror,2,2,2
r11,other,juror,1,1,1
"""


def test_simulated_jurors_sit_only_while_no_real_one_was_heard(
    small_study: Engine, run: Run, write: Callable[[str, str], Path]
) -> None:
    simulated = sorted(one.name for one in read_panel("simulated").juror)
    run_panel(small_study, read_panel("simulated"))
    assert {one.jury.of for one in compared(OPERATOR, small_study, Chosen())} == {3}
    assert simulated_among(OPERATOR, small_study, Chosen()) == simulated
    assert run("ratings", str(write("ratings.csv", REAL)))[0] == 0
    [only] = compared(OPERATOR, small_study, Chosen())
    assert (only.jury.mean, only.jury.of, only.difference) == (1.5, 2, -2.5)
    assert simulated_among(OPERATOR, small_study, Chosen()) == []
    named = Chosen(jurors=tuple(simulated))
    assert simulated_among(OPERATOR, small_study, named) == simulated
    assert len(compared(OPERATOR, small_study, named)) == 4
