"""The demo study's texts and plan, and what its simulated clinicians make of them."""

import csv
import json
from collections import Counter, defaultdict
from datetime import date, datetime, timedelta

import numpy as np
import pytest

from calibration.closed_ended import medcalc_match
from data.card import ERRORS, SEVERITIES, SIDES
from data.rubric import read_rubric
from data.samples import (
    CALCULATIONS,
    CLINICIANS,
    CLOSED_ENDED,
    COSTS,
    KEYS,
    RESPONSES,
    SimulatedReading,
    benchmarks,
    clinicians_ratings,
    marked_instances,
    marked_readings,
    planned,
    planned_marks,
)
from medjury.services.measuring import read_keys

ROWS = [json.loads(line) for line in RESPONSES.read_text("utf-8").splitlines()]
ANSWERS = [json.loads(line) for line in CALCULATIONS.read_text("utf-8").splitlines()]
# Worked out from the cases by their formulas, apart from the file of keys.
WORKED_OUT = {
    "calculation-01": 138 - (102 + 14),  # anion gap
    "calculation-02": 8.0 + 0.8 * (4.0 - 2.5),  # calcium and albumin
    "calculation-03": (140 - 68) * 60 / (72 * 1.2) * 0.85,  # Cockcroft and Gault, a woman
    "calculation-04": (150 + 2 * 90) / 3,  # mean arterial pressure
    "calculation-05": 220 - 50 - 150 / 5,  # Friedewald
    "calculation-06": 2 * 140 + 180 / 18 + 28 / 2.8,  # osmolality
    "calculation-07": 400 / 0.80**0.5,  # Bazett
    "calculation-08": 2 + 1 + 1 + 1,  # age, sex, hypertension, diabetes
    "calculation-09": 1 + 1 + 1 + 1,  # urea, respiratory rate, blood pressure, age
    "calculation-10": 1 + 1 + 1 + 1,  # fever, exudate, nodes, no cough; no point for an age of 20
    "calculation-11": 40 / 5 * 0.75,  # prednisone to dexamethasone
}


def test_every_response_has_an_id_a_text_and_a_model_of_its_own_in_its_instance() -> None:
    assert len({row["response_id"] for row in ROWS}) == len(ROWS)
    assert len({row["response"] for row in ROWS}) == len(ROWS)
    assert len({(row["instance_id"], row["model"]) for row in ROWS}) == len(ROWS)
    assert set(Counter(row["instance_id"] for row in ROWS).values()) == {3}
    assert {row["model"].partition("/")[0] for row in ROWS} == {"simulated"}


def test_the_three_responses_of_an_instance_have_one_context_prompt_and_reference() -> None:
    instances = defaultdict(set)
    for row in ROWS:
        instances[row["instance_id"]].add((row["context"], row["prompt"], row["reference"]))
    assert {len(texts) for texts in instances.values()} == {1}


def test_three_benchmarks_have_enough_instances_for_an_interval() -> None:
    instances = {(row["benchmark"], row["instance_id"]) for row in ROWS}
    large = [name for name, count in Counter(name for name, _ in instances).items() if count >= 20]
    assert len(large) == 3


def test_the_plan_has_each_criterion_of_each_response_once_from_1_to_5() -> None:
    quality = planned()
    assert quality.keys() == {row["response_id"] for row in ROWS}
    criteria = {one["name"]: set(read_rubric(one["rubric"]).criteria) for one in benchmarks()}
    assert criteria.keys() == {row["benchmark"] for row in ROWS} | {CLOSED_ENDED}
    for row in ROWS:
        assert quality[row["response_id"]].keys() == criteria[row["benchmark"]]
    assert all(1 <= score <= 5 for scores in quality.values() for score in scores.values())


def test_every_benchmark_has_poor_and_good_responses() -> None:
    means = defaultdict(list)
    for row in ROWS:
        means[row["benchmark"]].append(np.mean(list(planned()[row["response_id"]].values())))
    assert all(min(of) < 3 and max(of) > 4.5 for of in means.values())


def test_a_clinician_agrees_with_a_second_reading_more_than_with_another_clinician() -> None:
    first, second, other = (_composites(one) for one in (("1", 0), ("1", 1), ("2", 0)))
    again = np.corrcoef(first, second)[0, 1]
    assert 0.75 < again < 0.95
    assert np.corrcoef(first, other)[0, 1] < again - 0.2


def test_clinicians_ratings_are_whole_points_and_the_same_whenever_they_are_drawn() -> None:
    readings = [
        SimulatedReading(who, row["response_id"]) for who in CLINICIANS for row in ROWS[:20]
    ]
    drawn = list(clinicians_ratings(readings, seed=1))
    assert drawn == list(clinicians_ratings(reversed(readings), seed=1))
    assert drawn != list(clinicians_ratings(readings, seed=2))
    assert {row.score for row in drawn} <= set("12345")
    assert all(row.comment == "simulated" for row in drawn)


