"""Training: experts' scores, what is shown, entered, passed, repeated and told, who is let through, the record."""

import pytest
from kit.browsers import CARLA, labelled, said
from kit.rating_study import FULL, build, message, row, rubric, scores_of, task_of
from kit.study_place import fill
from sqlmodel import Session, col, select

from annotate.rating import answers, room, text_html
from annotate.rating.answers import LARGEST
from annotate.rating.answers import take_in_training as take_in
from annotate.rating.words import sayer
from annotate.screens.setup.training import MOST_ROUNDS
from data import training
from data.card import Card, Reply
from data.database import open_study
from data.errors import BadInput, BadRow, Conflict, MedjuryError, NotAllowed, Unknown
from data.importers.ratings import RatingFile, expert_rows
from data.importers.table import TableFile
from data.person import Person
from data.schema import Drill, Expert, Role, Setting, Span
from data.study.assignments import design_items
from data.study.calls import juror_cards
from data.study.frames import responses_frame
from data.study.ratings import import_ratings, submit
from data.study.responses import import_responses
from data.study.room import Exercise, Feedback, RoundResult, ScoredCriterion, situation, trainees
from data.study.settings import set_setting
from data.study.standing import benchmarks
from data.study.training import (
    ExpertsAdded,
    answer_drill,
    import_experts,
    leave_feedback,
    leave_outcome,
    let_through,
)
from data.study.verify import acts, verify

ENGLISH = sayer("en")
DR_A = Person(1, "dr-a", Role.CLINICIAN, 1)
MARK = {"criterion": "accuracy", "start": 0, "end": 8, "error": "unsafe", "note": "no dose"}


WIDE = """response_id,accuracy,completeness,clarity,why
train-1,2,4,5,The fever is wrong.
train-2,4.5,4,4,
"""
LONG = "response_id,criterion,score,why\n" + "".join(
    f"train-{n},{name},{score},\n"
    for n in (1, 2)
    for name, score in (("accuracy", 2), ("completeness", 4), ("clarity", 5))
)
FAR = {"accuracy": 5, "completeness": 1, "clarity": 1}  # from the experts
CLOSE = {"accuracy": 3, "completeness": 4, "clarity": 5}


@pytest.fixture(scope="module")
def made(tmp_path_factory, study_in):
    """Make the study once that each test has a copy of."""
    engine = open_study(study_in(tmp_path_factory.mktemp("made")), create=True)
    trained = [row(n + 7, f"Practice {n}.", response_id=f"train-{n}") for n in (1, 2)]
    import_responses(engine, trained, lambda _: rubric(name="rubric_hidden"))
    build(engine, [row(1, "Real 1."), row(2, "Real 2.")], ["dr-a", "dr-b"], rubric())
    return engine


@pytest.fixture
def study(engine, made):
    """Two training responses, and two that dr-a and dr-b are to rate."""
    fill(engine, made)
    return engine


@pytest.fixture
def put(study, write):
    """Import expert scores from the text of a CSV file."""
    return lambda text: import_experts(study, expert_rows(TableFile(write("experts.csv", text))))


def answer(engine, rater, scores):
    """Answer the training response a clinician is at, and read the feedback."""
    answer_drill(engine, rater, exercise(engine, rater).task.card.code, Reply(FULL | scores), {})
    leave_feedback(engine, rater, situation(engine, rater).stage.drill)


def outcome_of(engine, rater, scores):
    """Answer all of a round alike, and return its outcome."""
    for _ in range(2):
        answer(engine, rater, scores)
    told = situation(engine, rater).stage
    assert isinstance(told, RoundResult)
    return told


@pytest.fixture
def trained(study, put):
    """Return the study once experts' scores of its training responses are in."""
    put(WIDE)
    return study


def exercise(engine, rater=1):
    now = situation(engine, rater).stage
    assert isinstance(now, Exercise)
    return now


def at_first(engine, **other):
    return message(exercise(engine).task.card.code, **other)


def test_training_responses_are_in_no_design_and_in_no_agreement(put, study):
    assert (situation(study, 1).stage, trainees(study)) == (None, [])
    put(WIDE)
    assert [one.response_id for one in design_items(study)] == ["resp-hidden-1", "resp-hidden-2"]
    assert list(responses_frame(study)["response_id"]) == ["resp-hidden-1", "resp-hidden-2"]
    outcome_of(study, 1, CLOSE)
    assert scores_of(study, "dr-a") == []


