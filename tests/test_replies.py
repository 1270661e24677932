"""Taking in what the rating form sends: saved once, in order, or refused in plain words."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from rating_server import FULL, build, codes_of, message, row, rubric, scores_of
from sqlalchemy import Engine
from study_place import fill

from annotate import replies
from annotate.replies import Answer, form_data, take_in
from data import queries
from data.card import Reply
from data.errors import NotAllowed
from data.queries import Person
from data.rubric import low_points
from data.store import submit
from data.store.record import lock
from data.store.settings import set_setting


@pytest.fixture(scope="module")
def invited(study: Engine) -> Person:
    """Make the study once that each test has a copy of, and return dr-a."""
    rows = [row(1, "No fever."), row(2, "Has fever.")]
    codes = build(study, rows, ["dr-a", "dr-b"], rubric(name="rubric_hidden"))
    person = queries.person_by_code(study, codes["dr-a"])
    assert person is not None
    return person


@pytest.fixture
def me(engine: Engine, study: Engine, invited: Person) -> Person:
    fill(engine, study)
    return invited


def test_an_older_message_never_overwrites_a_newer_one(engine: Engine, me: Person) -> None:
    code = codes_of(engine, "dr-a")[0]
    take_in(engine, me, message(code, 5, scores={"clarity": 4}))
    take_in(engine, me, message(code, 4, scores={"clarity": 1}))
    task = queries.next_task(engine, me.id)
    assert task is not None
    assert task.draft["scores"] == {"clarity": 4}
    assert form_data(task, None)["seconds"] == 3


def test_the_same_submission_three_times_at_once_leaves_one_rating(
    engine: Engine, me: Person
) -> None:
    code = codes_of(engine, "dr-a")[0]
    start = threading.Barrier(3)

    def send(_: int) -> Answer:
        start.wait()
        return take_in(engine, me, message(code, submit=True))

    with ThreadPoolExecutor(3) as pool:
        assert {one.error for one in pool.map(send, range(3))} == {""}
    assert scores_of(engine, "dr-a") == [(1, name, score) for name, score in FULL.items()]


def test_a_late_draft_does_not_reopen_what_is_submitted(engine: Engine, me: Person) -> None:
    first, second = codes_of(engine, "dr-a")
    take_in(engine, me, message(first, 2, submit=True))
    take_in(engine, me, message(first, 9, scores={"clarity": 1}))
    task = queries.next_task(engine, me.id)
    assert task is not None
    assert (task.card.code, task.draft) == (second, {})


def test_another_raters_assignment_is_refused(engine: Engine, me: Person) -> None:
    theirs = codes_of(engine, "dr-b")[0]
    with pytest.raises(NotAllowed):
        submit(engine, me.id, theirs, Reply(FULL), 1)
    for final in (False, True):
        assert take_in(engine, me, message(theirs, submit=final)).error == replies.FOREIGN
    assert scores_of(engine, "dr-b") == []


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        (FULL | {"clarity": 6}, replies.OFF),
        (FULL | {"charm": 3}, replies.OFF),
        ({"clarity": 3}, "not rated yet: accuracy, completeness"),
        (FULL | {"clarity": 2.5}, replies.GARBLED),
        (FULL | {"clarity": True}, replies.GARBLED),
        ("full marks", replies.GARBLED),
    ],
)
def test_a_wrong_submission_writes_nothing_and_says_so_without_names(
    engine: Engine, me: Person, scores: object, says: str
) -> None:
    code = codes_of(engine, "dr-a")[0]
    answer = take_in(engine, me, message(code, scores=scores, submit=True))
    assert answer.error == says
    assert "rubric_hidden" not in answer.error
    assert scores_of(engine, "dr-a") == []


@pytest.mark.parametrize("payload", ["nonsense", 7, {"code": 1}, {"code": ["x"], "seq": None}])
def test_what_is_no_message_is_answered_once(engine: Engine, me: Person, payload: object) -> None:
    assert take_in(engine, me, payload).error == replies.GARBLED


def test_draft_scores_off_the_scale_are_not_shown(engine: Engine, me: Person) -> None:
    code = codes_of(engine, "dr-a")[0]
    take_in(engine, me, message(code, scores={"clarity": 99, "accuracy": 2, "charm": 1}))
    task = queries.next_task(engine, me.id)
    assert task is not None
    assert form_data(task, None)["scores"] == {"accuracy": 2}


MARK = {"criterion": "accuracy", "start": 0, "end": 2, "error": "wrong"}


@pytest.mark.parametrize(
    "reason", [{"comment": "dose"}, {"spans": [MARK]}, {"scores": FULL | {"accuracy": 3}}]
)
def test_a_low_first_score_needs_a_line_or_a_mark(
    engine: Engine, me: Person, reason: dict[str, object]
) -> None:
    code = codes_of(engine, "dr-a")[0]
    low = FULL | {"accuracy": 2}
    refused = take_in(engine, me, message(code, 1, scores=low, comment=" ", submit=True))
    assert refused.error.startswith("Accuracy is low: write one line why")
    assert refused.at == code
    assert scores_of(engine, "dr-a") == []
    assert (
        take_in(engine, me, message(code, 2, **({"scores": low} | reason), submit=True)).error == ""
    )


def test_a_study_can_leave_low_scores_unasked(engine: Engine, me: Person) -> None:
    set_setting(engine, "ask_why", "false")
    sent = message(codes_of(engine, "dr-a")[0], scores=FULL | {"accuracy": 1}, submit=True)
    assert take_in(engine, me, sent).error == ""


@pytest.mark.parametrize(("high", "low"), [(1, (0,)), (5, (0, 1)), (10, (0, 1, 2, 3))])
def test_low_is_the_lowest_two_fifths_and_at_least_one_point(
    high: int, low: tuple[int, ...]
) -> None:
    assert low_points(rubric(low=0, high=high)) == low


def test_going_back_and_forth_repeats_nothing(engine: Engine, me: Person) -> None:
    first, second = codes_of(engine, "dr-a")
    take_in(engine, me, message(first, submit=True))
    back = message(second, 3, scores={"clarity": 1}, go="previous")
    assert [take_in(engine, me, back).at for _ in range(2)] == [first, first]
    assert take_in(engine, me, message(first, 4, go="previous")).at == first
    assert take_in(engine, me, message(first, 5, go="next")).at == ""
    task = queries.next_task(engine, me.id)
    assert task is not None
    assert task.draft["scores"] == {"clarity": 1}


def test_a_recusal_frees_the_place_and_needs_a_reason(engine: Engine, me: Person) -> None:
    first, second = codes_of(engine, "dr-a")
    assert take_in(engine, me, message(first, go="recuse")).error == "say why you recuse yourself"
    assert take_in(engine, me, message(first, 2, go="recuse", reason="patient")).error == ""
    task = queries.next_task(engine, me.id)
    assert task is not None
    assert task.card.code == second


def test_an_old_submission_never_undoes_a_newer_one(engine: Engine, me: Person) -> None:
    code = codes_of(engine, "dr-a")[0]
    take_in(engine, me, message(code, 5, submit=True))
    assert (
        take_in(engine, me, message(code, 4, scores=FULL | {"clarity": 1}, submit=True)).error == ""
    )
    assert [score for *_, score in scores_of(engine, "dr-a")] == list(FULL.values())


def test_the_same_again_counts_as_the_newest_state(engine: Engine, me: Person) -> None:
    code = codes_of(engine, "dr-a")[0]
    take_in(engine, me, message(code, 1, submit=True))
    take_in(engine, me, message(code, 2, scores={"clarity": 1}))
    take_in(engine, me, message(code, 3, submit=True))
    task = queries.task(engine, me.id, code)
    assert task is not None
    assert (task.revision, task.submitted_seq, task.draft["scores"]) == (1, 3, FULL)


def test_a_locked_study_takes_nothing_and_says_so(engine: Engine, me: Person) -> None:
    code = codes_of(engine, "dr-a")[0]
    lock(engine, "coordinator")
    for final in (False, True):
        assert take_in(engine, me, message(code, submit=final)).error == replies.CLOSED
    assert scores_of(engine, "dr-a") == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"spans": [MARK | {"end": 99}]},
        {"spans": [MARK | {"criterion": "charm"}]},
        {"spans": [MARK | {"error": "ugly"}]},
        {"flags": ["loud"]},
        {"go": "home"},
    ],
)
def test_a_mark_or_flag_that_cannot_be_is_refused(
    engine: Engine, me: Person, wrong: dict[str, object]
) -> None:
    sent = message(codes_of(engine, "dr-a")[0], submit=True, **wrong)
    assert take_in(engine, me, sent).error != ""
    assert scores_of(engine, "dr-a") == []
