"""The training round in the store: what it takes, refuses, keeps and lets pass."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rating_server import FULL, build, message, row, rubric, scores_of
from sqlalchemy import Engine, text
from sqlmodel import Session, col, select
from study_place import StudyIn, fill

from annotate.rating import answers, room, training_messages
from annotate.rating.answers import take_in_training as take_in
from annotate.rating.form_messages import LARGEST
from data import training
from data.card import Card, Reply
from data.database import open_study, reading
from data.errors import BadInput, BadRow, Conflict, MedjuryError, NotAllowed, Unknown
from data.importers.ratings import ExpertFile, RatingFile
from data.importers.table import TableFile
from data.queries import Person, benchmarks, design_items, juror_cards, next_task
from data.queries.frames import responses_frame
from data.queries.rating_room import Exercise, Feedback, Mark, Result, stage, trainees
from data.queries.record import acts, training_findings, verify
from data.schema import Drill, Expert, Role, Setting, Span
from data.store import import_ratings, import_responses, submit
from data.store.settings import set_setting
from data.store.training import (
    ExpertsAdded,
    answer_drill,
    import_experts,
    leave_feedback,
    leave_outcome,
    let_through,
)
from medjury import main

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
    return lambda text: import_experts(study, ExpertFile(TableFile(write("experts.csv", text))))


def findings(engine: Engine) -> list[str]:
    with reading(engine) as session:
        return training_findings(session)


def answer(engine: Engine, rater: int, **scores: int) -> None:
    """Answer the training response a clinician is at, and read the feedback."""
    now = stage(engine, rater)
    assert isinstance(now, Exercise)
    answer_drill(engine, rater, now.task.card.code, Reply(FULL | scores), {})
    told = stage(engine, rater)
    assert isinstance(told, Feedback)
    leave_feedback(engine, rater, told.drill)


def fail_round(engine: Engine, rater: int) -> Result:
    """Answer all of a round far off the experts, and return its outcome."""
    for _ in range(2):
        answer(engine, rater, accuracy=5, completeness=1, clarity=1)
    told = stage(engine, rater)
    assert isinstance(told, Result)
    return told


def pass_round(engine: Engine, rater: int) -> Result:
    """Answer all of a round close to the experts, and return its outcome."""
    for _ in range(2):
        answer(engine, rater, accuracy=3, completeness=4, clarity=5)
    told = stage(engine, rater)
    assert isinstance(told, Result)
    return told


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
    assert stage(study, 1) is None


def test_a_study_without_expert_scores_has_no_training(study: Engine) -> None:
    assert stage(study, 1) is None
    assert trainees(study) == []


def test_training_responses_are_in_no_design_and_in_no_agreement(put: Put, study: Engine) -> None:
    put(WIDE)
    assert [one.response_id for one in design_items(study)] == ["resp-hidden-1", "resp-hidden-2"]
    assert list(responses_frame(study)["response_id"]) == ["resp-hidden-1", "resp-hidden-2"]
    pass_round(study, 1)
    assert scores_of(study, "dr-a") == []


def test_an_answer_is_followed_by_the_experts_scores_and_reasons(put: Put, study: Engine) -> None:
    put(WIDE)
    now = stage(study, 1)
    assert isinstance(now, Exercise)
    assert (now.number, now.total, now.round_) == (1, 2, 1)
    answer_drill(study, 1, now.task.card.code, Reply(FULL), {})
    told = stage(study, 1)
    assert isinstance(told, Feedback)
    assert told.card.response == now.task.card.response
    first = told.card.response == "Practice 1."
    expert, why = (2.0, "The fever is wrong.") if first else (4.5, "")
    assert told.marks[0] == Mark("accuracy", 4, expert, why)


def test_the_same_answer_three_times_is_one_and_another_ones_code_is_refused(
    put: Put, study: Engine
) -> None:
    put(WIDE)
    now, other = stage(study, 1), stage(study, 2)
    assert isinstance(now, Exercise)
    assert isinstance(other, Exercise)
    code = now.task.card.code
    assert [answer_drill(study, 1, code, Reply(FULL), {}) for _ in range(3)] == [True, False, False]
    with pytest.raises(NotAllowed):
        answer_drill(study, 1, other.task.card.code, Reply(FULL), {})
    with Session(study) as session:
        assert len(session.exec(select(Drill)).all()) == 1


def test_an_incomplete_answer_is_refused_in_words(put: Put, study: Engine) -> None:
    put(WIDE)
    now = stage(study, 1)
    assert isinstance(now, Exercise)
    with pytest.raises(BadInput, match="completeness, clarity"):
        answer_drill(study, 1, now.task.card.code, Reply({"accuracy": 3}), {})


def test_a_draft_and_a_comment_are_kept_and_an_older_draft_is_ignored(
    put: Put, study: Engine
) -> None:
    put(WIDE)
    now = stage(study, 1)
    assert isinstance(now, Exercise)
    entered = {"code": now.task.card.code, "attempt": 0, "by": "page1", "seconds": 3}
    newer = entered | {"seq": 2, "scores": {"accuracy": 3}, "comment": "dose?", "submit": False}
    assert take_in(study, 1, newer).error == ""
    assert take_in(study, 1, newer | {"seq": 1, "comment": ""}).error == ""
    again = stage(study, 1)
    assert isinstance(again, Exercise)
    assert (again.task.draft["scores"], again.task.draft["comment"]) == ({"accuracy": 3}, "dose?")
    final = newer | {"seq": 3, "scores": FULL, "submit": True}
    assert [take_in(study, 1, final).error for _ in range(2)] == ["", ""]
    with Session(study) as session:
        kept = session.connection().exec_driver_sql(
            "SELECT value FROM setting WHERE key = 'training:1'"
        )
        assert "dose?" in kept.scalar_one()


def at_first(engine: Engine, **other: object) -> dict[str, object]:
    """Return a message about the training response that a clinician is at."""
    now = stage(engine, 1)
    assert isinstance(now, Exercise)
    return message(now.task.card.code, **other)


MARK = {"criterion": "accuracy", "start": 0, "end": 8, "error": "unsafe", "note": "no dose"}


def test_training_takes_marks_notes_links_and_flags_like_the_real_form(
    put: Put, study: Engine
) -> None:
    put(WIDE)
    source = MARK | {"error": "missing", "side": "source", "linked": 1, "severity": "major"}
    entered = {
        "spans": [source, MARK | {"linked": 0}],
        "flags": ["flag"],
        "comments": {"clarity": "long"},
    }
    assert take_in(study, 1, at_first(study, **entered)).error == ""
    shown = room.shown(study, Person(1, "dr-a", Role.CLINICIAN, 1))
    kept = shown["entry"]
    assert [one["note"] for one in kept["spans"]] == ["no dose", "no dose"]
    assert (kept["flags"], kept["comments"]) == (["flag"], {"clarity": "long"})
    assert (shown["training"], shown["why"]["points"], shown["previous"]) == (True, [1, 2], False)
    assert take_in(study, 1, at_first(study, seq=2, submit=True, **entered)).error == ""
    with Session(study) as session:
        assert session.exec(select(Span)).all() == []
        standing = session.get_one(Setting, "training:1").value
    assert all(one in standing for one in ("no dose", '"flag"', '"linked"', "long"))


@pytest.mark.parametrize("submit", [True, False])
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"scores": FULL | {"clarity": 99}}, answers.OFF),
        ({"scores": FULL | {"charm": 3}}, answers.OFF),
        ({"comments": {"charm": "much"}}, "a comment belongs to no criterion"),
        ({"spans": [MARK | {"end": 99}]}, "not part of its text"),
        ({"spans": [MARK | {"criterion": "charm"}]}, "belongs to no criterion"),
        ({"spans": [MARK | {"error": "ugly"}]}, "this study's marks are"),
        ({"spans": [MARK | {"linked": 0}]}, "linked to none on the other side"),
    ],
)
def test_what_cannot_be_is_refused_in_training_too(
    put: Put, study: Engine, wrong: dict[str, object], says: str, submit: bool
) -> None:
    put(WIDE)
    told = take_in(study, 1, at_first(study, submit=submit, **wrong))
    assert says in told.error
    assert not told.moved
    now = stage(study, 1)
    assert isinstance(now, Exercise)
    assert (now.task.draft, now.task.draft_seq) == ({}, 0)


def test_training_asks_why_like_the_real_form(put: Put, study: Engine) -> None:
    put(WIDE)
    low = at_first(study, scores=FULL | {"accuracy": 2}, submit=True)
    told = take_in(study, 1, low)
    assert told.error.startswith("Accuracy is low: write one line why")
    assert isinstance(stage(study, 1), Exercise)
    assert take_in(study, 1, low | {"seq": 2, "comment": "dose"}).error == ""
    assert isinstance(stage(study, 1), Feedback)
    set_setting(study, "ask_why", "false")
    leave_feedback(study, 1, 1)
    assert take_in(study, 1, at_first(study, scores=FULL | {"accuracy": 2}, submit=True)).moved


def test_a_training_response_cannot_be_given_back(put: Put, study: Engine) -> None:
    put(WIDE)
    told = take_in(study, 1, at_first(study, go="recuse", reason="I know the patient"))
    assert (told.error, told.moved) == (answers.NO_RECUSAL, False)
    assert isinstance(stage(study, 1), Exercise)


def test_a_stale_page_is_refused_in_training_and_told_what_is_stored(
    put: Put, study: Engine
) -> None:
    put(WIDE)
    first = at_first(study, base=0, scores={"clarity": 4})
    assert take_in(study, 1, first).version == 1
    other = first | {"by": "page2", "scores": {"clarity": 1}}
    told = take_in(study, 1, other)
    assert (told.error, told.stale) == (answers.CHANGED, True)
    stored = room.stored(study, Person(1, "dr-a", Role.CLINICIAN, 1), told.code)
    assert stored is not None
    assert (stored["scores"], stored["version"]) == ({"clarity": 4}, 1)
    assert take_in(study, 1, other | {"base": 1}).version == 2


def test_a_crafted_number_never_makes_a_training_response_unanswerable(
    put: Put, study: Engine
) -> None:
    put(WIDE)
    assert take_in(study, 1, at_first(study, seq=LARGEST, base=LARGEST)).stale
    assert take_in(study, 1, at_first(study, seq=LARGEST)).version == 1
    told = take_in(study, 1, at_first(study, seq=1, base=1, scores={"clarity": 2}))
    assert (told.error, told.version) == ("", 2)
    assert take_in(study, 1, at_first(study, seq=2, base=2, submit=True)).moved


def test_a_passed_round_opens_the_real_work_once_its_outcome_is_read(
    put: Put, study: Engine
) -> None:
    put(WIDE)
    told = pass_round(study, 1)
    assert told.outcome.passed
    assert told.outcome.distance == pytest.approx((1 + 0 + 0 + 1.5 + 0 + 1) / 6)
    leave_outcome(study, 1, 1)
    assert stage(study, 1) is None


def test_a_failed_round_names_the_worst_criterion_and_begins_again_in_another_order(
    put: Put, study: Engine
) -> None:
    put(WIDE)
    before = stage(study, 1)
    told = fail_round(study, 1)
    assert not told.outcome.passed
    assert (told.misses[0].criterion, told.misses[0].distance, told.misses[0].lean) == (
        "clarity",
        3.5,
        -7,
    )
    leave_outcome(study, 1, 1)
    after = stage(study, 1)
    assert isinstance(before, Exercise)
    assert isinstance(after, Exercise)
    assert after.round_ == 2
    assert after.task.card.response != before.task.card.response
    assert pass_round(study, 1).outcome.passed
    with Session(study) as session:
        rounds = session.exec(select(Drill.round).order_by(col(Drill.id))).all()
    assert list(rounds) == [0, 0, 1, 1]


def test_after_two_failed_rounds_only_the_coordinator_lets_a_clinician_begin(
    put: Put, study: Engine
) -> None:
    put(WIDE)
    fail_round(study, 1)
    leave_outcome(study, 1, 1)
    assert fail_round(study, 1).halted
    leave_outcome(study, 1, 2)
    assert isinstance(stage(study, 1), Result)
    with pytest.raises(BadInput, match="--reason"):
        let_through(study, "dr-a", " ")
    with pytest.raises(Unknown, match="dr-x"):
        let_through(study, "dr-x", "talked")
    let_through(study, "dr-a", "talked it through")
    assert stage(study, 1) is None
    with pytest.raises(Conflict, match="let through"):
        let_through(study, "dr-a", "again")


def test_a_round_keeps_the_rule_it_was_judged_by(put: Put, study: Engine) -> None:
    put(WIDE)
    set_setting(study, "training_gap", "4")
    fail_round(study, 1)
    set_setting(study, "training_gap", "0.1")
    told = stage(study, 1)
    assert isinstance(told, Result)
    assert told.outcome.passed


def test_expert_scores_are_fixed_once_a_clinician_has_begun(put: Put, study: Engine) -> None:
    put(WIDE)
    answer(study, 1)
    with pytest.raises(Conflict, match="have begun training"):
        put(LONG)
    assert put(WIDE).unchanged == 6


def test_who_has_rated_before_there_was_training_goes_on(put: Put, study: Engine) -> None:
    task = next_task(study, 1)
    assert task is not None
    submit(study, 1, task.card.code, Reply(FULL), 1.0)
    put(WIDE)
    assert stage(study, 1) is None
    assert isinstance(stage(study, 2), Exercise)


def test_answers_and_outcomes_stand_in_a_chain_that_holds(put: Put, study: Engine) -> None:
    put(WIDE)
    pass_round(study, 1)
    done = acts(study, "expert scores imported", "training answered", "training passed")
    assert [one.action for one in done] == [
        "expert scores imported",
        "training answered",
        "training answered",
        "training passed",
    ]
    assert done[1].detail["scores"] == {"accuracy": 3, "completeness": 4, "clarity": 5}
    assert verify(study).findings == ()
    assert findings(study) == []


@pytest.mark.parametrize(
    ("act", "said"),
    [
        ("UPDATE expert SET score = 1 WHERE id = 1", "expert: the scores are not those"),
        ("DELETE FROM expert WHERE id = 6", "expert: the scores are not those"),
        ("UPDATE drill SET rater = 2 WHERE id = 1", "drill: answer 1 was changed"),
        ("""UPDATE drill SET scores = '{"accuracy": 1}' WHERE id = 2""", "answer 2 was changed"),
        ("DELETE FROM drill WHERE id = 1", "drill: answer 1 is gone"),
        ("INSERT INTO drill SELECT 9, rater, response, round, scores, at FROM drill LIMIT 1", "9"),
    ],
)
def test_a_change_behind_the_record_is_found(put: Put, study: Engine, act: str, said: str) -> None:
    put(WIDE)
    pass_round(study, 1)
    with study.begin() as connection:
        connection.exec_driver_sql(act)
    assert [one for one in findings(study) if said in one] == findings(study)
    assert len(findings(study)) == 1


def test_orders_differ_between_clinicians_and_rounds_and_codes_say_nothing() -> None:
    responses = list(range(1, 7))
    orders = {tuple(training.order("key", rater, responses, 0)) for rater in range(20)}
    assert len(orders) > 15
    for rater in range(20):
        for some in (responses[:2], responses):
            first, second = (training.order("key", rater, some, n) for n in (0, 1))
            assert sorted(first) == some
            assert first != second
    codes = [training.code("key", 1, one, 0) for one in range(200)]
    assert len({*codes}) == 200
    assert codes != sorted(codes)
    assert training.code("other", 1, 1, 0) != training.code("key", 1, 1, 0)


def test_differences_are_told_in_words_and_text_is_escaped() -> None:
    marks = (Mark("accuracy", 4, 2.5, "<b>dose</b>"), Mark("clarity", 3, 3, ""))
    one = Feedback(1, Card("c", "", "", ""), rubric("accuracy", "clarity"), marks, 1, 1, 2)
    told = training_messages.feedback(one)
    assert "you scored 1.5 points higher" in told
    assert "the same score" in told
    assert "<span>2: Point 2 of accuracy: as good as 2<br>3: Point 3 of" in told
    assert "&lt;b&gt;dose&lt;/b&gt;" in told
    assert (
        training_messages.points(0.7),
        training_messages.points(1),
        training_messages.number(1.04),
    ) == (
        "0.7 points",
        "1.0 point",
        "1.04",
    )


def test_the_command_imports_shows_and_lets_through(
    study: Engine, write: Write, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit):
            main(["training", "--db", url, *arguments])
        said = capsys.readouterr()
        return said.out + said.err

    assert "no training" in run()
    assert "6 expert scores imported" in run(str(write("experts.csv", WIDE)))
    assert "nothing changed" in run(str(write("experts.csv", WIDE)))
    fail_round(study, 1)
    leave_outcome(study, 1, 1)
    answer(study, 1)
    told = run()
    assert "2.75 not passed" in told
    assert "1 of 2 answered" in told
    assert "dr-a may begin" in run("--let", "dr-a", "--reason", "talked")
    assert "yes, let through" in run()


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


def test_a_change_of_training_is_found_by_verify_too(put: Put, study: Engine) -> None:
    put(LONG)
    with study.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE expert SET score = 1.5"))
    assert verify(study).findings
