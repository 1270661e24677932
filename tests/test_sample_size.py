"""Responses for a width: F intervals of simulated ratings, closed forms, and published plans."""

import math

import numpy as np
import pytest
from scipy import stats

from calibration.icc import f_interval, icc_consistency, spearman_brown
from calibration.planning import exact_n, f_width
from data.errors import BadInput


@pytest.mark.parametrize(("r", "width", "n"), [(0.31, 0.2, 334), (0.31, 0.3, 153)])
def test_at_a_moderate_icc_the_number_is_about_that_of_zous_formula(r, width, n):
    # Zou (2012), equation 5, gives these; above 0.6 his normal interval is too narrow.
    assert exact_n(r, width) == pytest.approx(n, rel=0.015)


@pytest.mark.parametrize(("n", "width"), [(56, 0.45), (100, 0.32), (200, 0.23), (400, 0.16)])
def test_the_median_width_is_that_of_the_interval_at_the_assumed_icc(n, width):
    ends = f_interval(0.6, n)
    _, median = f_width(0.6 / 1.4, n, 2, 2, assurance=0.5)
    assert median == pytest.approx(ends.high - ends.low, rel=1e-3)
    assert median == pytest.approx(width, abs=0.01)


def test_the_mean_width_of_an_icc_of_two_is_known_in_closed_form():
    n, icc = 40, 0.5
    q = stats.f.ppf(0.975, n - 1, n - 1)
    mean = (1 - icc) * (n - 1) / (n - 3) * (q - 1 / q)
    assert f_width(icc / (2 - icc), n, 2, 2)[0] == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize("target", [(0.31, 2, 1), (0.9, 2, 1), (3 / 7, 2, 2), (0.4, 3, 2)])
def test_the_number_is_the_least_that_keeps_the_width(target):
    single, columns, of = target
    n = exact_n(single, 0.3, columns, of)
    assert f_width(single, n, columns, of)[1] <= 0.3 < f_width(single, n - 1, columns, of)[1]


def simulated_widths(target, n, studies, seed=0):
    """Return widths of F intervals of studies with ratings: response + rater + error."""
    random, (r, k, of) = np.random.default_rng(seed), target
    response = math.sqrt(r) * random.normal(size=(studies, n, 1))
    error = math.sqrt(1 - r) * random.normal(size=(studies, n, k))
    iccs = icc_consistency(response + error + random.normal(size=(1, 1, k)))
    ends = [f_interval(float(icc), n, k) for icc in iccs]
    return np.array(
        [spearman_brown(end.high, of / k) - spearman_brown(end.low, of / k) for end in ends]
    )


@pytest.mark.parametrize("target", [(0.31, 2, 1), (0.5, 3, 2)])
def test_the_widths_are_those_of_simulated_ratings(target):
    single, columns, of = target
    found, (mean, assured) = simulated_widths(target, 60, 2000), f_width(single, 60, columns, of)
    assert found.mean() == pytest.approx(mean, rel=0.01)
    assert np.quantile(found, 0.8) == pytest.approx(assured, rel=0.015)


@pytest.mark.slow
@pytest.mark.parametrize(
    "target", [(0.31, 2, 1), (0.5, 2, 1), (0.4, 3, 1), (0.43, 2, 2), (0.4, 3, 2)]
)
@pytest.mark.parametrize("width", [0.2, 0.3])
def test_the_numbers_give_the_width_with_assurance(target, width):
    single, columns, of = target
    found = simulated_widths(target, exact_n(single, width, columns, of), 4000, seed=1)
    assert np.mean(found <= width) >= 0.78


def test_a_narrower_interval_more_assurance_or_fewer_columns_take_more_responses():
    few = exact_n(0.5, 0.3)
    assert exact_n(0.5, 0.15) > 3 * few
    assert exact_n(0.5, 0.3, assurance=0.95) > few
    assert exact_n(0.5, 0.3, 4) < few


def test_too_few_responses_have_no_width():
    assert np.isnan(f_width(0.5, 3)).all()


@pytest.mark.parametrize("width", [0.0, -0.2, math.nan, math.inf])
def test_a_width_that_is_none_is_refused(width):
    with pytest.raises(BadInput, match="a width of"):
        exact_n(0.5, width)


@pytest.mark.parametrize("assurance", [0.4, 1.0])
def test_an_assurance_that_is_none_is_refused(assurance):
    with pytest.raises(BadInput, match="an assurance of"):
        exact_n(0.5, 0.3, assurance=assurance)
