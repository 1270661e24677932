"""`calibrate --details`: what a page shows beyond the table is in the JSON, and adds up."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from kit.studies import Run, rated
from sqlalchemy import Engine

from annotate import charts
from annotate.analyses import agreement, agreement_details
from annotate.results import AgreementQuestion
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


@pytest.mark.slow  # CI has 15 minutes
def test_the_screen_is_handed_the_same_answer_first_and_then_all_behind_it(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    rated(run, tmp_path)
    told = json.loads(run("analyse", "calibrate", "--details", "--reps", "2000", "--json", "-")[1])
    first, then = agreement(engine, QUESTION), agreement_details(engine, QUESTION)
    assert decision_json(first.decision) == told["decision"]
    assert first.jury == ("gpt", "llama")
    assert [one.name for one in first.charts] == ["intervals"]
    assert charts.plotted(first.charts[0].spec)
    assert {one.name for one in then.charts} == {"intervals", "scatter"}
    assert [*then.sections] == [*"23456789", "A"]
    assert [
        {name: [*getattr(one, name)] for name in ("responses", "clinicians", "jury")}
        for one in then.pairs
    ] == [
        {
            "responses": one["responses"],
            "clinicians": pytest.approx(one["clinicians"], abs=1e-6),
            "jury": pytest.approx(one["jury"], abs=1e-6),
        }
        for one in told["pairs"]
    ]
    (tmp_path / "given").write_bytes(pickle.dumps((first, then)))
    read = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb')); print(*sys.modules)"
    call = [sys.executable, "-c", read, str(tmp_path / "given")]
    ran = subprocess.run(call, capture_output=True, text=True, check=True)
    assert not {"numpy", "pandas", "altair", "sqlalchemy"} & {*ran.stdout.split()}
