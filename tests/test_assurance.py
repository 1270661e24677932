"""Zou's number of responses and the widths of F intervals: published values and simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from calibration.icc import f_interval, icc_consistency, spearman_brown
from calibration.planning.sample_size import (
    TargetIcc,
    bonett_n,
    exact_n,
    f_width,
    single_rater_icc,
    zou_n,
)


@pytest.mark.parametrize(
    ("r", "width", "n"), [(0.31, 0.2, 334), (0.31, 0.3, 153), (0.75, 0.35, 37), (0.75, 0.3, 47)]
)
def test_the_numbers_of_the_paper_and_of_its_plan(r, width, n):
    assert zou_n(TargetIcc(r), width) == n


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("r", [0.1, 0.4, 0.8])
def test_it_is_the_printed_formula_for_any_number_of_clinicians(k, r):
    half, z, z_beta = 0.15, stats.norm.ppf(0.975), stats.norm.ppf(0.9)
    a, b = (1 - r) * (1 + (k - 1) * r), abs(k - 2 + 2 * r - 2 * k * r)
    root = a * z + math.sqrt(a**2 * z**2 + 4 * half * z * z_beta * a * b)
    printed = 1 + (root / (half * math.sqrt(2 * k * (k - 1)))) ** 2
    assert zou_n(TargetIcc(r, k), 2 * half, assurance=0.9) == math.ceil(printed)


@pytest.mark.parametrize(("n", "width"), [(56, 0.45), (100, 0.32), (200, 0.23), (400, 0.16)])
def test_the_median_width_is_that_of_the_interval_at_the_assumed_icc(n, width):
    ends = f_interval(0.6, n)
    got = f_width(TargetIcc(single_rater_icc(0.6), 2, 2), n, assurance=0.5)
    assert got.assured == pytest.approx(ends.high - ends.low, rel=1e-3)
    assert got.assured == pytest.approx(width, abs=0.01)


def test_the_mean_width_of_an_icc_of_two_is_known_in_closed_form():
    n, icc = 40, 0.5
    q = stats.f.ppf(0.975, n - 1, n - 1)
    mean = (1 - icc) * (n - 1) / (n - 3) * (q - 1 / q)
    assert f_width(TargetIcc(single_rater_icc(icc), 2, 2), n).mean == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize(
    "aim",
    [TargetIcc(0.31), TargetIcc(0.9), TargetIcc(single_rater_icc(0.6), 2, 2), TargetIcc(0.4, 3, 2)],
)
def test_the_exact_number_is_the_least_that_keeps_the_width(aim):
    n = exact_n(aim, 0.3)
    assert f_width(aim, n).assured <= 0.3 < f_width(aim, n - 1).assured


def simulated_widths(aim, n, studies, seed=0):
    """Return widths of F intervals of studies with ratings: response + rater + error."""
    random, k, r = np.random.default_rng(seed), aim.columns, aim.single
    response = math.sqrt(r) * random.normal(size=(studies, n, 1))
    error = math.sqrt(1 - r) * random.normal(size=(studies, n, k))
    iccs = icc_consistency(response + error + random.normal(size=(1, 1, k)))
    ends = [f_interval(float(icc), n, k) for icc in iccs]
    step = aim.of / k
    return np.array(
        [spearman_brown(end.high, step) - spearman_brown(end.low, step) for end in ends]
    )


@pytest.mark.parametrize("aim", [TargetIcc(0.31), TargetIcc(0.5, 3, 2)])
def test_the_widths_told_are_those_of_simulated_ratings(aim):
    found, got = simulated_widths(aim, 60, 2000), f_width(aim, 60)
    assert found.mean() == pytest.approx(got.mean, rel=0.01)
    assert np.quantile(found, 0.8) == pytest.approx(got.assured, rel=0.015)


@pytest.mark.slow
@pytest.mark.parametrize(
    "aim",
    [
        TargetIcc(0.31),
        TargetIcc(0.5),
        TargetIcc(0.4, 3),
        TargetIcc(0.43, 2, 2),
        TargetIcc(0.4, 3, 2),
    ],
)
@pytest.mark.parametrize("width", [0.2, 0.3])
def test_the_numbers_give_the_width_on_average_and_with_assurance(aim, width):
    on_average = simulated_widths(aim, bonett_n(aim, width), 4000)
    assured = simulated_widths(aim, exact_n(aim, width), 4000, seed=1)
    assert on_average.mean() == pytest.approx(width, rel=0.05)
    assert np.mean(assured <= width) >= 0.78


@pytest.mark.slow
@pytest.mark.parametrize("aim", [TargetIcc(0.31), TargetIcc(0.5), TargetIcc(0.4, 3)])
def test_zous_number_keeps_its_promise_where_the_icc_is_moderate(aim):
    assert np.mean(simulated_widths(aim, zou_n(aim, 0.25), 4000) <= 0.25) >= 0.78
