"""`calibrate --details`: what a page shows beyond the table is in the JSON, and adds up."""

import json
from pathlib import Path

import numpy as np
import pytest
from kit.studies import Run, rated
from sqlalchemy import Engine

from annotate.figures import AgreementQuestion, agreement, agreement_details
from calibration.json_values import decision_json
from calibration.values import AnalysisOptions
from data.rubric import read_rubric

QUESTION = AgreementQuestion(AnalysisOptions())


def test_pairs_are_the_means_that_bias_is_of(run: Run, tmp_path: Path) -> None:
    rated(run, tmp_path)
    code, told, _ = run("analyse", "calibrate", "--details", "--reps", "20", "--json", "-")
    found = json.loads(told)
    [pair] = found["pairs"]
    far = next(row for row in found["details"]["other_measures"] if row["scorer"] == "jury")
    gap = np.subtract(pair["jury"], pair["clinicians"])
    assert code == 0
    assert len(pair["responses"]) == 30
    assert gap.mean() == pytest.approx(far["bias"], abs=1e-6)
    assert [row["criterion"] for row in found["criteria"]] == [*read_rubric("generic").criteria]


def test_the_screen_is_handed_the_same_answer_first_and_then_all_behind_it(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    rated(run, tmp_path)
    told = json.loads(run("analyse", "calibrate", "--details", "--reps", "2000", "--json", "-")[1])
    first, then = agreement(engine, QUESTION), agreement_details(engine, QUESTION)
    assert decision_json(first["decision"]) == told["decision"]
    assert first["jury"] == ("gpt", "llama")
    row = next(row for row in told["rows"] if row["scorer"] == "like_for_like")
    for side, names in (
        ("jury", ("jury_icc", "jury_low", "jury_high")),
        ("clinician", ("clinician_icc", "clinician_low", "clinician_high")),
        ("difference", ("icc", "low", "high")),
    ):
        assert first["held"][side] == pytest.approx([row[name] for name in names])
    assert {"2", "3", "4", "6", "table", "checked", "tried"} <= set(then)
    assert then["table"].columns[0] == "Scorer"
