"""`medjury analyse predict`: what it prints and writes, the ledger, and one message for bad input."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from kit.studies import HEAD, Run, bring_in
from sqlalchemy import Engine

from calibration.predicting import COLUMNS
from data.study.ledger import compositions_tried

KEYS = [
    *("benchmark", "n_calibration", "q", "n_predicted", "mean_clinicians"),
    *("clinicians_low", "clinicians_high", "mean_jury", "mean_corrected", "low", "high"),
    *("lambda", "n", "N", "gain", "rated_unrated_difference"),
    *("verdict", "note", "notes", "validated"),
]


@pytest.fixture
def rated(run: Run, tmp_path: Path) -> None:
    """Make two benchmarks of 60 responses, 40 rated; one id would be a formula."""
    random = np.random.default_rng(0)
    rows = [HEAD]
    scores = ["response_id,rater,kind,accuracy,completeness,clarity"]
    for benchmark in ("visits", "letters"):
        for n in range(60):
            name = "=1+1" if (benchmark, n) == ("visits", 59) else f"{benchmark}{n}"
            rows.append(f"i{n},{benchmark},Pain.,Write.,,{name},secret-{n % 3},Word {n}")
            quality = 3 + random.normal()
            doctors = [("dr-a", "clinician"), ("dr-b", "clinician")] if n < 40 else []
            for rater, kind in [*doctors, ("gpt", "juror"), ("llama", "juror")]:
                own = np.clip(np.round(quality + 0.6 * random.normal(size=3)), 1, 5)
                scores.append(f"{name},{rater},{kind}," + ",".join(f"{one:g}" for one in own))
    bring_in(run, tmp_path, rows, scores)


@pytest.mark.usefixtures("rated")
def test_the_command_prints_and_writes_every_figure(run: Run, tmp_path: Path) -> None:
    js, out_csv = tmp_path / "p.json", tmp_path / "p.csv"

    code, out, err = run("analyse", "predict", "--json", str(js), "--csv", str(out_csv))

    assert code == 0
    assert err.splitlines()[-1].startswith("study ")
    body = json.loads(js.read_text())
    assert list(body) == ["level", "seed", "decision", "benchmarks", "responses"]
    assert (body["level"], body["seed"], body["responses"]) == (0.9, 0, 120)
    assert [list(row) for row in body["benchmarks"]] == [KEYS] * 3
    assert [row["benchmark"] for row in body["benchmarks"]] == ["letters", "visits", "combined"]
    assert {(row["n"], row["N"]) for row in body["benchmarks"]} == {(40, 20), (80, 40)}
    assert body["benchmarks"][2]["q"] is None
    for row in body["benchmarks"]:
        assert f"{row['mean_corrected']:.2f}" in out  # a narrow screen has the interval below it
        assert f"{row['low']:.2f} to {row['high']:.2f}" in out
    assert "simulated" not in out


@pytest.mark.usefixtures("rated")
def test_the_file_has_no_author_and_no_formula(run: Run, tmp_path: Path) -> None:
    to = tmp_path / "p.csv"
    run("analyse", "predict", "--csv", str(to))

    with to.open(newline="") as file:
        rows = list(csv.DictReader(file))

    assert list(rows[0]) == [*COLUMNS[:-1], "note"]
    assert len(rows) == 120
    assert "secret" not in to.read_text()
    assert {row["instance_id"] for row in rows} == {f"i{n}" for n in range(60)}
    assert [row["response_id"] for row in rows if "1+1" in row["response_id"]] == ["'=1+1"]
    assert sum(row["rated_by_clinicians"] == "1" for row in rows) == 80
    assert all(float(row["low"]) <= float(row["clinician_scale"]) <= 5 for row in rows)


@pytest.mark.usefixtures("rated")
def test_the_jury_stands_in_the_ledger_as_when_calibrated(run: Run, engine: Engine) -> None:
    run("analyse", "predict")
    run("analyse", "predict", "--jurors", "gpt", "--benchmark", "visits")
    run("analyse", "calibrate", "--reps", "50")

    found = {(tuple(one.jurors), one.benchmark): one.times for one in compositions_tried(engine)}

    both = ("gpt", "llama")
    assert found == {
        **{(both, name): 2 for name in ("letters", "visits", "combined")},
        (("gpt",), "visits"): 1,
    }
    assert run("study", "verify")[0] == 0


BAD = [
    (["--level", "90"], "--level 90: give a share between 0 and 1"),
    (["--seed", "-1"], "--seed"),
    (["--benchmark", "nothing"], "no benchmark nothing: it has letters, visits"),
    (["--jurors", "nobody"], "no ratings by a juror nobody"),
    (["--criterion", "style"], "no rubric has the criterion style"),
    (["--min-jurors", "3"], "the jury has 2 jurors"),
    (["--csv", "absent/p.csv"], "not a file in a folder that exists"),
    (["--json", "absent/p.json"], "not a file in a folder that exists"),
]


@pytest.mark.usefixtures("rated")
def test_bad_input_gets_one_message_and_writes_nothing(run: Run, engine: Engine) -> None:
    for arguments, said in BAD:
        code, out, err = run("analyse", "predict", *arguments)

        assert code == 2, arguments
        assert said in err
        assert "Traceback" not in out + err
    assert compositions_tried(engine) == []


@pytest.mark.usefixtures("rated")
def test_a_file_that_is_there_is_not_written_over(run: Run, tmp_path: Path) -> None:
    to = tmp_path / "p.csv"
    to.write_text("mine")

    code, _, err = run("analyse", "predict", "--csv", str(to))

    assert (code, to.read_text()) == (2, "mine")
    assert "is there already" in err
