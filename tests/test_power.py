"""Power for a difference of two ICCs: known standard deviations, real tests on simulated studies."""

import math
from dataclasses import replace

import numpy as np
import pytest
from kit.scores import scope_of

from calibration.agreement import PanelColumns
from calibration.differences import difference_rows
from calibration.planning.power import (
    ComparedScorers,
    detectable,
    power,
    responses_for,
    standard_error,
)
from data.errors import BadInput

HALF_SHARED = ComparedScorers(0.54)  # the ICC at which the published standard deviations come out


@pytest.mark.parametrize(
    ("n", "sd", "rule"),
    [(56, 0.132, 0.37), (250, 0.057, 0.16), (1000, 0.028, 0.08), (2000, 0.02, 0.055)],
)
def test_the_standard_deviations_of_juries_that_share_half_their_error(n, sd, rule):
    found = power(HALF_SHARED, n).sd
    assert found == pytest.approx(sd, rel=0.04)
    assert 2.8 * found == pytest.approx(rule, rel=0.04)


def test_simulated_and_asymptotic_standard_deviations_are_the_same_in_many_responses():
    for contest in (HALF_SHARED, ComparedScorers(0.7, 0.3, 0.0), ComparedScorers(0.4, 0.2, 0.8)):
        _, a, b = contest.correlations[0]
        expected = standard_error(a, b, contest.correlations[1, 2], 5000)
        assert power(contest, 5000).sd == pytest.approx(float(expected), rel=0.03)


def test_the_drawn_studies_are_those_of_drawn_responses():
    contest, n = ComparedScorers(0.6, 0.2, 0.3), 60
    rows = np.random.default_rng(3).multivariate_normal(
        np.zeros(3), contest.correlations, (4000, n)
    )
    r = np.array([np.corrcoef(one.T) for one in rows])
    a, b, c = r[:, 0, 1], r[:, 0, 2], r[:, 1, 2]
    gap = 2 * a / (1 + a) - 2 * b / (1 + b)
    shown = np.mean(gap > 1.96 * standard_error(a, b, c, n))
    found = power(contest, n)
    assert gap.std() == pytest.approx(found.sd, rel=0.04)
    assert shown == pytest.approx(found.power, abs=0.025)


@pytest.mark.parametrize("n", [56, 200, 1000])
def test_without_a_difference_few_studies_show_one(n):
    assert power(ComparedScorers(0.5), n).power < 0.03


def test_what_is_detectable_is_found_with_80_percent_power_and_by_the_responses_it_takes():
    gap = detectable(ComparedScorers(0.6), 200)
    assert power(ComparedScorers(0.6, gap), 200).power == pytest.approx(0.8, abs=0.01)
    assert responses_for(ComparedScorers(0.6, gap)) == pytest.approx(200, rel=0.03)
    # 2.8 standard deviations without a difference are too few: one makes the estimates vary more.
    assert gap > 2.8 * power(ComparedScorers(0.6), 200).sd


def test_more_responses_more_shared_error_and_a_larger_difference_are_easier():
    base = power(ComparedScorers(0.6, 0.2), 100).power
    assert power(ComparedScorers(0.6, 0.2), 200).power > base
    assert power(ComparedScorers(0.6, 0.3), 100).power > base
    assert power(ComparedScorers(0.6, 0.2, 0.9), 100).power > base
    assert power(ComparedScorers(0.6, 0.2, 0.0), 100).power < base


def test_the_same_seed_is_the_same_power_and_another_one_agrees_within_its_error():
    first, again, other = (power(ComparedScorers(0.5, 0.2), 150, seed) for seed in (0, 0, 1))
    assert first == again
    assert abs(first.power - other.power) < 5 * first.mc_error
    assert first.mc_error == pytest.approx(math.sqrt(first.power * (1 - first.power) / 20_000))


def test_scorers_that_share_all_error_are_no_crash():
    found = power(ComparedScorers(0.5, 0.0, 1.0), 100)
    assert found.sd == pytest.approx(0.0, abs=1e-6)


def test_a_study_too_small_for_any_difference_says_so():
    assert math.isnan(detectable(ComparedScorers(0.54), 30))
    assert detectable(ComparedScorers(0.1), 1000) > 0.1  # only from a scorer that disagrees
    assert responses_for(ComparedScorers(0.5)) is None
    assert responses_for(ComparedScorers(0.5, 0.0005)) is None


@pytest.mark.parametrize("wrong", [{"jury": 1.0}, {"jury": 0.5, "difference": -0.1}])
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(BadInput):
        ComparedScorers(**wrong)
    with pytest.raises(BadInput):
        ComparedScorers(0.5, 0.1, 1.5)
    with pytest.raises(BadInput, match="4 or more"):
        power(ComparedScorers(0.5), 3)


@pytest.mark.slow
def test_the_power_told_is_about_how_often_calibrate_finds_the_difference():
    contest, n, found = ComparedScorers(0.6, 0.25, 0.5), 120, []
    for seed in range(250):
        random = np.random.default_rng(seed)
        table = random.multivariate_normal(np.zeros(3), contest.correlations, n)
        scope = scope_of(table, 1, reps=299, seed=seed, method="published")
        one, other = PanelColumns(("j0",), 1), PanelColumns(("j1",), 1)
        row = difference_rows(replace(scope, jury=one), {"other": other})[-1]
        found.append(row.p <= 0.05 and row.difference > 0)
    assert np.mean(found) == pytest.approx(power(contest, n).power, abs=0.08)