def test_each_calculation_has_an_answer_of_each_model_and_the_key_that_its_case_gives() -> None:
    keys = read_keys(KEYS)
    given = Counter((row["instance_id"], row["model"]) for row in ANSWERS)
    assert set(given.values()) == {1}
    assert {model for _, model in given} == {row["model"] for row in ROWS}
    assert {instance for instance, _ in given} == keys.keys()
    assert {row["instance_id"]: row["reference"] for row in ANSWERS} == {
        instance: key.keys[0] for instance, key in keys.items()
    }
    for instance, value in WORKED_OUT.items():
        assert medcalc_match(keys[instance], f"{value:.6g}") == 1, instance
    due = date(2026, 3, 1) + timedelta(days=280)
    assert datetime.strptime(keys["calculation-12"].keys[0], "%m/%d/%Y").date() == due
    assert len({row["response_id"] for row in (*ROWS, *ANSWERS)}) == len(ROWS) + len(ANSWERS)


def test_each_model_calculates_some_rightly_and_some_wrongly_one_by_its_unit_alone() -> None:
    keys = read_keys(KEYS)
    right: dict[str, list[float]] = defaultdict(list)
    for row in ANSWERS:
        limits = keys[row["instance_id"]]
        right[row["model"].removeprefix("simulated/")].append(
            medcalc_match(limits, row["response"])
        )
    shares = {model: np.mean(matches) for model, matches in right.items()}
    assert shares == pytest.approx({"alder": 8 / 12, "birch": 11 / 12, "cedar": 7 / 12})
    assert "6 mg" in {row["response"] for row in ANSWERS}


def test_each_mark_is_of_words_that_stand_once_in_its_text_and_of_an_error_of_the_study() -> None:
    rows = {row["response_id"]: row for row in ROWS}
    rubrics = {one["name"]: read_rubric(one["rubric"]).criteria for one in benchmarks()}
    for mark in planned_marks():
        row = rows[mark.response_id]
        text = row["response" if mark.side == "response" else "context"]
        assert text.count(mark.words) == 1, mark
        assert mark.criterion in rubrics[row["benchmark"]], mark
        assert (mark.error, mark.reader) in {(error, who) for error in ERRORS for who in (1, 2)}
        assert (mark.severity in SEVERITIES[1:], mark.side in SIDES) == (True, True), mark


def test_every_benchmark_that_clinicians_rate_has_marks_of_several_errors_and_unmarked_answers() -> (
    None
):
    rows, errors = {row["response_id"]: row for row in ROWS}, defaultdict(set)
    for mark in planned_marks():
        errors[rows[mark.response_id]["benchmark"]].add(mark.error)
    assert errors.keys() == {row["benchmark"] for row in ROWS}
    assert all(len(kinds) >= 4 for kinds in errors.values())
    marked, instances = {mark.response_id for mark in planned_marks()}, marked_instances()
    unmarked = {
        row["benchmark"]
        for row in ROWS
        if row["instance_id"] in instances and row["response_id"] not in marked
    }
    assert unmarked == errors.keys()


def test_a_marked_reading_has_the_scores_of_the_plan_and_notes_that_say_simulated() -> None:
    instances = marked_instances()
    readings = [
        SimulatedReading(who, row["response_id"])
        for row in ROWS
        if row["instance_id"] in instances
        for who in ("sim-clinician-1", "sim-clinician-2")
    ]
    drawn: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for rating in clinicians_ratings(readings, seed=3):
        drawn[rating.rater, rating.response_id][rating.criterion] = float(rating.score)
    rows, spans = {row["response_id"]: row for row in ROWS}, 0
    for one in marked_readings(readings, seed=3):
        assert one.reply.scores == drawn.pop((one.clinician, one.response_id))
        assert set(one.reply.comments.values()) == {"simulated"}
        for span in one.reply.spans:
            row = rows[one.response_id]
            words = row["response" if span.side == "response" else "context"][span.start : span.end]
            assert words in {mark.words for mark in planned_marks()}
            assert span.note.startswith("simulated: ")
            spans += 1
    assert (drawn, spans) == ({}, len(planned_marks()))


def test_the_made_up_costs_are_of_the_demos_models() -> None:
    with COSTS.open(encoding="utf-8", newline="") as file:
        assert {row["model"] for row in csv.DictReader(file)} == {row["model"] for row in ROWS}


def _composites(reading: tuple[str, int]) -> list[float]:
    """Return the mean score of each response by one clinician, the first or the second time."""
    clinician, pass_ = f"sim-clinician-{reading[0]}", reading[1]
    scores = defaultdict(list)
    readings = [SimulatedReading(clinician, row["response_id"], pass_) for row in ROWS]
    for row in clinicians_ratings(readings):
        scores[row.response_id].append(int(row.score))
    return [float(np.mean(scores[row["response_id"]])) for row in ROWS]
