"""The demo study's texts and plan, and what its simulated clinicians make of them."""

import json
from collections import Counter, defaultdict

import numpy as np

from data.rubric import read_rubric
from data.samples import (
    CLINICIANS,
    RESPONSES,
    SimulatedReading,
    benchmarks,
    clinicians_ratings,
    planned,
)

ROWS = [json.loads(line) for line in RESPONSES.read_text("utf-8").splitlines()]


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


def _composites(reading: tuple[str, int]) -> list[float]:
    """Return the mean score of each response by one clinician, the first or the second time."""
    clinician, pass_ = f"sim-clinician-{reading[0]}", reading[1]
    scores = defaultdict(list)
    readings = [SimulatedReading(clinician, row["response_id"], pass_) for row in ROWS]
    for row in clinicians_ratings(readings):
        scores[row.response_id].append(int(row.score))
    return [float(np.mean(scores[row["response_id"]])) for row in ROWS]
