"""pingouin finds the ICCs of the table, by itself wherever it is installed; one that is off is found."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from kit.scores import study
from kit.studies import Run, rated

from calibration.pingouin_check import pingouin_check
from calibration.table import agreement_rows
from calibration.values import AnalysisOptions

COMPARED = ("jury", "juror", "metric")


def check(scores, change=0.0, **options):
    asked = AnalysisOptions(reps=20, **options)
    rows = [
        replace(row, icc=row.icc + change) if row.scorer == "jury" else row
        for row in agreement_rows(scores, asked)
    ]
    return pingouin_check(scores, asked, rows)


@pytest.mark.parametrize("method", ["paper", "published"])
def test_pingouin_finds_the_icc_of_every_scorer_on_every_benchmark(method):
    scores = study(("aci", "mts"), n=30, seed=4)
    rows = agreement_rows(scores, AnalysisOptions(reps=20, method=method))
    ours = [row for row in rows if row.scorer.partition(":")[0] in COMPARED]
    found = check(scores, method=method)
    assert found.n == len(ours) > 5
    assert found.largest_difference < 1e-9
    assert not found.differs


def test_an_icc_that_is_off_is_found_and_named():
    found = check(study(n=30, seed=4), change=0.001)
    assert found.differs
    assert found.largest_difference == pytest.approx(0.001)
    assert "jury" in found.warning


def test_fewer_scores_than_pingouin_takes_are_no_difference():
    found = check(study(n=2, seed=2))
    assert (found.n, found.differs) == (0, False)


CALIBRATE = """
import sys
for name in sys.argv[1:]:
    sys.modules[name] = None  # for Python it is not installed now
from medjury import main
main(["analyse", "calibrate", "-q", "--reps", "20", "--json", "found.json"])
"""


def calibrated(run: Run, tmp_path, *absent: str):
    """Calibrate in a process of its own; return what it printed, its messages, and its JSON."""
    rated(run, tmp_path)
    call = [sys.executable, "-c", CALIBRATE, *absent]
    ran = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, ran.stderr, json.loads((tmp_path / "found.json").read_text("utf-8"))


def test_calibrate_says_by_itself_that_pingouin_was_asked(run: Run, tmp_path) -> None:
    out, err, body = calibrated(run, tmp_path)
    told = body["checked_with"]
    line = f"checked with pingouin {told['version']}: {told['n']} ICCs, largest difference "
    assert (out.count(line), err) == (1, "")
    assert told["library"] == "pingouin"
    assert told["n"] == sum(row["scorer"].partition(":")[0] in COMPARED for row in body["rows"])
    assert told["largest_difference"] < 1e-9


def test_without_pingouin_calibrate_says_so_and_goes_on(run: Run, tmp_path) -> None:
    out, err, body = calibrated(run, tmp_path, "pingouin")
    assert (out.count("not checked: pingouin is not installed"), err) == (1, "")
    assert body["checked_with"] is None
    assert body["rows"]


def test_nothing_that_pingouin_sets_outlasts_the_check() -> None:
    told = """
import warnings
import numpy
with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    import pingouin
from kit.scores import study
from calibration.pingouin_check import pingouin_check
from calibration.table import agreement_rows
from calibration.values import AnalysisOptions
pingouin.options["round"] = 3
def state():
    return dict(pingouin.options), warnings.filters[:], numpy.geterr(), numpy.get_printoptions()
before = state()
asked = AnalysisOptions(reps=20)
scores = study(n=30, seed=4)
assert pingouin_check(scores, asked, agreement_rows(scores, asked)).largest_difference < 1e-9
assert state() == before
"""
    place = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    call = [sys.executable, "-W", "error", "-c", told]
    ran = subprocess.run(call, env=place, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
