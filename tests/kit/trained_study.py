"""A study with a training round: two responses with experts' scores, and two to rate."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine

from data.card import Reply
from data.database import open_study
from data.importers.ratings import expert_rows
from data.importers.table import TableFile
from data.study.responses import import_responses
from data.study.room import Exercise, Feedback, RoundResult, situation
from data.study.training import ExpertsAdded, answer_drill, import_experts, leave_feedback
from kit.rating_study import FULL, build, row, rubric
from kit.study_place import StudyIn, fill

Write = Callable[[str, str], Path]

Put = Callable[[str], ExpertsAdded]

WIDE = """response_id,accuracy,completeness,clarity,why
train-1,2,4,5,The fever is wrong.
train-2,4.5,4,4,
"""

LONG = "response_id,criterion,score,why\n" + "".join(
    f"train-{n},{name},{score},\n"
    for n in (1, 2)
    for name, score in (("accuracy", 2), ("completeness", 4), ("clarity", 5))
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, study_in: StudyIn) -> Engine:
    """Make the study once that each test has a copy of."""
    engine = open_study(study_in(tmp_path_factory.mktemp("made")), create=True)
    trained = [row(n + 7, f"Practice {n}.", response_id=f"train-{n}") for n in (1, 2)]
    import_responses(engine, trained, lambda _: rubric(name="rubric_hidden"))
    build(engine, [row(1, "Real 1."), row(2, "Real 2.")], ["dr-a", "dr-b"], rubric())
    return engine


@pytest.fixture
def study(engine: Engine, made: Engine) -> Engine:
    """Two training responses, and two that dr-a and dr-b are to rate."""
    fill(engine, made)
    return engine


@pytest.fixture
def put(study: Engine, write: Write) -> Put:
    """Import expert scores from the text of a CSV file."""
    return lambda text: import_experts(study, expert_rows(TableFile(write("experts.csv", text))))


def answer(engine: Engine, rater: int, **scores: int) -> None:
    """Answer the training response a clinician is at, and read the feedback."""
    now = situation(engine, rater).stage
    assert isinstance(now, Exercise)
    answer_drill(engine, rater, now.task.card.code, Reply(FULL | scores), {})
    told = situation(engine, rater).stage
    assert isinstance(told, Feedback)
    leave_feedback(engine, rater, told.drill)


def fail_round(engine: Engine, rater: int) -> RoundResult:
    """Answer all of a round far off the experts, and return its outcome."""
    for _ in range(2):
        answer(engine, rater, accuracy=5, completeness=1, clarity=1)
    told = situation(engine, rater).stage
    assert isinstance(told, RoundResult)
    return told


def pass_round(engine: Engine, rater: int) -> RoundResult:
    """Answer all of a round close to the experts, and return its outcome."""
    for _ in range(2):
        answer(engine, rater, accuracy=3, completeness=4, clarity=5)
    told = situation(engine, rater).stage
    assert isinstance(told, RoundResult)
    return told
