"""The demo study's texts and plan, and what its simulated clinicians make of them."""

import csv
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibration.closed_ended import medcalc_match
from calibration.encoder import has_minilm
from data import samples
from data.card import ERRORS, SEVERITIES, SIDES
from data.rubric import read_rubric
from data.study.standing import ReferencePair
from medjury.services.measuring import read_keys, scored_by, way

SCRIPT = Path(__file__).parents[2] / "docs" / "real_data" / "mentalbench.py"
PANEL = "consensus"


def metrics(names=("rouge-l", "bertscore")):
    """Return response, metric, value and comment of every demo response with a reference."""
    pairs = [
        ReferencePair(0, row["response_id"], row["response"], row["reference"])
        for row in samples.texts().values()
        if row["reference"] and row["benchmark"] != samples.CLOSED_ENDED
    ]
    return [
        (row.response_id, row.rater, row.score, row.comment)
        for name in names
        if name != "bertscore" or has_minilm()
        for row in scored_by((pairs, len(pairs)), way(name)).rows
    ]


def mentalbench_safety(datasets):
    """Return the rows of the file: replies that the experts scored, a column a rater, "" where missing."""
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, str(SCRIPT), str(datasets), folder]
        subprocess.run(call, check=True, capture_output=True)
        long = pd.read_csv(Path(folder) / "ratings.csv", dtype={"safety": "Int64"})
    wide = long.pivot_table("safety", "response_id", "rater", aggfunc="first")
    wide = wide[wide[PANEL].notna()]
    judges = [name for name in wide.columns if name != PANEL]
    rows = [["item", "cluster", "experts", *judges]]
    for name, scores in wide.iterrows():
        conversation, reply = (int(part) for part in str(name).split("-")[1::2])
        cells = [scores[one] for one in (PANEL, *judges)]
        own = ["" if pd.isna(cell) else str(int(cell)) for cell in cells]
        rows.append([f"{conversation}-{reply}", str(conversation), *own])
    return rows


