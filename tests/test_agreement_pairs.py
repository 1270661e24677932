"""`calibrate --pairs`: what a page shows beyond the table is in the JSON, and adds up."""

import json
from pathlib import Path

import numpy as np
import pytest
from calibration.report.parts import parts
from report_study import rated
from small import Run

from annotate import charts
from data.rubric import read_rubric


def test_pairs_are_the_means_that_bias_is_of(run: Run, tmp_path: Path) -> None:
    rated(run, tmp_path)
    code, told, _ = run("calibrate", "--pairs", "--details", "--reps", "20", "--json", "-")
    found = json.loads(told)
    [pair] = found["pairs"]
    far = next(row for row in found["details"]["other_measures"] if row["scorer"] == "jury")
    gap = np.subtract(pair["jury"], pair["clinicians"])
    assert code == 0
    assert len(pair["responses"]) == 30
    assert gap.mean() == pytest.approx(far["bias"], abs=1e-6)
    assert [row["criterion"] for row in found["criteria"]] == [*read_rubric("generic").criteria]
    assert [one["name"] for one in found["study"]["jurors"]] == ["gpt", "llama"]


@pytest.mark.slow  # CI has 15 minutes
def test_a_page_is_made_of_them(run: Run, tmp_path: Path) -> None:
    rated(run, tmp_path)
    told = run("calibrate", "--pairs", "--details", "--reps", "20", "--json", "-")[1]
    found = parts(json.loads(told))
    shown = charts.drawn("parts:parts", json.loads(told))
    assert [one["number"] for one in shown["sections"]] == [one.number for one in found.sections]
    assert charts.plotted(shown["charts"][0]["chart"])
    assert found.verdicts[0].benchmark == "visits"
    assert found.points.startswith("In points of the scale")
    assert {one.name for one in found.charts} >= {"intervals", "scatter", "difference"}
    assert [one.number for one in found.sections] == [*"23456789", "10", "A"]


def test_without_pairs_nothing_of_it_is_in_the_json(run: Run, tmp_path: Path) -> None:
    rated(run, tmp_path)
    found = json.loads(run("calibrate", "--reps", "20", "--json", "-")[1])
    assert not {"pairs", "criteria", "study"} & found.keys()
