"""What becomes of what the rating form sends: saved once, in order, or refused in plain words."""

import math
from contextlib import nullcontext
from typing import Any

import pytest
from kit.rating_study import (
    FULL,
    build,
    codes_of,
    message,
    person_of,
    row,
    rubric,
    scores_of,
    task_of,
)
from sqlalchemy import Engine, update
from sqlmodel import Session, col, select

from annotate.rating import answers
from annotate.rating.answers import LARGEST, take_in
from annotate.rating.room import entry
from data.card import Reply
from data.errors import Stale
from data.person import Person
from data.rubric import low_points
from data.schema import Assignment, Rating, Span, Submission
from data.study import room
from data.study.ratings import FormState, save_draft, submit
from data.study.settings import lock, set_setting


@pytest.fixture(scope="module")
def invited(study: Engine) -> Person:
    """Make the study once that each test has a copy of, and return dr-a."""
    rows = [row(1, "No fever."), row(2, "Has fever.")]
    codes = build(study, rows, ["dr-a", "dr-b"], rubric(name="rubric_hidden"))
    return person_of(study, codes["dr-a"])


def stored(engine: Engine, me: Person, code: str) -> dict[str, Any]:
    """Return what a page is shown of what is stored of a response."""
    task = task_of(engine, me.id, code)
    return entry(task)


@pytest.mark.parametrize("submit", [False, True])
def test_an_older_message_never_overwrites_a_newer_one(
    engine: Engine, me: Person, submit: bool
) -> None:
    code = codes_of(engine, "dr-a")[0]
    take_in(engine, me, message(code, 5, submit=submit))
    late = take_in(engine, me, message(code, 4, scores=FULL | {"clarity": 1}, submit=submit))
    assert (late.error, late.moved) == ("", submit)
    assert (stored(engine, me, code)["scores"], stored(engine, me, code)["seconds"]) == (FULL, 3)
    assert [score for *_, score in scores_of(engine, "dr-a")] == [*FULL.values()] * submit


def test_an_incomplete_submission_is_refused_and_says_what_is_missing(
    engine: Engine, me: Person
) -> None:
    sent = message(codes_of(engine, "dr-a")[0], scores={"clarity": 3}, submit=True)
    assert take_in(engine, me, sent).error == "not rated yet: accuracy, completeness"
    assert scores_of(engine, "dr-a") == []


@pytest.mark.parametrize("payload", ["nonsense", 7, {"code": 1}, {"code": ["x"], "seq": None}])
def test_what_is_no_message_is_answered_once(engine: Engine, me: Person, payload: object) -> None:
    assert take_in(engine, me, payload).error == answers.GARBLED


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
    assert not refused.moved
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
    task = room.next_task(engine, me.id).task
    assert task is not None
    assert task.draft["scores"] == {"clarity": 1}


def test_a_recusal_frees_the_place_and_needs_a_reason(engine: Engine, me: Person) -> None:
    first, second = codes_of(engine, "dr-a")
    assert take_in(engine, me, message(first, go="recuse")).error == "say why you recuse yourself"
    assert take_in(engine, me, message(first, 2, go="recuse", reason="patient")).error == ""
    task = room.next_task(engine, me.id).task
    assert task is not None
    assert task.card.code == second


def test_the_same_again_counts_as_the_newest_state(engine: Engine, me: Person) -> None:
    code = codes_of(engine, "dr-a")[0]
    take_in(engine, me, message(code, 1, submit=True))
    take_in(engine, me, message(code, 2, scores={"clarity": 1}))
    take_in(engine, me, message(code, 3, submit=True))
    task = task_of(engine, me.id, code)
    assert (task.revision, task.submitted_seq, task.draft["scores"]) == (1, 3, FULL)


