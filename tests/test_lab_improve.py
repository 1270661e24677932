"""The Jury lab's part on learning: what it orders, and what it shows of what was learned."""

from pathlib import Path

import pytest
from kit.jurors import Stub
from kit.jury_runs import HASTY, panel_at
from kit.learning_study import fill, juror
from sqlalchemy import Engine

from annotate import jury_runs
from annotate.screens import lab_improve
from data.errors import NotAllowed
from data.person import OPERATOR, Person
from data.schema import Role
from data.store.jury_runs import RunOrder
from medjury.services.improvement import ImproveQuestion, improved_of
from medjury.services.improving import improve


def test_an_order_to_learn_is_the_command_of_that_name() -> None:
    order = RunOrder("p", "text", ("visits",), task="improve", rounds=2, examples=1)
    words = jury_runs._arguments(order, Path("p.toml"))
    assert words[:3] == ["jury", "improve", "p.toml"]
    assert words[3:] == ["--rounds", "2", "--examples", "1", "--benchmark", "visits"]
    assert "--rounds" not in jury_runs._arguments(RunOrder("p", "text"), Path("p.toml"))


def test_what_was_learned_is_listed_with_its_gain_and_what_flatters(
    engine: Engine, tmp_path: Path
) -> None:
    fill(engine, tmp_path, seed=1, count=100)
    with Stub(juror) as stub:
        question = ImproveQuestion(panel_at(stub, "a", "b"), rounds=1, examples=0, reps=50)
        found = improve(engine, question, patience=HASTY)
    [kept] = lab_improve.all_improvements(OPERATOR, engine)
    assert improved_of(kept.result) == found
    panel, ended, gain, on_train, cases, _ = lab_improve._row(found)
    test = found.parts["test"]
    assert (panel, cases) == (found.panel, found.split["test"]["responses"])
    assert gain == f"{test.gain:.2f} ({test.low:.2f} to {test.high:.2f})"
    assert on_train == f"{found.parts['train'].gain:.2f}"
    assert ended == lab_improve.ENDED[found.outcome]


def test_clinicians_do_not_see_what_juries_learned(engine: Engine) -> None:
    with pytest.raises(NotAllowed):
        lab_improve.all_improvements(Person(1, "dr_a", Role.CLINICIAN), engine)
