import math
import warnings

import numpy as np
import pandas as pd
import pytest
from kit.composites import grid_of as grid_of_composites
from statsmodels.formula.api import mixedlm

from calibration.crossed import (
    clinicians_mixed_model,
    crossed_model,
)
from calibration.icc import icc_agreement, icc_consistency, spearman_brown


def grid_of(table):
    return grid_of_composites(table, jurors=0)


# 20 responses by 6 raters, a third of it missing: made up with numpy's default_rng(7).
UNBALANCED = [
    [0.57, 2.56, 2.34, None, 2.16, 2.62],
    [1.73, 2.64, 3.24, None, 3.3, None],
    [None, None, 2.21, 2.95, None, 2.73],
    [2.18, 1.24, 2.17, None, 1.98, 3.39],
    [2.17, 1.8, None, None, 2.6, 2.95],
    [1.25, 2.49, None, 1.94, 2.41, 1.84],
    [2.2, 2.22, None, None, None, None],
    [None, None, 3.83, None, 3.87, None],
    [2.44, None, None, 2.52, 2.53, 3.43],
    [1.33, 2.2, None, 2.57, None, 1.74],
    [2.46, 3.01, None, None, None, None],
    [2.16, 3.8, None, 3.77, 2.59, None],
    [1.15, 1.75, None, 2.68, 3.26, 4.34],
    [None, 1.76, 1.75, 2.69, 2.23, None],
    [2.48, 3.17, 1.72, None, None, 2.25],
    [None, 2.92, 3.51, 3.81, None, 3.11],
    [0.93, None, 0.61, None, 0.73, 2.34],
    [0.67, 2.97, 1.49, None, None, None],
    [1.31, None, 0.81, 1.45, None, None],
    [1.71, None, None, None, None, 1.11],
]


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
    of_mean = float(icc_consistency(grid.composites))
    single = icc_agreement(grid.composites)

    model = clinicians_mixed_model(grid)

    assert model.consistency() == pytest.approx(spearman_brown(of_mean, 1 / 5), abs=1e-12)
    assert model.consistency(5) == pytest.approx(of_mean, abs=1e-12)
    assert model.agreement() == pytest.approx(single, abs=1e-12)
    assert model.agreement(5) == pytest.approx(spearman_brown(single, 5), abs=1e-12)


def test_an_unbalanced_table_has_the_variances_that_r_finds():
    # lme4 1.1.31 on R 4.2.2: lmer(y ~ 1 + (1 | item) + (1 | rater), REML = TRUE), bobyqa.
    table = [[math.nan if one is None else one for one in row] for row in UNBALANCED]

    model = clinicians_mixed_model(grid_of(table))

    found = (model.response, model.rater, model.residual)
    assert found == pytest.approx((0.286214678, 0.107953236, 0.384808774), rel=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_raters_of_equal_severity_have_no_rater_variance_and_still_an_answer(seed):
    model = clinicians_mixed_model(simulate(60, 8, 2, seed, variances=(1.0, 0.0, 0.75)))

    assert model.reason is None
    assert model.agreement() == pytest.approx(model.consistency(), abs=0.06)


def statsmodels_fit(grid):
    """Fit by statsmodels' own dense solver: response, rater, residual and log likelihood."""
    response, rater = np.nonzero(~np.isnan(grid.composites))
    table = pd.DataFrame({"c": grid.composites[response, rater], "i": response, "r": rater})
    parts = {"response": "0 + C(i)", "rater": "0 + C(r)"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mixedlm(
            "c ~ 1", table, groups=np.ones(len(table)), vc_formula=parts, re_formula="0"
        )
        fitted = model.fit(method=["bfgs", "lbfgs", "powell"])
    of_rater, of_response = fitted.vcomp
    return model, (of_response, of_rater, fitted.scale)


@pytest.mark.parametrize(("n", "raters", "each"), [(80, 12, 2), (60, 4, 3), (50, 20, 2)])
def test_unbalanced_ratings_have_the_components_of_statsmodels_own_fit(n, raters, each):
    grid = simulate(n, raters, each, seed=3)

    model = clinicians_mixed_model(grid)

    _, expected = statsmodels_fit(grid)
    assert (model.response, model.rater, model.residual) == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("seed", range(8))
def test_no_fit_is_less_likely_than_statsmodels_own(seed):
    # Seed 1 is one where the search over standard deviations stops at ICC(C,1) 0.30, not 0.39.
    grid = simulate(60, 8, 2, seed, variances=(1.0, 0.0, 0.75))
    ours = clinicians_mixed_model(grid)

    model, (response, rater, residual) = statsmodels_fit(grid)

    theirs = model.loglike(np.sqrt([rater / residual, response / residual]))
    ratios = np.array([ours.rater, ours.response]) / ours.residual
    found = model.loglike(np.sqrt(np.maximum(ratios, 1e-10)))  # theirs divides by a ratio
    assert found > theirs - 1e-6


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([[1, 2, np.nan], [2, 3, np.nan], [np.nan, np.nan, 4]], "3 responses"),
        ([[3, 3], [3, 3], [3, 3], [3, 3]], "differ"),
        ([[1], [2], [3], [4]], "two clinicians"),
        (np.arange(60.0)[:, None], "two clinicians"),
        ([[1, np.nan], [2, np.nan], [3, np.nan], [4, np.nan]], "two clinicians"),
        ([[1, 2], [2, 3], [4, 5], [3, 4]], "did not converge"),
    ],
)
def test_too_little_data_is_undefined_with_a_reason(table, reason):
    model = clinicians_mixed_model(grid_of(table))

    assert reason in str(model.reason)
    assert math.isnan(model.consistency())
    assert math.isnan(model.agreement(2))


def test_6000_responses_are_fitted_and_near_the_truth():
    grid = simulate(6000, 10, 2, seed=0)

    model = clinicians_mixed_model(grid)

    assert model.consistency() == pytest.approx(0.571, abs=0.03)


def test_points_shift_nothing_and_their_unit_scales_every_variance():
    grid = simulate(50, 6, 3, seed=4)
    one, other = crossed_model(grid.composites), crossed_model(10 * grid.composites + 1000)

    assert (other.response, other.rater, other.residual) == pytest.approx(
        (100 * one.response, 100 * one.rater, 100 * one.residual), rel=1e-5
    )
