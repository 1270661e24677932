"""Experts' scores as they are imported and fixed, and the record of training."""

import pytest
from kit.rating_study import (
    LONG,
    WIDE,
    Put,
    Write,
    answer,
    fail_round,
    made,
    pass_round,
    put,
    study,
)
from kit.studies import Run
from sqlalchemy import Engine
from sqlmodel import Session, select

from data.errors import BadRow, Conflict, MedjuryError
from data.importers.ratings import RatingFile
from data.importers.table import TableFile
from data.schema import Expert
from data.study.calls import juror_cards
from data.study.ratings import import_ratings
from data.study.room import situation
from data.study.standing import benchmarks
from data.study.training import ExpertsAdded, leave_outcome
from data.study.verify import acts, verify

__all__ = ["made", "put", "study"]


def test_long_and_wide_files_are_read_and_the_same_file_again_changes_nothing(put: Put) -> None:
    assert put(WIDE) == ExpertsAdded(added=6, responses=2)
    assert put(WIDE) == ExpertsAdded(unchanged=6, responses=2)
    assert put(LONG) == ExpertsAdded(changed=5, unchanged=1, responses=2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("response_id,why\ntrain-1,x\n", "column 'criterion' is missing"),
        ("criterion,score\naccuracy,1\n", "column 'response_id' is missing"),
        (WIDE.replace("train-2", "train-7"), "row 3, column response_id: 'train-7': no such"),
        (WIDE.replace(",2,4,5", ",2,,5"), "row 2, column completeness: '': must not be empty"),
        (WIDE.replace(",2,4,5", ",2,6,5"), "row 2: completeness=6 by an expert on train-1"),
        (WIDE.replace("clarity", "tone"), "row 2: 'tone' by an expert on train-1"),
        (WIDE.replace("train-2", "train-1"), "in row 2 already"),
        (WIDE.replace("train-2", "resp-hidden-1"), "is assigned to clinicians"),
        (LONG.replace("train-2,clarity,5,\n", ""), "the expert's score on clarity is missing"),
    ],
)
def test_a_wrong_row_is_named_and_nothing_of_the_file_is_stored(
    put: Put, study: Engine, text: str, said: str
) -> None:
    with pytest.raises(MedjuryError, match="nothing was imported") as error:
        put(text)
    assert said in str(error.value)
    with Session(study) as session:
        assert session.exec(select(Expert)).all() == []
    assert situation(study, 1).stage is None


def test_expert_scores_are_fixed_once_a_clinician_has_begun(put: Put, study: Engine) -> None:
    put(WIDE)
    answer(study, 1)
    with pytest.raises(Conflict, match="have begun training"):
        put(LONG)
    assert put(WIDE).unchanged == 6


def test_answers_and_outcomes_stand_in_a_chain_that_holds(put: Put, study: Engine) -> None:
    put(WIDE)
    pass_round(study, 1)
    names = ["expert scores imported", *["training answered"] * 2, "training passed"]
    done = acts(study, *set(names))
    assert [one.action for one in done] == names
    assert done[1].detail["scores"] == {"accuracy": 3, "completeness": 4, "clarity": 5}
    assert verify(study).findings == ()


def test_the_command_imports_shows_and_lets_through(study: Engine, write: Write, run: Run) -> None:
    def told(*arguments: str) -> str:
        return "".join(run("rate", "training", "--db", str(study.url), *arguments)[1:])

    experts = str(write("experts.csv", WIDE))
    assert "no training" in told()
    assert "6 expert scores imported" in told(experts)
    assert "nothing changed" in told(experts)
    fail_round(study, 1)
    leave_outcome(study, 1, 1)
    answer(study, 1)
    assert "2.75 not passed" in told()
    assert "1 of 2 answered" in told()
    assert "dr-a may begin" in told("--let", "dr-a", "--reason", "talked")
    assert "yes, let through" in told()


def test_jurors_are_not_paid_for_training_and_ratings_of_it_are_refused(
    put: Put, study: Engine, write: Write
) -> None:
    put(LONG)
    views = {one.name: one for one in benchmarks(study)}
    heard = [one for view in views.values() for one in juror_cards(study, view.name, view.rubric)]
    assert len(heard) == sum(view.responses for view in views.values()) == 2
    rows = "response_id,rater,kind,criterion,score\ntrain-1,dr-z,clinician,clarity,3\n"
    with pytest.raises(BadRow, match="a training response"):
        import_ratings(study, RatingFile(TableFile(write("ratings.csv", rows))))