@pytest.mark.parametrize("submit", [True, False])
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"scores": FULL | {"clarity": 99}}, answers.OFF),
        ({"scores": FULL | {"charm": 3}}, answers.OFF),
        ({"scores": FULL | {"clarity": 2.5}}, answers.GARBLED),
        ({"scores": FULL | {"clarity": True}}, answers.GARBLED),
        ({"scores": "full marks"}, answers.GARBLED),
        ({"comments": {"charm": "much"}}, "a comment belongs to no criterion"),
        ({"comments": {"charm": ""}}, "a comment belongs to no criterion"),
        ({"spans": [MARK | {"end": 99}]}, "not part of its text"),
        ({"spans": [MARK | {"start": 2}]}, "not part of its text"),
        ({"spans": [MARK | {"criterion": "charm"}]}, "belongs to no criterion"),
        (
            {"spans": [MARK | {"error": "ugly"}]},
            "this study's marks are wrong, unsupported, missing, unsafe, unclear",
        ),
        ({"spans": [MARK | {"side": "reference"}]}, answers.GARBLED),
        ({"spans": [MARK | {"severity": "fatal"}]}, answers.GARBLED),
        ({"spans": [MARK | {"linked": 1}]}, "linked to none on the other side"),
        ({"spans": [MARK | {"linked": 0}]}, "linked to none on the other side"),
        ({"spans": [MARK, MARK | {"linked": 0}]}, "linked to none on the other side"),
        ({"flags": ["loud"]}, answers.GARBLED),
        ({"go": "home"}, answers.GARBLED),
        *(({"seq": wrong}, answers.GARBLED) for wrong in (-1, 2**70)),
        ({"seconds": math.nan}, answers.GARBLED),
        ({"comment": "x" * 20_001}, answers.GARBLED),
        ({"rater": 2}, answers.GARBLED),
    ],
)
def test_what_cannot_be_is_refused_in_words_as_draft_and_as_submission(
    engine: Engine, me: Person, wrong: dict[str, object], says: str, submit: bool
) -> None:
    code = codes_of(engine, "dr-a")[0]
    answer = take_in(engine, me, message(code, **wrong, submit=submit))
    assert says in answer.error
    assert "rubric_hidden" not in answer.error
    assert (answer.version, answer.moved, answer.stale, answer.busy) == (None, False, False, False)
    assert scores_of(engine, "dr-a") == []
    assert (stored(engine, me, code)["version"], stored(engine, me, code)["scores"]) == (0, {})


def test_marks_of_both_texts_are_kept_with_their_notes_and_links(
    engine: Engine, me: Person
) -> None:
    missing = MARK | {"error": "missing", "side": "source", "start": 9, "end": 19, "linked": 1}
    dose = MARK | {"note": "no dose", "severity": "major", "linked": 0}
    code = codes_of(engine, "dr-a")[0]
    sent = message(code, spans=[missing, dose], comments={"clarity": "long"}, submit=True)
    assert take_in(engine, me, sent).error == ""
    with Session(engine) as session:
        spans = session.exec(select(Span).order_by(col(Span.id))).all()
        comments = dict(session.exec(select(Rating.criterion, Rating.comment)).all())
    told = [(one.side, one.text, one.error, one.severity, one.note, one.linked) for one in spans]
    assert told == [
        ("source", "Any fever?", "missing", "", "", 1),
        ("response", "No", "wrong", "major", "no dose", 0),
    ]
    assert comments == {"accuracy": "", "completeness": "", "clarity": "long"}


def test_what_is_left_of_a_rubric_that_was_changed_is_not_shown(engine: Engine, me: Person) -> None:
    code = codes_of(engine, "dr-a")[0]
    old = MARK | {"criterion": "charm", "side": "source"}
    draft = {
        "scores": {"clarity": 99, "accuracy": 2, "charm": 1},
        "comments": {"charm": "gone", "clarity": "kept"},
        "spans": [old, MARK | {"linked": 0}, MARK | {"side": "source"}, MARK | {"linked": 2}],
    }
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(update(Assignment).values(draft=draft))
    shown = stored(engine, me, code)
    assert shown["scores"] == {"accuracy": 2}
    assert shown["comments"] == {"clarity": "kept"}
    assert [one["linked"] for one in shown["spans"]] == [None, None, 1]
    again = {name: shown[name] for name in ("scores", "comments", "spans")}
    assert take_in(engine, me, message(code, **again)).error == ""