def test_an_answer_is_followed_by_the_experts_scores_and_reasons(trained):
    now = exercise(trained)
    assert (now.number, now.total, now.round_) == (1, 2, 1)
    answer_drill(trained, 1, now.task.card.code, Reply(FULL), {})
    told = situation(trained, 1).stage
    assert isinstance(told, Feedback)
    assert told.card.response == now.task.card.response
    first = told.card.response == "Practice 1."
    expert, why = (2.0, "The fever is wrong.") if first else (4.5, "")
    assert told.marks[0] == ScoredCriterion("accuracy", 4, expert, why)


def test_where_the_order_counts_a_constant_rater_does_not_pass(trained):
    set_setting(trained, "training_order", "true")
    told = outcome_of(trained, 1, CLOSE)
    assert (told.outcome.distance <= told.outcome.gap, told.outcome.passed) == (True, False)
    assert "was not clearly your lowest" in text_html.training_result(told, ENGLISH)


def test_the_worst_is_below_all_others_or_it_is_not():
    for experts, own, is_lowest in (
        *(([2.0, 4.0, 5.0], [3, 4, 4], True), ([2.0, 4.0, 5.0], [4, 4, 4], False)),
        *(([2.0, 4.0, 5.0], [3, 3, 5], False), ([3.0, 3.0], [4, 1], True)),
    ):
        both = ({n: {"a": score} for n, score in enumerate(each)} for each in (own, experts))
        assert training.is_worst_lowest(*both) == is_lowest


def test_a_failed_round_names_the_worst_criterion_and_begins_again_in_another_order(trained):
    before = exercise(trained)
    told = outcome_of(trained, 1, FAR)
    worst = told.misses[0]
    assert (told.outcome.passed, worst.criterion, worst.distance, worst.lean) == (
        *(False, "clarity", 3.5, -7),
    )
    leave_outcome(trained, 1, 1)
    after = exercise(trained)
    assert after.round_ == 2
    assert after.task.card.response != before.task.card.response
    assert outcome_of(trained, 1, CLOSE).outcome.passed
    with Session(trained) as session:
        rounds = session.exec(select(Drill.round).order_by(col(Drill.id))).all()
    assert list(rounds) == [0, 0, 1, 1]


def test_after_two_failed_rounds_only_the_coordinator_lets_a_clinician_begin(trained):
    outcome_of(trained, 1, FAR)
    leave_outcome(trained, 1, 1)
    assert outcome_of(trained, 1, FAR).halted
    leave_outcome(trained, 1, 2)
    assert isinstance(situation(trained, 1).stage, RoundResult)
    with pytest.raises(BadInput, match="a reason is needed"):
        let_through(trained, "dr-a", " ")
    with pytest.raises(Unknown, match="dr-x"):
        let_through(trained, "dr-x", "talked")
    let_through(trained, "dr-a", "talked it through")
    assert situation(trained, 1).stage is None
    with pytest.raises(Conflict, match="let through"):
        let_through(trained, "dr-a", "again")


def test_a_round_keeps_the_rule_it_was_judged_by(trained):
    set_setting(trained, "training_gap", "4")
    outcome_of(trained, 1, FAR)
    set_setting(trained, "training_gap", "0.1")
    told = situation(trained, 1).stage
    assert isinstance(told, RoundResult)
    assert told.outcome.passed


def test_who_has_rated_before_there_was_training_goes_on(put, study):
    task = task_of(study, 1)
    submit(study, 1, task.card.code, Reply(FULL), 1.0)
    put(WIDE)
    assert situation(study, 1).stage is None
    assert isinstance(situation(study, 2).stage, Exercise)


def test_orders_differ_between_clinicians_and_rounds_and_codes_say_nothing():
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


def test_feedback_tells_differences_in_points_and_escapes_text():
    marks = (
        ScoredCriterion("accuracy", 4, 2.5, "<b>dose</b>"),
        ScoredCriterion("clarity", 3, 3, ""),
    )
    one = Feedback(1, Card("c", "", "", ""), rubric("accuracy", "clarity"), "", marks, 1, 1, 2)
    told = text_html.training_feedback(one, ENGLISH)
    anchors = "<span>2: Point 2 of accuracy: as good as 2<br>3: Point 3 of"
    for words in ("1.5 points higher", anchors, "&lt;b&gt;dose&lt;/b&gt;"):
        assert words in told
    assert [text_html.in_points(gap, ENGLISH) for gap in (0.7, 1)] == ["0.7 points", "1.0 point"]
    assert text_html.decimals(1.04) == "1.04"


