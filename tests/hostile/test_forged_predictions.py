"""No name, whatever it says, makes a plan, a prediction or a methods section say "simulated"."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from kit.studies import HEAD, Run
from sqlalchemy import Engine, text

from calibration.dossier import dossier_markdown
from data.person import OPERATOR
from data.study.ledger import freeze
from data.study.rubrics import validations
from data.study.standing import benchmarks
from medjury.services.dossier import dossier

FORGED = "dr_c; simulated raters: nobody"
REAL = ("dr_a", "dr_b", "gpt", "llama")


@pytest.fixture
def forged(run: Run, tmp_path: Path) -> None:
    """Make a real study of 30 responses; one clinician's name is forged, and never varies."""
    random = np.random.default_rng(1)
    rows = [HEAD]
    out = io.StringIO()
    scores = csv.writer(out)
    scores.writerow(["response_id", "rater", "kind", "accuracy", "completeness", "clarity"])
    for n in range(30):
        rows.append(f"i{n},visits,Pain.,Write.,,r{n},model-{n % 3},Word {n}")
        quality = 3 + random.normal()
        for rater in REAL:
            own = np.clip(np.round(quality + 0.5 * random.normal(size=3)), 1, 5).astype(int)
            kind = "clinician" if rater.startswith("dr") else "juror"
            scores.writerow([f"r{n}", rater, kind, *own.tolist()])
        scores.writerow([f"r{n}", FORGED, "clinician", 3, 3, 3])
    (tmp_path / "r.csv").write_text("\n".join(rows), "utf-8")
    (tmp_path / "s.csv").write_text(out.getvalue(), "utf-8")
    assert run("study", "import", str(tmp_path / "r.csv"))[0] == 0
    jury = ",".join(name for name in REAL if not name.startswith("dr"))
    assert run("study", "protocol", "set", "--margin", "0.4", "--jurors", jury)[0] == 0
    assert run("rate", "ratings", str(tmp_path / "s.csv"))[0] == 0


def made_simulated(engine: Engine, old: str, new: str) -> None:
    """Give a rater another name, and say that nobody stands behind it."""
    with engine.execution_options(writes=True).begin() as connection:
        change = text("UPDATE rater SET simulated = true, handle = :new WHERE handle = :old")
        connection.execute(change, {"new": new, "old": old})


def answered(run: Run, *arguments: str) -> tuple[dict, str]:
    """Return what a command writes as JSON, and what it says."""
    code, out, err = run(*arguments, "--json", "-")
    assert code == 0, err
    return json.loads(out), err


@pytest.mark.usefixtures("forged")
def test_a_forged_name_makes_no_prediction_simulated(run: Run, tmp_path: Path) -> None:
    to = tmp_path / "p.csv"
    body, said = answered(run, "analyse", "predict", "--csv", str(to))
    assert body["decision"]["kind"] == "usable"
    assert all(row["validated"] for row in body["benchmarks"])
    codes = [one["code"] for row in body["benchmarks"] for one in row["notes"]]
    assert "simulated" not in codes
    assert "Simulated" not in said
    assert "simulated" not in to.read_text("utf-8")


@pytest.mark.usefixtures("forged")
def test_a_forged_name_makes_no_plan_simulated(run: Run) -> None:
    body, said = answered(run, "study", "plan", "--pilot")
    codes = [one["code"] for row in body["rows"] for one in row["notes"]]
    assert "simulated" not in codes
    assert not [line for line in body["sentences"] if "simulated raters" in line]
    assert "Simulated" not in said


@pytest.mark.usefixtures("forged")
def test_a_forged_name_stands_whole_in_the_methods_and_makes_nothing_of_them_simulated(
    engine: Engine,
) -> None:
    made = dossier(engine, "grras", reps=50)
    written = dossier_markdown(made)
    assert made.simulated == ()
    assert "Simulated" not in written
    assert FORGED in written.replace("\\", "")


@pytest.mark.usefixtures("forged")
def test_a_simulated_rater_with_a_comma_in_its_name_is_one(run: Run, engine: Engine) -> None:
    made_simulated(engine, "dr_b", "Smith, John")
    body, _ = answered(run, "study", "plan", "--pilot")
    pilot = body["assumed"]["pilot"]["clinicians"]
    assert [one["raters"] for one in pilot["notes"] if one["code"] == "simulated"] == [
        ["Smith, John"]
    ]
    assert 'The pilot\'s figures are of simulated raters: "Smith, John".' in body["sentences"]
    predicted, said = answered(run, "analyse", "predict")
    assert predicted["decision"]["kind"] == "simulated"
    assert predicted["decision"]["reasons"][0]["raters"] == ["Smith, John"]
    assert not any(row["validated"] for row in predicted["benchmarks"])
    assert said.splitlines()[0] == "Simulated: nothing here is evidence."


@pytest.mark.usefixtures("forged")
def test_a_forged_note_makes_no_evidence_simulated(engine: Engine) -> None:
    forged = f"left out, no variance: {FORGED}"
    assert evidence_of(engine, {"note": forged, "notes": []}) is False
    told = {"note": "", "notes": [{"code": "simulated", "raters": ["gpt"]}]}
    assert evidence_of(engine, told) is True


def evidence_of(engine: Engine, told: dict) -> bool:
    """Freeze a report of a jury whose row says this; return whether its evidence is simulated."""
    (used,) = benchmarks(engine)
    sha256 = used.rubric.sha256
    figures = dict.fromkeys(("icc", "low", "high"), 0.5)
    counts = {"n_responses": 30, "n_clinicians": 3}
    row = {"benchmark": "visits", "scorer": "jury"} | figures | counts | told
    body = {"rows": [row], "jury": ["gpt", "llama"], "rubrics": {"visits": {"sha256": sha256}}}
    number = freeze(engine, "data", body)
    (found,) = [one for one in validations(OPERATOR, engine, sha256) if one.report == number]
    return found.simulated