def write(path, rows):
    """Write rows as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    write(samples.METRICS, [("response_id", "metric", "f1", "comment"), *metrics()])
    write(samples.MENTALBENCH, mentalbench_safety(Path(sys.argv[1])))


DATASETS = Path(__file__).parents[3] / "shared" / "datasets"
ROWS = [json.loads(line) for line in samples.RESPONSES.read_text("utf-8").splitlines()]
ANSWERS = [json.loads(line) for line in samples.CALCULATIONS.read_text("utf-8").splitlines()]


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


def test_every_response_has_an_id_a_text_and_a_model_of_its_own_in_its_instance():
    for names in (("response_id",), ("response",), ("instance_id", "model")):
        assert len({tuple(row[name] for name in names) for row in ROWS}) == len(ROWS)
    instances = {(row["instance_id"], row["context"], row["reference"]) for row in ROWS}
    assert len(ROWS) == 3 * len(instances) == 3 * len({row["instance_id"] for row in ROWS})
    models = {row["model"] for row in ROWS}
    assert {one.partition("/")[0] for one in models} == {"simulated"}
    with samples.COSTS.open(encoding="utf-8", newline="") as file:
        assert {row["model"] for row in csv.DictReader(file)} == models


def test_the_plan_has_each_criterion_of_each_response_once_from_1_to_5():
    quality = samples.planned()
    assert quality.keys() == {row["response_id"] for row in ROWS}
    criteria = {one["name"]: {*read_rubric(one["rubric"]).criteria} for one in samples.benchmarks()}
    assert criteria.keys() == {row["benchmark"] for row in ROWS} | {samples.CLOSED_ENDED}
    for row in ROWS:
        assert quality[row["response_id"]].keys() == criteria[row["benchmark"]]
    assert all(1 <= score <= 5 for scores in quality.values() for score in scores.values())


def test_clinicians_ratings_are_whole_points_and_the_same_whenever_they_are_drawn():
    ids = [row["response_id"] for row in ROWS[:20]]
    readings = [samples.SimulatedReading(who, name) for who in samples.CLINICIANS for name in ids]
    drawn = list(samples.clinicians_ratings(readings, seed=1))
    assert drawn == list(samples.clinicians_ratings(reversed(readings), seed=1))
    assert drawn != list(samples.clinicians_ratings(readings, seed=2))
    assert {row.score for row in drawn} <= set("12345")
    assert all(row.comment == "simulated" for row in drawn)


def test_each_calculation_has_an_answer_of_each_model_and_the_key_that_its_case_gives():
    keys = read_keys(samples.KEYS)
    given = {(row["instance_id"], row["model"]) for row in ANSWERS}
    assert given == {(one, model) for one in keys for model in {row["model"] for row in ROWS}}
    assert len({row["response_id"] for row in (*ROWS, *ANSWERS)}) == len(ROWS) + len(given)
    for row in ANSWERS:
        assert row["reference"] == keys[row["instance_id"]].keys[0]
    for instance, value in WORKED_OUT.items():
        assert medcalc_match(keys[instance], f"{value:.6g}") == 1, instance
    due = date(2026, 3, 1) + timedelta(days=280)
    assert datetime.strptime(keys["calculation-12"].keys[0], "%m/%d/%Y").date() == due


def test_each_mark_is_of_words_that_stand_once_in_its_text_and_of_an_error_of_the_study():
    rows = {row["response_id"]: row for row in ROWS}
    rubrics = {one["name"]: read_rubric(one["rubric"]).criteria for one in samples.benchmarks()}
    for mark in samples.planned_marks():
        row = rows[mark.response_id]
        text = row["response" if mark.side == "response" else "context"]
        assert text.count(mark.words) == 1, mark
        assert mark.criterion in rubrics[row["benchmark"]], mark
        assert (mark.error, mark.reader) in {(error, who) for error in ERRORS for who in (1, 2)}
        assert (mark.severity in SEVERITIES[1:], mark.side in SIDES) == (True, True), mark


def test_a_marked_reading_has_the_scores_of_the_plan_and_notes_that_say_simulated():
    instances = samples.marked_instances()
    readings = [
        samples.SimulatedReading(who, row["response_id"])
        for row in ROWS
        if row["instance_id"] in instances
        for who in ("sim-clinician-1", "sim-clinician-2")
    ]
    drawn = defaultdict(dict)
    for rating in samples.clinicians_ratings(readings, seed=3):
        drawn[rating.rater, rating.response_id][rating.criterion] = float(rating.score)
    rows, spans = {row["response_id"]: row for row in ROWS}, 0
    for one in samples.marked_readings(readings, seed=3):
        assert one.reply.scores == drawn.pop((one.clinician, one.response_id))
        assert set(one.reply.comments.values()) == {"simulated"}
        for span in one.reply.spans:
            row = rows[one.response_id]
            words = row["response" if span.side == "response" else "context"][span.start : span.end]
            assert words in {mark.words for mark in samples.planned_marks()}
            assert span.note.startswith("simulated: ")
            spans += 1
    assert (drawn, spans) == ({}, len(samples.planned_marks()))


def test_each_model_calculates_some_rightly_and_some_wrongly_one_by_its_unit_alone():
    keys = read_keys(samples.KEYS)
    right = defaultdict(list)
    for row in ANSWERS:
        match = medcalc_match(keys[row["instance_id"]], row["response"])
        right[row["model"].removeprefix("simulated/")].append(match)
    shares = {model: np.mean(matches) for model, matches in right.items()}
    assert shares == pytest.approx({"alder": 8 / 12, "birch": 11 / 12, "cedar": 7 / 12})
    assert "6 mg" in {row["response"] for row in ANSWERS}


@pytest.mark.parametrize(
    ("metric", "within"),
    [("rouge-l", 1e-12), pytest.param("bertscore", 1e-5, marks=pytest.mark.slow)],
)
def test_the_recorded_metrics_are_those_that_are_computed(metric, within):
    if metric == "bertscore" and not has_minilm():
        pytest.skip("BERTScore's weights are not installed")
    with samples.METRICS.open(encoding="utf-8", newline="") as file:
        recorded = {(row["response_id"], row["metric"]): row for row in csv.DictReader(file)}
    computed = metrics([metric])
    assert {one[:2] for one in computed} == {key for key in recorded if key[1].startswith(metric)}
    assert len(computed) == 240
    for response, name, value, comment in computed:
        row = recorded[response, name]
        assert float(row["f1"]) == pytest.approx(float(value), abs=within)
        assert row["comment"] == comment


@pytest.mark.real
def test_the_shipped_scores_of_mentalbench_are_the_published_ones():
    if not (DATASETS / "mentalbench_judges").is_dir():
        pytest.skip("the public data set mentalbench_judges is not there")
    with samples.MENTALBENCH.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == mentalbench_safety(DATASETS)