def test_the_same_answer_three_times_is_one_and_another_ones_code_is_refused(trained):
    code, other = exercise(trained).task.card.code, exercise(trained, 2).task.card.code
    found = [answer_drill(trained, 1, code, Reply(FULL), {}) for _ in range(3)]
    assert found == [True, False, False]
    with pytest.raises(NotAllowed):
        answer_drill(trained, 1, other, Reply(FULL), {})
    with Session(trained) as session:
        assert len(session.exec(select(Drill)).all()) == 1


def test_a_draft_and_a_comment_are_kept_and_an_older_draft_is_ignored(trained):
    now = exercise(trained)
    entered = {"code": now.task.card.code, "attempt": 0, "by": "page1", "seconds": 3}
    newer = entered | {"seq": 2, "scores": {"accuracy": 3}, "comment": "dose?", "submit": False}
    assert take_in(trained, 1, newer).error == ""
    assert take_in(trained, 1, newer | {"seq": 1, "comment": ""}).error == ""
    again = exercise(trained)
    assert (again.task.draft["scores"], again.task.draft["comment"]) == ({"accuracy": 3}, "dose?")
    final = newer | {"seq": 3, "scores": FULL, "submit": True}
    assert [take_in(trained, 1, final).error for _ in range(2)] == ["", ""]
    with Session(trained) as session:
        assert "dose?" in session.get_one(Setting, "training:1").value


def test_training_takes_marks_notes_links_and_flags_like_the_real_form(trained):
    source = MARK | {"error": "missing", "side": "source", "linked": 1, "severity": "major"}
    entered = {
        "spans": [source, MARK | {"linked": 0}],
        "flags": ["flag"],
        "comments": {"clarity": "long"},
    }
    assert take_in(trained, 1, at_first(trained, **entered)).error == ""
    shown = room.shown(trained, DR_A)
    kept = shown["entry"]
    assert [one["note"] for one in kept["spans"]] == ["no dose", "no dose"]
    assert (kept["flags"], kept["comments"]) == (["flag"], {"clarity": "long"})
    assert (shown["training"], shown["why"]["points"], shown["previous"]) == (True, [1, 2], False)
    assert take_in(trained, 1, at_first(trained, seq=2, submit=True, **entered)).error == ""
    with Session(trained) as session:
        assert session.exec(select(Span)).all() == []
        standing = session.get_one(Setting, "training:1").value
    assert all(one in standing for one in ("no dose", '"flag"', '"linked"', "long"))


@pytest.mark.parametrize("submit", [True, False])
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"scores": FULL | {"clarity": 99}}, answers.OFF),
        ({"comments": {"charm": "much"}}, "a comment belongs to no criterion"),
        ({"spans": [MARK | {"end": 99}]}, "not part of its text"),
    ],
)
def test_what_cannot_be_is_refused_in_training_too(trained, wrong, says, submit):
    told = take_in(trained, 1, at_first(trained, submit=submit, **wrong))
    now = exercise(trained).task
    assert (says in told.error, told.moved, now.draft, now.draft_seq) == (True, False, {}, 0)


def test_training_asks_why_like_the_real_form(trained):
    low = at_first(trained, scores=FULL | {"accuracy": 2}, submit=True)
    told = take_in(trained, 1, low)
    assert told.error.startswith("Accuracy is low: write one line why")
    assert isinstance(situation(trained, 1).stage, Exercise)
    assert take_in(trained, 1, low | {"seq": 2, "comment": "dose"}).error == ""
    assert isinstance(situation(trained, 1).stage, Feedback)
    set_setting(trained, "ask_why", "false")
    leave_feedback(trained, 1, 1)
    assert take_in(trained, 1, at_first(trained, scores=FULL | {"accuracy": 2}, submit=True)).moved


def test_a_training_response_cannot_be_given_back(trained):
    told = take_in(trained, 1, at_first(trained, go="recuse", reason="I know the patient"))
    assert (told.error, told.moved) == (answers.NO_RECUSAL, False)
    assert isinstance(situation(trained, 1).stage, Exercise)


