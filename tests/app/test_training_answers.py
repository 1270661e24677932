"""What a clinician enters in training: kept, checked and refused like the real form."""

import pytest
from kit.rating_study import FULL, message
from kit.trained_study import WIDE, Put, made, put, study
from sqlalchemy import Engine
from sqlmodel import Session, select

from annotate.rating import answers, room
from annotate.rating.answers import LARGEST
from annotate.rating.answers import take_in_training as take_in
from data.card import Reply
from data.errors import NotAllowed
from data.person import Person
from data.schema import Drill, Role, Setting, Span
from data.study.room import Exercise, Feedback, situation
from data.study.settings import set_setting
from data.study.training import answer_drill, leave_feedback

__all__ = ["made", "put", "study"]

MARK = {"criterion": "accuracy", "start": 0, "end": 8, "error": "unsafe", "note": "no dose"}


def at_first(engine: Engine, **other: object) -> dict[str, object]:
    """Return a message about the training response that a clinician is at."""
    now = situation(engine, 1).stage
    assert isinstance(now, Exercise)
    return message(now.task.card.code, **other)


def test_the_same_answer_three_times_is_one_and_another_ones_code_is_refused(
    put: Put, study: Engine
) -> None:
    put(WIDE)
    now, other = situation(study, 1).stage, situation(study, 2).stage
    assert isinstance(now, Exercise)
    assert isinstance(other, Exercise)
    code = now.task.card.code
    assert [answer_drill(study, 1, code, Reply(FULL), {}) for _ in range(3)] == [True, False, False]
    with pytest.raises(NotAllowed):
        answer_drill(study, 1, other.task.card.code, Reply(FULL), {})
    with Session(study) as session:
        assert len(session.exec(select(Drill)).all()) == 1


def test_a_draft_and_a_comment_are_kept_and_an_older_draft_is_ignored(
    put: Put, study: Engine
) -> None:
    put(WIDE)
    now = situation(study, 1).stage
    assert isinstance(now, Exercise)
    entered = {"code": now.task.card.code, "attempt": 0, "by": "page1", "seconds": 3}
    newer = entered | {"seq": 2, "scores": {"accuracy": 3}, "comment": "dose?", "submit": False}
    assert take_in(study, 1, newer).error == ""
    assert take_in(study, 1, newer | {"seq": 1, "comment": ""}).error == ""
    again = situation(study, 1).stage
    assert isinstance(again, Exercise)
    assert (again.task.draft["scores"], again.task.draft["comment"]) == ({"accuracy": 3}, "dose?")
    final = newer | {"seq": 3, "scores": FULL, "submit": True}
    assert [take_in(study, 1, final).error for _ in range(2)] == ["", ""]
    with Session(study) as session:
        kept = session.connection().exec_driver_sql(
            "SELECT value FROM setting WHERE key = 'training:1'"
        )
        assert "dose?" in kept.scalar_one()


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
    now = situation(study, 1).stage
    assert isinstance(now, Exercise)
    assert (now.task.draft, now.task.draft_seq) == ({}, 0)


def test_training_asks_why_like_the_real_form(put: Put, study: Engine) -> None:
    put(WIDE)
    low = at_first(study, scores=FULL | {"accuracy": 2}, submit=True)
    told = take_in(study, 1, low)
    assert told.error.startswith("Accuracy is low: write one line why")
    assert isinstance(situation(study, 1).stage, Exercise)
    assert take_in(study, 1, low | {"seq": 2, "comment": "dose"}).error == ""
    assert isinstance(situation(study, 1).stage, Feedback)
    set_setting(study, "ask_why", "false")
    leave_feedback(study, 1, 1)
    assert take_in(study, 1, at_first(study, scores=FULL | {"accuracy": 2}, submit=True)).moved


def test_a_training_response_cannot_be_given_back(put: Put, study: Engine) -> None:
    put(WIDE)
    told = take_in(study, 1, at_first(study, go="recuse", reason="I know the patient"))
    assert (told.error, told.moved) == (answers.NO_RECUSAL, False)
    assert isinstance(situation(study, 1).stage, Exercise)


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
