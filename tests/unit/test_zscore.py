"""Scores as z within raters, their means, and the responses that are analysed."""

import numpy as np
import pandas as pd
import pytest
from kit.scores import study

from calibration.columns import column_icc
from calibration.rating_matrix import (
    analysed_grid,
    mean_of_given,
    without_variance,
    z_within_raters,
)
from calibration.table import ENOUGH_EACH, LOWERED, agreement_rows
from calibration.values import AnalysisOptions

NAN = np.nan
CLINICIANS = 20


def test_z_is_pandas_mean_and_sd_with_ddof_1_over_what_a_rater_gave():
    random = np.random.default_rng(0)
    table = random.normal(size=(30, 4))
    table[random.random(table.shape) < 0.3] = NAN
    frame = pd.DataFrame(table)

    expected = ((frame - frame.mean()) / frame.std(ddof=1)).to_numpy()

    assert z_within_raters(table) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("column", "is_flat"),
    [
        ([3.0, 3.0, 3.0], True),
        ([(5 + 4 + 4) / 3, (4 + 5 + 4) / 3, 13 / 3 + 1e-15], True),  # rounding is no variance
        ([0.8501, 0.8502, 0.8503], False),  # but a narrow metric's is
        ([3, NAN, NAN], True),
        ([NAN] * 3, True),
    ],
)
def test_equal_single_or_no_scores_are_without_variance(column, is_flat):
    table = np.column_stack([column, [1.0, 2.0, 4.0]])

    assert without_variance(table).tolist() == [is_flat, False]
    assert np.isnan(z_within_raters(table)[:, 0]).all() == is_flat


def test_the_analysed_set_is_what_a_clinician_rated():
    rows = [
        ("r2", "i1", "aci", "dr", "clinician", 4.0),
        ("r1", "i1", "aci", "dr", "clinician", 3.0),
        ("r1", "i1", "aci", "j0", "juror", 2.0),
        ("r3", "i2", "aci", "j0", "juror", 1.0),  # no clinician
        ("r4", "i4", "chw", "dr", "clinician", 5.0),  # another benchmark
    ]
    columns = ["response_id", "instance_id", "benchmark", "rater", "kind", "composite"]

    grid = analysed_grid(
        pd.DataFrame(rows, columns=columns), ["aci"], jurors=["j0", "j1"], metrics=[]
    )

    assert grid.responses == ("r1", "r2")
    assert grid.raters == ("dr", "j0", "j1")
    assert grid.clusters.tolist() == [0, 0]
    assert grid.n_clusters == 1
    assert grid.composites == pytest.approx(np.array([[3, 2, NAN], [4, NAN, NAN]]), nan_ok=True)


@pytest.mark.parametrize("each", [5, 10])
def test_z_within_few_responses_lowers_the_icc_by_about_what_the_table_says(each):
    random, lowered = np.random.default_rng(each), []
    n = each * CLINICIANS // 2
    for _ in range(150):
        quality = random.normal(size=(n, 1))
        scores = quality + random.normal(size=(n, CLINICIANS + 1))
        readers = (2 * np.arange(n)[:, None] + [0, 1]) % CLINICIANS
        given = np.full((n, CLINICIANS), NAN)
        np.put_along_axis(given, readers, np.take_along_axis(scores, readers, axis=1), axis=1)
        jury = z_within_raters(scores[:, -1:])[:, 0]
        as_if_known = mean_of_given(given / np.sqrt(2))
        iccs = [
            column_icc(column, jury, "paper")
            for column in (as_if_known, mean_of_given(z_within_raters(given)))
        ]
        lowered.append(iccs[0] - iccs[1])
    assert np.mean(lowered) == pytest.approx(LOWERED / each, abs=0.02)


@pytest.mark.parametrize(
    ("n", "method", "said"), [(12, "paper", True), (60, "paper", False), (12, "published", False)]
)
def test_the_jurys_row_says_that_z_rests_on_few_responses_a_clinician(n, method, said):
    rows = agreement_rows(study(n=n), AnalysisOptions(reps=0, method=method))
    jury = next(row for row in rows if row.scorer == "jury")
    told = jury.told("few_each")
    assert bool(told) == said
    if told:
        assert told["median"] < ENOUGH_EACH
        assert told["lower"] == pytest.approx(LOWERED / told["median"])
