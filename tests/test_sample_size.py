"""Bonett's number of responses: published values, simulated intervals, and what must not matter."""

import math

import numpy as np
import pytest
from scipy import stats

from calibration.icc import spearman_brown
from calibration.planning.sample_size import (
    TargetIcc,
    bonett_n,
    finite_population_n,
    icc_spread,
    single_rater_icc,
)
from data.errors import BadInput


@pytest.mark.parametrize(
    ("r", "width", "n"),
    [
        (0.31, 0.2, 315),
        (0.31, 0.3, 141),
        (0.5, 0.2, 218),
        (0.5, 0.3, 98),
        (0.7, 0.2, 101),
        (0.7, 0.3, 46),
    ],
)
def test_the_numbers_of_the_formula_of_2002(r, width, n):
    assert bonett_n(TargetIcc(r), width) == n


@pytest.mark.parametrize("k", [2, 3, 5])
def test_it_is_the_printed_formula_for_any_number_of_clinicians(k):
    r, w, z = 0.4, 0.25, stats.norm.ppf(0.975)
    printed = 8 * z**2 * (1 - r) ** 2 * (1 + (k - 1) * r) ** 2 / (k * (k - 1) * w**2) + 1
    assert bonett_n(TargetIcc(r, k), w) == math.ceil(printed)


@pytest.mark.parametrize(("icc", "single"), [(0.474, 0.3106), (0.6, 3 / 7), (0.0, 0.0)])
def test_an_icc_of_two_and_a_single_rater_icc_are_turned_into_each_other(icc, single):
    assert single_rater_icc(icc) == pytest.approx(single, abs=5e-5)
    assert TargetIcc(single_rater_icc(icc), 2, 2).icc == pytest.approx(icc)
    assert spearman_brown(single_rater_icc(icc), 2) == pytest.approx(icc)


@pytest.mark.parametrize(("k", "of"), [(2, 1), (2, 2), (3, 2), (4, 1)])
def test_the_spread_is_the_standard_error_in_simulated_studies(k, of):
    random, n, studies, r = np.random.default_rng(k + of), 400, 4000, 0.45
    error = random.f((n - 1) * (k - 1), n - 1, studies)
    panel = 1 - (1 - spearman_brown(r, k)) * error
    found = np.array([spearman_brown(float(one), of / k) for one in panel])
    assert found.std() * math.sqrt(n - 1) == pytest.approx(
        icc_spread(TargetIcc(r, k, of)), rel=0.05
    )


def test_a_narrower_interval_or_more_confidence_takes_more_responses():
    few = bonett_n(TargetIcc(0.5), 0.3)
    assert bonett_n(TargetIcc(0.5), 0.15) == pytest.approx(4 * few, rel=0.02)
    assert bonett_n(TargetIcc(0.5), 0.3, confidence=0.99) > few
    assert bonett_n(TargetIcc(0.5, 4), 0.3) < few


def test_no_plan_asks_for_fewer_than_three_responses():
    assert bonett_n(TargetIcc(0.99), 1.0) == 3


@pytest.mark.parametrize(("population", "n"), [(120, 34), (150, 36)])
def test_the_papers_own_plan_with_its_finite_benchmarks(population, n):
    # Its script: r = .75, width .3, Zou: 47 responses; ACI-Bench has 120 instances, MEDIQA 150.
    assert finite_population_n(47, population) == n


def test_a_correction_never_exceeds_the_population_and_vanishes_in_a_large_one():
    assert finite_population_n(500, 10) == 10
    assert finite_population_n(500, 1) == 1
    assert finite_population_n(500, 10**9) == 500
    assert finite_population_n(3, 3) <= 3


@pytest.mark.parametrize(
    "wrong", [(1.0, 2, 1), (-1.0, 2, 1), (-0.5, 3, 1), (0.5, 2, 3), (0.5, 1, 1)]
)
def test_what_cannot_be_an_icc_is_refused(wrong):
    with pytest.raises(BadInput):
        TargetIcc(*wrong)


@pytest.mark.parametrize("width", [0.0, -0.2, math.nan, math.inf])
def test_a_width_that_is_none_is_refused(width):
    with pytest.raises(BadInput, match="a width of"):
        bonett_n(TargetIcc(0.5), width)


def test_a_population_of_nothing_is_refused():
    with pytest.raises(BadInput, match="population"):
        finite_population_n(10, 0)