def test_the_same_message_again_changes_nothing_and_is_answered_as_stored(
    engine: Engine, me: Person
) -> None:
    first, second = codes_of(engine, "dr-a")
    draft = message(first, 1, base=0, scores={"clarity": 2})
    final = message(first, 2, base=1, submit=True)
    for sent, version in ((draft, 1), (final, None)):
        answered = [take_in(engine, me, sent | {"attempt": n}) for n in range(3)]
        assert {(one.error, one.stale, one.version) for one in answered} == {("", False, version)}
        assert {one.moved for one in answered} == {bool(sent["submit"])}
    assert len(scores_of(engine, "dr-a")) == len(FULL)
    assert stored(engine, me, first)["version"] == 2
    assert stored(engine, me, second)["version"] == 0
    lock(engine, "coordinator")
    assert take_in(engine, me, final | {"attempt": 9}).error == ""


def test_an_empty_comment_on_a_criterion_says_nothing_of_the_whole(
    engine: Engine, me: Person
) -> None:
    empty = {"scores": {}, "comments": {"clarity": ""}, "flags": ["not_enough_context"]}
    sent = message(codes_of(engine, "dr-a")[0], submit=True, **empty)
    assert take_in(engine, me, sent).error == ""
    with Session(engine) as session:
        assert session.exec(select(Submission.comment)).all() == [""]


@pytest.mark.parametrize("submit", [True, False])
@pytest.mark.parametrize("crafted", [{"seq": LARGEST}, {"base": LARGEST}])
def test_a_crafted_number_never_makes_ones_own_response_unsubmittable(
    engine: Engine, me: Person, crafted: dict[str, int], submit: bool
) -> None:
    code = codes_of(engine, "dr-a")[0]
    take_in(engine, me, message(code, submit=submit) | crafted)
    version = stored(engine, me, code)["version"]
    for seq, by, score in ((1, "page2", 3), (1, "page1", 2), (2, "page1", 1)):
        scores = FULL | {"clarity": score}
        sent = message(code, seq, base=version, by=by, scores=scores, submit=True)
        assert take_in(engine, me, sent).error == ""
        assert scores_of(engine, "dr-a")[-1][2] == score
        version = stored(engine, me, code)["version"]
        assert version < 10


@pytest.mark.parametrize("submitted", [0, 7, LARGEST])
def test_a_response_at_the_last_number_of_a_state_can_be_drafted_and_submitted(
    engine: Engine, me: Person, submitted: int
) -> None:
    code = codes_of(engine, "dr-a")[0]
    if submitted:
        assert take_in(engine, me, message(code, submit=True)).error == ""
    with engine.execution_options(writes=True).begin() as connection:
        at_last = update(Assignment).where(col(Assignment.code) == code)
        connection.execute(at_last.values(draft_seq=LARGEST, submitted_seq=submitted))
    draft = take_in(engine, me, message(code, 1, base=LARGEST, by="p", scores={"clarity": 2}))
    assert (draft.error, draft.version) == ("", 1)
    task = task_of(engine, me.id, code)
    assert task.draft_seq > task.submitted_seq, "it is not said that this was not submitted"
    final = message(code, 2, base=1, by="p", scores=FULL | {"clarity": 2}, submit=True)
    assert take_in(engine, me, final).error == ""
    assert scores_of(engine, "dr-a")[-1][2] == 2


@pytest.mark.parametrize(
    ("comment", "drafted", "refused"),
    [("", False, False), ("3 mg.", False, True), ("", True, True)],
)
def test_what_another_page_submitted_is_stored_once_and_replaced_by_none_that_does_not_know_it(
    engine: Engine, me: Person, comment: str, drafted: bool, refused: bool
) -> None:
    def state(page: str, seq: int, base: int) -> FormState:
        return FormState({"by": page, "seq": seq}, 1, base)

    code = codes_of(engine, "dr-a")[0]
    assert submit(engine, me.id, code, Reply(FULL), 1, state("first", 1, 0))
    if drafted:
        save_draft(engine, me.id, code, state("first", 2, 1))
    with pytest.raises(Stale) if refused else nullcontext():
        assert not submit(
            engine, me.id, code, Reply(FULL, comment=comment), 1, state("other", 1, 0)
        )
    assert len(scores_of(engine, "dr-a")) == len(FULL)
