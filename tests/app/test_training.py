"""The rounds of training: what is shown, passed, failed, repeated and told."""

import pytest
from kit.rating_study import FULL, rubric, scores_of
from kit.trained_study import WIDE, Put, fail_round, made, pass_round, put, study
from sqlalchemy import Engine
from sqlmodel import Session, col, select

from annotate.rating import text_html
from annotate.rating.words import sayer
from data import training
from data.card import Card, Reply
from data.errors import BadInput, Conflict, Unknown
from data.schema import Drill
from data.study.frames import responses_frame
from data.study.ratings import submit
from data.study.room import (
    Exercise,
    Feedback,
    RoundResult,
    ScoredCriterion,
    next_task,
    situation,
    trainees,
)
from data.study.settings import set_setting
from data.study.standing import design_items
from data.study.training import answer_drill, leave_outcome, let_through

__all__ = ["made", "put", "study"]

ENGLISH = sayer("en")


def test_a_study_without_expert_scores_has_no_training(study: Engine) -> None:
    assert situation(study, 1).stage is None
    assert trainees(study) == []


def test_training_responses_are_in_no_design_and_in_no_agreement(put: Put, study: Engine) -> None:
    put(WIDE)
    assert [one.response_id for one in design_items(study)] == ["resp-hidden-1", "resp-hidden-2"]
    assert list(responses_frame(study)["response_id"]) == ["resp-hidden-1", "resp-hidden-2"]
    pass_round(study, 1)
    assert scores_of(study, "dr-a") == []


def test_an_answer_is_followed_by_the_experts_scores_and_reasons(put: Put, study: Engine) -> None:
    put(WIDE)
    now = situation(study, 1).stage
    assert isinstance(now, Exercise)
    assert (now.number, now.total, now.round_) == (1, 2, 1)
    answer_drill(study, 1, now.task.card.code, Reply(FULL), {})
    told = situation(study, 1).stage
    assert isinstance(told, Feedback)
    assert told.card.response == now.task.card.response
    first = told.card.response == "Practice 1."
    expert, why = (2.0, "The fever is wrong.") if first else (4.5, "")
    assert told.marks[0] == ScoredCriterion("accuracy", 4, expert, why)


def test_a_passed_round_opens_the_real_work_once_its_outcome_is_read(
    put: Put, study: Engine
) -> None:
    put(WIDE)
    told = pass_round(study, 1)
    assert told.outcome.passed
    assert told.outcome.distance == pytest.approx((1 + 0 + 0 + 1.5 + 0 + 1) / 6)
    leave_outcome(study, 1, 1)
    assert situation(study, 1).stage is None


def test_where_the_order_counts_a_constant_rater_does_not_pass(put: Put, study: Engine) -> None:
    put(WIDE)
    set_setting(study, "training_order", "true")
    told = pass_round(study, 1)
    assert told.outcome.distance <= told.outcome.gap
    assert not told.outcome.passed
    assert "was not clearly your lowest" in text_html.training_result(told, ENGLISH)


def test_the_worst_is_below_all_others_or_it_is_not() -> None:
    experts = {1: {"a": 2.0}, 2: {"a": 4.0}, 3: {"a": 5.0}}
    assert training.is_worst_lowest({1: {"a": 3}, 2: {"a": 4}, 3: {"a": 4}}, experts)
    assert not training.is_worst_lowest({1: {"a": 4}, 2: {"a": 4}, 3: {"a": 4}}, experts)
    assert not training.is_worst_lowest({1: {"a": 3}, 2: {"a": 3}, 3: {"a": 5}}, experts)
    assert training.is_worst_lowest({1: {"a": 4}, 2: {"a": 1}}, {1: {"a": 3.0}, 2: {"a": 3.0}})


def test_a_failed_round_names_the_worst_criterion_and_begins_again_in_another_order(
    put: Put, study: Engine
) -> None:
    put(WIDE)
    before = situation(study, 1).stage
    told = fail_round(study, 1)
    assert not told.outcome.passed
    assert (told.misses[0].criterion, told.misses[0].distance, told.misses[0].lean) == (
        "clarity",
        3.5,
        -7,
    )
    leave_outcome(study, 1, 1)
    after = situation(study, 1).stage
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
    assert isinstance(situation(study, 1).stage, RoundResult)
    with pytest.raises(BadInput, match="a reason is needed"):
        let_through(study, "dr-a", " ")
    with pytest.raises(Unknown, match="dr-x"):
        let_through(study, "dr-x", "talked")
    let_through(study, "dr-a", "talked it through")
    assert situation(study, 1).stage is None
    with pytest.raises(Conflict, match="let through"):
        let_through(study, "dr-a", "again")


def test_a_round_keeps_the_rule_it_was_judged_by(put: Put, study: Engine) -> None:
    put(WIDE)
    set_setting(study, "training_gap", "4")
    fail_round(study, 1)
    set_setting(study, "training_gap", "0.1")
    told = situation(study, 1).stage
    assert isinstance(told, RoundResult)
    assert told.outcome.passed


def test_who_has_rated_before_there_was_training_goes_on(put: Put, study: Engine) -> None:
    task = next_task(study, 1).task
    assert task is not None
    submit(study, 1, task.card.code, Reply(FULL), 1.0)
    put(WIDE)
    assert situation(study, 1).stage is None
    assert isinstance(situation(study, 2).stage, Exercise)


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
    marks = (
        ScoredCriterion("accuracy", 4, 2.5, "<b>dose</b>"),
        ScoredCriterion("clarity", 3, 3, ""),
    )
    one = Feedback(1, Card("c", "", "", ""), rubric("accuracy", "clarity"), "", marks, 1, 1, 2)
    told = text_html.training_feedback(one, ENGLISH)
    assert "you scored 1.5 points higher" in told
    assert "the same score" in told
    assert "<span>2: Point 2 of accuracy: as good as 2<br>3: Point 3 of" in told
    assert "&lt;b&gt;dose&lt;/b&gt;" in told
    assert (
        text_html.in_points(0.7, ENGLISH),
        text_html.in_points(1, ENGLISH),
        text_html.decimals(1.04),
    ) == (
        "0.7 points",
        "1.0 point",
        "1.04",
    )