def test_a_stale_page_is_refused_in_training_and_told_what_is_stored(trained):
    first = at_first(trained, base=0, scores={"clarity": 4})
    assert take_in(trained, 1, first).version == 1
    other = first | {"by": "page2", "scores": {"clarity": 1}}
    told = take_in(trained, 1, other)
    assert (told.error, told.stale) == (answers.CHANGED, True)
    stored = room.stored(trained, DR_A, told.code)
    assert (stored["scores"], stored["version"]) == ({"clarity": 4}, 1)
    assert take_in(trained, 1, other | {"base": 1}).version == 2


def test_a_crafted_number_never_makes_a_training_response_unanswerable(trained):
    assert take_in(trained, 1, at_first(trained, seq=LARGEST, base=LARGEST)).stale
    assert take_in(trained, 1, at_first(trained, seq=LARGEST)).version == 1
    told = take_in(trained, 1, at_first(trained, seq=1, base=1, scores={"clarity": 2}))
    assert (told.error, told.version) == ("", 2)
    assert take_in(trained, 1, at_first(trained, seq=2, base=2, submit=True)).moved


def test_the_screen_shows_how_each_clinician_stands_and_lets_one_begin_with_a_reason(
    screen, study, put
):
    page = screen("setup.training")
    assert "File of experts" in said(page)
    put(WIDE)
    for number in range(1, MOST_ROUNDS + 1):
        outcome_of(study, 1, FAR)
        leave_outcome(study, 1, number)
    text = said(page)
    assert ("not passed" in text, "no: did not pass" in text) == (True, True)
    page.selectbox[0].select("dr-a")
    for reason, told in (("", "a reason is needed"), ("She trains the others.", "dr-a may begin.")):
        page.text_input[0].input(reason)
        labelled(page.button, "Let them begin").click()
        assert told in said(page)
    (waived,) = acts(study, "training waived")
    assert (waived.actor, waived.detail["reason"]) == (CARLA.actor, "She trains the others.")


def test_long_and_wide_files_are_read_and_the_same_file_again_changes_nothing(put):
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
def test_a_wrong_row_is_named_and_nothing_of_the_file_is_stored(put, study, text, said):
    with pytest.raises(MedjuryError, match="nothing was imported") as error:
        put(text)
    assert said in str(error.value)
    with Session(study) as session:
        assert session.exec(select(Expert)).all() == []
    assert situation(study, 1).stage is None


def test_expert_scores_are_fixed_once_a_clinician_has_begun(put, trained):
    answer(trained, 1, FULL)
    with pytest.raises(Conflict, match="have begun training"):
        put(LONG)
    assert put(WIDE).unchanged == 6


def test_a_passed_round_opens_the_real_work_once_its_outcome_is_read_and_stands_in_the_chain(
    trained,
):
    told = outcome_of(trained, 1, CLOSE)
    assert told.outcome.passed
    assert told.outcome.distance == pytest.approx((1 + 0 + 0 + 1.5 + 0 + 1) / 6)
    leave_outcome(trained, 1, 1)
    assert situation(trained, 1).stage is None
    names = ["expert scores imported", *["training answered"] * 2, "training passed"]
    done = acts(trained, *set(names))
    assert [one.action for one in done] == names
    assert done[1].detail["scores"] == CLOSE
    assert verify(trained).findings == ()


def test_the_command_imports_shows_and_lets_through(study, write, run):
    def told(*arguments: str) -> str:
        return "".join(run("rate", "training", "--db", str(study.url), *arguments)[1:])

    experts = str(write("experts.csv", WIDE))
    assert "no training" in told()
    assert "6 expert scores imported" in told(experts)
    assert "nothing changed" in told(experts)
    outcome_of(study, 1, FAR)
    leave_outcome(study, 1, 1)
    answer(study, 1, FULL)
    assert "2.75 not passed" in told()
    assert "1 of 2 answered" in told()
    assert "dr-a may begin" in told("--let", "dr-a", "--reason", "talked")
    assert "yes, let through" in told()


def test_jurors_are_not_paid_for_training_and_ratings_of_it_are_refused(put, study, write):
    put(LONG)
    views = {one.name: one for one in benchmarks(study)}
    heard = [one for view in views.values() for one in juror_cards(study, view.name, view.rubric)]
    assert len(heard) == sum(view.responses for view in views.values()) == 2
    rows = "response_id,rater,kind,criterion,score\ntrain-1,dr-z,clinician,clarity,3\n"
    with pytest.raises(BadRow, match="a training response"):
        import_ratings(study, RatingFile(TableFile(write("ratings.csv", rows))))
