import numpy as np
import pandas as pd
import pytest

from calibration.rating_matrix import (
    analysed_grid,
    mean_of_given,
    without_variance,
    z_within_raters,
)

NAN = np.nan


def test_z_is_pandas_mean_and_sd_with_ddof_1_over_what_a_rater_gave():
    random = np.random.default_rng(0)
    table = random.normal(size=(30, 4))
    table[random.random(table.shape) < 0.3] = NAN
    frame = pd.DataFrame(table)

    expected = ((frame - frame.mean()) / frame.std(ddof=1)).to_numpy()

    assert z_within_raters(table) == pytest.approx(expected, nan_ok=True)


def test_two_scores_are_plus_and_minus_seven_tenths_whatever_the_gap():
    z = z_within_raters(np.array([[1.0, 4.9], [5.0, 5.0]]))

    assert z == pytest.approx(np.array([[-0.5, -0.5], [0.5, 0.5]]) * np.sqrt(2))


@pytest.mark.parametrize("column", [[3.0, 3.0, 3.0], [13 / 3] * 3, [3, NAN, NAN], [NAN] * 3])
def test_equal_single_or_no_scores_are_without_variance(column):
    table = np.column_stack([column, [1.0, 2.0, 4.0]])

    assert without_variance(table).tolist() == [True, False]
    assert np.isnan(z_within_raters(table)[:, 0]).all()


def test_rounding_is_no_variance_but_a_narrow_metric_is():
    third = np.array([(5 + 4 + 4) / 3, (4 + 5 + 4) / 3, 13 / 3 + 1e-15])
    metric = np.array([0.8501, 0.8502, 0.8503])

    assert without_variance(np.column_stack([third, metric])).tolist() == [True, False]


def test_a_mean_is_over_what_was_given():
    table = np.array([[1, NAN, 3], [NAN, NAN, NAN], [5, 5, 8]])

    assert mean_of_given(table) == pytest.approx([2, NAN, 6], nan_ok=True)
    assert np.isnan(mean_of_given(np.empty((2, 0)))).all()


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
