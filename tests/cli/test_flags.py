"""What clinicians flag is answered, and they see it; the answer names no model."""

import json
from pathlib import Path

import pytest
from kit.studies import Run
from sqlalchemy import Engine
from sqlmodel import Session, select

from data.card import Reply
from data.errors import BadInput, NotAllowed, Unknown
from data.person import OPERATOR, Person
from data.schema import Remark, Role
from data.study.assignments import (
    Slot,
    answer_flag,
    answer_seen,
    answers_for,
    assign,
    flags,
    recuse,
)
from data.study.export import reading_rows
from data.study.people import invite, workloads
from data.study.ratings import submit
from data.study.room import next_task
from data.study.verify import verify
from medjury.services.adjudication import answer

SCORES = {"accuracy": 4, "completeness": 3, "clarity": 5}
ODD = Reply(SCORES, comment="cut off?", flags=("flag",))


@pytest.fixture
def flagged(small_study: Engine) -> Engine:
    """Make a study in which dr_a flagged the first response and gave the second back."""
    invite(small_study, ["dr_a", "dr_b"])
    assign(small_study, [Slot("dr_a", n, n) for n in (1, 2)] + [Slot("dr_b", 3, 0)], seed=0)
    submit(small_study, 1, code(small_study), ODD, 5)
    recuse(small_study, 1, code(small_study), "known to me")
    return small_study


def code(engine: Engine, rater: int = 1) -> str:
    shown = next_task(engine, rater).task
    assert shown is not None
    return shown.card.code


def test_a_flag_waits_for_an_answer_and_a_recusal_does_not(flagged: Engine) -> None:
    [found] = flags(OPERATOR, flagged)
    assert (found.response_id, found.rater, found.flag) == ("r11", "dr_a", "flag")
    assert (found.text, found.answers, found.seen) == ("cut off?", (), False)
    with pytest.raises(Unknown, match="flag 2"):
        answer(OPERATOR, flagged, 2, "thank you")


def test_the_clinician_gets_the_answer_and_the_coordinator_learns_that_it_was_seen(
    flagged: Engine,
) -> None:
    [flag] = flags(OPERATOR, flagged)
    made = answer(OPERATOR, flagged, flag.id, "  It was cut in the source too.  ")
    [given] = answers_for(flagged, 1)
    assert (given.flag, given.text) == ("flag", "cut off?")
    assert (given.answer, given.seen) == ("It was cut in the source too.", None)
    assert given.answer_id == made
    assert answers_for(flagged, 2) == ()
    with pytest.raises(NotAllowed):
        answer_seen(flagged, 2, made)
    with pytest.raises(NotAllowed):
        answer_seen(flagged, 1, flag.id)
    assert answer_seen(flagged, 1, made)
    assert not answer_seen(flagged, 1, made)
    [given] = answers_for(flagged, 1)
    assert given.seen is not None
    [flag] = flags(OPERATOR, flagged)
    assert (flag.answers, flag.seen) == (("It was cut in the source too.",), True)


def test_a_second_answer_is_added_and_has_yet_to_be_seen(flagged: Engine) -> None:
    [flag] = flags(OPERATOR, flagged)
    answer_seen(flagged, 1, answer(OPERATOR, flagged, flag.id, "one"))
    answer(OPERATOR, flagged, flag.id, "two")
    assert [one.answer for one in answers_for(flagged, 1)] == ["one", "two"]
    [flag] = flags(OPERATOR, flagged)
    assert (flag.answers, flag.seen) == (("one", "two"), False)


@pytest.mark.parametrize(
    "text", ["It is model-one's habit.", "Model One does so.", "ChatGPT likes that", "by Gemini"]
)
def test_an_answer_that_names_a_model_is_refused(flagged: Engine, text: str) -> None:
    [flag] = flags(OPERATOR, flagged)
    with pytest.raises(BadInput, match="who reads it rates blind"):
        answer(OPERATOR, flagged, flag.id, text)
    assert answers_for(flagged, 1) == ()


@pytest.mark.parametrize("text", ["", "   ", "x" * 2001])
def test_an_answer_has_words_and_not_too_many(flagged: Engine, text: str) -> None:
    [flag] = flags(OPERATOR, flagged)
    with pytest.raises(BadInput, match="1 to 2,000"):
        answer_flag(flagged, "coordinator", flag.id, text)


def test_only_a_coordinator_answers_and_no_clinician_lists_flags(flagged: Engine) -> None:
    [flag] = flags(OPERATOR, flagged)
    researcher = Person(7, "r", Role.RESEARCHER)
    [seen] = flags(researcher, flagged)
    assert seen.rater == "clinician 1"
    for person in (researcher, Person(8, "dr_a", Role.CLINICIAN, 1)):
        with pytest.raises(NotAllowed):
            answer(person, flagged, flag.id, "thank you")
    with pytest.raises(NotAllowed):
        flags(Person(8, "dr_a", Role.CLINICIAN, 1), flagged)


def test_an_answer_is_in_the_record_and_changes_nothing_of_what_was_said(flagged: Engine) -> None:
    [flag] = flags(OPERATOR, flagged)
    before = list(reading_rows(flagged)), workloads(OPERATOR, flagged)
    answer_seen(flagged, 1, answer(OPERATOR, flagged, flag.id, "thank you"))
    assert (list(reading_rows(flagged)), workloads(OPERATOR, flagged)) == before
    given = answers_for(flagged, 1)[0].code
    assert not submit(flagged, 1, given, ODD, 9)  # the same again is no revision
    assert verify(flagged).findings == ()
    with Session(flagged) as session:
        one = session.exec(select(Remark).where(Remark.kind == "answer")).one()
        one.text = "no thanks"
        session.add(one)
        session.commit()
    [found] = verify(flagged).findings
    assert found.startswith("remark 3: changed since event ")


def test_the_command_lists_flags_and_answers_them(
    flagged: Engine, run: Run, tmp_path: Path
) -> None:
    code, said, _ = run("rate", "flags")
    assert code == 0
    assert all(word in said for word in ("r11", "dr_a", "cut off?"))
    [flag] = flags(OPERATOR, flagged)
    assert run("rate", "flags", "--answer", str(flag.id), "--text", "It is whole.")[0] == 0
    to = tmp_path / "flags.json"
    assert run("rate", "flags", "--json", str(to))[0] == 0
    [found] = json.loads(to.read_text("utf-8"))["flags"]
    assert (found["id"], found["answers"], found["seen"]) == (flag.id, ["It is whole."], False)
    code, _, told = run("rate", "flags", "--answer", str(flag.id), "--text", "ask model-two")
    assert code == 2
    assert "names what may be a model" in told
    assert run("rate", "flags", "--answer", str(flag.id))[0] == 2
