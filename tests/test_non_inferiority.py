"""How many responses show that a jury is no worse than a clinician: simulated, and in closed form."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from kit.composites import TWO_JURORS, grid_of

from calibration.codes import PlanningCode
from calibration.like_for_like import like_for_like
from calibration.planning.plan import assumed_iccs, plan_rows
from calibration.planning.power import (
    JuryAndClinicians,
    _like_for_like_differences,
    non_inferiority_power,
    non_inferiority_responses,
    non_inferiority_rows,
)
from calibration.planning.rows import PlanOptions
from calibration.values import note
from data.errors import BadInput
from medjury.services.planning import Assumption, plan_from_assumption


def of_two(single):
    return 2 * single / (1 + single)


def closed_form_sd(rho, n):
    """Return the SD of like for like with two clinicians and a jury like them, all crossed.

    The correlations of three raters with rho in common have variance v = (1 - rho^2)^2 / n and,
    sharing a rater, covariance k (Olkin & Siotani 1976); the difference is of the mean of two and
    the third, 1.5 (v - k), by the delta method for 2 r / (1 + r).
    """
    v = (1 - rho**2) ** 2
    k = (2 * rho - rho**2) * (1 - 3 * rho**2) / 2 + rho**3
    return 2 / (1 + rho) ** 2 * math.sqrt(1.5 * (v - k) / n)


@pytest.mark.parametrize("rho", [0.2, 0.4, 0.7])
@pytest.mark.parametrize("n", [300, 1000])
def test_the_simulated_spread_and_power_are_those_of_the_closed_form(rho, n):
    found = non_inferiority_power(JuryAndClinicians(rho, rho), 0.1, n)
    expected = closed_form_sd(rho, n)
    assert found.sd == pytest.approx(expected, rel=0.03)
    assert found.power == pytest.approx(NormalDist().cdf(0.1 / expected - 1.96), abs=0.02)


def test_a_jury_that_is_worse_by_the_margin_passes_in_one_study_of_forty():
    """At single-rater ICC 0.4: 2 r / (1 + r) is 0.571, and a jury at 0.471 correlates 0.308."""
    worse = (of_two(0.4) - 0.1) / (2 - of_two(0.4) + 0.1)
    assert of_two(worse) == pytest.approx(of_two(0.4) - 0.1)
    assert 0.015 < non_inferiority_power(JuryAndClinicians(0.4, worse), 0.1, 1000).power < 0.035


def test_more_responses_a_wider_margin_and_more_clinicians_show_more():
    like = JuryAndClinicians(0.4, 0.4)
    assert (
        non_inferiority_power(like, 0.1, 300).power
        < non_inferiority_power(like, 0.1, 600).power
        < non_inferiority_power(like, 0.15, 600).power
    )
    assert (
        non_inferiority_power(like, 0.1, 300).power
        < non_inferiority_power(JuryAndClinicians(0.4, 0.4, 4), 0.1, 300).power
    )


def test_the_responses_that_are_told_have_the_power_that_is_wanted_and_fewer_have_not():
    like = JuryAndClinicians(0.4, 0.4)
    n = non_inferiority_responses(like, 0.1, 0.8)
    assert n is not None
    assert (
        non_inferiority_power(like, 0.1, n).power
        >= 0.8
        > non_inferiority_power(like, 0.1, round(0.95 * n)).power
    )
    assert non_inferiority_responses(JuryAndClinicians(0.4, 0.1), 0.1, 0.8) is None


@pytest.mark.parametrize("clinicians", [2, 4])
def test_power_is_told_from_two_responses_more_than_clinicians(clinicians):
    """The last of clinicians and jury has n - 1 - clinicians degrees of freedom: 1 or more."""
    like, least = JuryAndClinicians(0.4, 0.4, clinicians), clinicians + 2
    assert math.isfinite(non_inferiority_power(like, 0.1, least).power)
    below = non_inferiority_power(like, 0.1, least - 1)
    assert [*map(math.isnan, (below.power, below.mc_error, below.sd))] == [True] * 3


def test_a_plan_of_too_few_responses_for_its_clinicians_says_so_instead_of_a_power():
    options = PlanOptions(per_response=4, responses=5, margin=0.1)
    expected = [*assumed_iccs(0.5, None, 4)][:1]
    (row,) = non_inferiority_rows(plan_rows(expected, options), options)
    assert (row.n, math.isnan(row.power), math.isnan(row.sd)) == (5, True, True)
    assert row.told(PlanningCode.FEW_FOR_POWER) == note(PlanningCode.FEW_FOR_POWER, least=6)
    assert row.n_for_power == non_inferiority_responses(
        JuryAndClinicians(1 / 3, 1 / 3, 4), 0.1, 0.8
    )
    plan = plan_from_assumption(Assumption(0.5), options)
    assert any("5 responses are too few to say how often they show" in one for one in plan.told)
    assert not any("nan" in one for one in plan.told)


@pytest.mark.parametrize("clinicians", [2, 4])
def test_what_is_simulated_is_the_agreement_tables_like_for_like(clinicians):
    random = np.random.default_rng(clinicians)
    true = random.normal(size=(80, 1))
    raters = true + random.normal(size=(80, clinicians + 1))
    table = np.column_stack([raters, raters[:, -1]])
    grid = grid_of(table)
    covariances = np.cov(raters.T)[None]
    expected = like_for_like(grid, TWO_JURORS, "paper").difference
    assert _like_for_like_differences(covariances)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ((0.4, 0.4, 1), "two clinicians"),
        ((0.0, 0.9, 2), "cannot be"),
        ((-0.9, 0.0, 4), "cannot be"),
    ],
)
def test_raters_that_cannot_be_are_refused(wrong, told):
    with pytest.raises(BadInput, match=told):
        JuryAndClinicians(*wrong)
