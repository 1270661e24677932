"""A second opinion: other libraries find the same figures, and a figure that is off is found."""

import json
import math
import subprocess
import sys
from dataclasses import replace

import pytest
from kit.scores import study
from kit.studies import Run, rated

from calibration.second_opinion import _library, second_opinion
from calibration.table import agreement_rows
from calibration.values import AnalysisOptions
from data.errors import BadInput

STATISTICS = ["ICC(C,2)", "F interval", "Krippendorff's alpha, ordinal"]


def opinions(scores, rows=None, **options):
    asked = AnalysisOptions(reps=20, **options)
    found = rows or agreement_rows(scores, asked)
    return {row.statistic: row for row in second_opinion(scores, asked, found)}


@pytest.mark.parametrize("method", ["paper", "published"])
def test_other_libraries_find_the_same_figures(method):
    found = opinions(study(("aci", "mts"), n=30, seed=4), method=method)
    assert [name for name in found if not name.startswith("Crossed")] == STATISTICS
    for name in STATISTICS:
        assert found[name].compared > 5
        assert found[name].largest < 1e-9
    mixed = found["Crossed mixed model, ICC(C,1) and ICC(A,1)"]
    assert mixed.compared == 6
    assert mixed.largest < 1e-4


def test_a_figure_that_is_off_is_found_and_named():
    scores = study(n=30, seed=4)
    rows = agreement_rows(scores, AnalysisOptions(reps=20))
    place = next(at for at, row in enumerate(rows) if row.scorer == "jury")
    rows[place] = replace(rows[place], icc=rows[place].icc + 0.001)
    found = opinions(scores, rows)["ICC(C,2)"]
    assert found.largest == pytest.approx(0.001)
    assert found.at.endswith("jury")


def test_a_figure_that_only_one_of_both_has_is_infinitely_far():
    scores = study(n=30, seed=4)
    rows = agreement_rows(scores, AnalysisOptions(reps=20))
    rows[0] = replace(rows[0], f_low=math.nan)
    assert opinions(scores, rows)["F interval"].largest == math.inf


def test_too_few_responses_for_the_other_library_are_not_compared():
    found = opinions(study(n=4, seed=2))["ICC(C,2)"]
    assert (found.compared, found.at) == (0, "")
    assert math.isnan(found.largest)


def test_a_library_that_is_not_installed_is_one_message_with_what_to_do():
    with pytest.raises(BadInput, match="uv sync --extra second-opinion"):
        _library("no_such_library")


def test_the_command_tells_it_and_only_then(run: Run, tmp_path) -> None:
    rated(run, tmp_path)
    code, out, err = run("calibrate", "--reps", "20", "--second-opinion", "--json", "-")
    assert code == 0, err
    body = json.loads(out)
    assert [row["statistic"] for row in body["second_opinion"]][:3] == STATISTICS
    assert all(row["largest"] < 1e-4 for row in body["second_opinion"])
    assert "second_opinion" not in json.loads(run("calibrate", "--json", "-", "--reps", "20")[1])


def test_without_it_no_gpl_library_is_loaded():
    told = "import sys, calibration.second_opinion, medjury.services.calibrate\n"
    told += "print(sorted({'pingouin', 'krippendorff'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
