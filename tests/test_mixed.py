import math

import numpy as np
import pytest

from calibration.grid import Grid
from calibration.icc import icc_table
from calibration.mixed import clinicians_mixed_model


def grid_of(table):
    table = np.asarray(table, float)
    n, raters = table.shape
    names = tuple(f"dr{i}" for i in range(raters))
    return Grid(table, tuple(map(str, range(n))), np.arange(n), names, ("clinician",) * raters)


def simulate(n, raters, each, seed, variances=(1.0, 0.25, 0.75)):
    random = np.random.default_rng(seed)
    response, rater, residual = np.sqrt(variances)
    table = response * random.normal(size=(n, 1)) + rater * random.normal(size=(1, raters))
    table = 3 + table + residual * random.normal(size=(n, raters))
    for row in table:
        row[random.permutation(raters)[each:]] = np.nan
    return grid_of(table)


def test_when_everybody_rates_everything_it_is_the_icc_from_mean_squares():
    # For a balanced table REML and analysis of variance give the same components.
    grid = simulate(40, 5, 5, seed=0)
    iccs = icc_table(grid.composites)["icc"]

    model = clinicians_mixed_model(grid)

    assert model.consistency() == pytest.approx(iccs["ICC(C,1)"], abs=1e-4)
    assert model.consistency(5) == pytest.approx(iccs["ICC(C,k)"], abs=1e-4)
    assert model.agreement() == pytest.approx(iccs["ICC(A,1)"], abs=1e-4)
    assert model.agreement(5) == pytest.approx(iccs["ICC(A,k)"], abs=1e-4)


def test_it_recovers_what_was_simulated_from_two_ratings_a_response():
    models = [clinicians_mixed_model(simulate(80, 12, 2, seed)) for seed in range(10)]

    # 1 / 1.75, 1 / 1.375 and 1 / 2 by construction.
    assert np.mean([model.consistency() for model in models]) == pytest.approx(0.571, abs=0.05)
    assert np.mean([model.consistency(2) for model in models]) == pytest.approx(0.727, abs=0.05)
    assert np.mean([model.agreement() for model in models]) == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("seed", range(6))
def test_raters_of_equal_severity_have_no_rater_variance_and_still_an_answer(seed):
    model = clinicians_mixed_model(simulate(60, 8, 2, seed, variances=(1.0, 0.0, 0.75)))

    assert model.reason == ""
    assert model.agreement() == pytest.approx(model.consistency(), abs=0.06)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([[1, 2, np.nan], [2, 3, np.nan], [np.nan, np.nan, 4]], "3 responses"),
        ([[3, 3], [3, 3], [3, 3], [3, 3]], "differ"),
        ([[1], [2], [3], [4]], "two clinicians"),
    ],
)
def test_too_little_data_is_undefined_with_a_reason(table, reason):
    model = clinicians_mixed_model(grid_of(table))

    assert reason in model.reason
    assert math.isnan(model.consistency())
    assert math.isnan(model.agreement(2))


def test_too_much_data_is_not_fitted_and_says_so():
    assert "more than 50 ratings" in clinicians_mixed_model(simulate(60, 4, 2, 0), 50).reason
