"""Intervals where all resamples agree: by published bounds, at the ends, and where truth is known."""

import math

import numpy as np
import pytest
from scipy import stats

from calibration.bootstrap import percentile_interval
from calibration.icc import Interval
from calibration.models.gaps import gap_interval, mean_interval, share_interval, unseen_reach

ONE = Interval(1.0, 1.0)


@pytest.mark.parametrize("n", [1, 5, 20, 300])
def test_scores_that_are_all_1_have_the_lower_end_of_jeffreys_interval(n):
    found = mean_interval(ONE, np.array([1.0]), np.array([float(n)]))
    assert found.low == pytest.approx(stats.beta.ppf(0.025, n + 0.5, 0.5))
    assert found.high == 1


@pytest.mark.parametrize(("n", "low"), [(10, 0.722), (20, 0.839), (100, 0.963)])
def test_a_win_rate_of_1_has_wilsons_published_lower_end(n, low):
    # n / (n + 1.96^2): Newcombe (1998), Statistics in Medicine 17, 857, of 10 of 10 and so on.
    found = share_interval(ONE, 1.0, n)
    assert found.low == pytest.approx(low, abs=5e-4)
    assert found.high == 1


def test_several_benchmarks_are_about_as_sure_as_their_sum_drawn_out():
    random, distances = np.random.default_rng(0), np.array([1.0, 0.2, 0.9])
    instances = np.array([8.0, 30.0, 12.0])
    drawn = random.beta(0.5, instances + 0.5, size=(200_000, 3)) @ distances / 3
    reach = unseen_reach(distances, instances)
    assert reach == pytest.approx(np.quantile(drawn, 0.975), rel=0.03)
    assert unseen_reach(np.zeros(3), instances) == 0


def test_an_interval_with_any_width_or_none_at_all_stays_as_it_is():
    values, instances = np.array([0.5]), np.array([10.0])
    for ends in (Interval(0.4, 0.6), Interval(math.nan, math.nan)):
        assert mean_interval(ends, values, instances) is ends
        assert gap_interval(ends, values, instances) is ends
        assert share_interval(ends, 0.5, 10) is ends


def test_a_difference_that_is_always_the_same_reaches_to_both_sides():
    none = gap_interval(Interval(0.0, 0.0), np.array([0.0]), np.array([30.0]))
    assert none.low == pytest.approx(-none.high)
    most = gap_interval(ONE, np.array([1.0]), np.array([30.0]))
    assert (most.low < 1, most.high) == (True, 1)


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 20, 56])
@pytest.mark.parametrize("rare", [0.005, 0.02, 0.05])
def test_a_mean_at_the_top_of_the_scale_is_held_where_the_bootstrap_alone_holds_nothing(n, rare):
    random, alone, found = np.random.default_rng([n, int(1000 * rare)]), [], []
    true = 1 - 0.5 * rare  # a few responses score half
    for _ in range(2000):
        scores = np.where(random.random(n) < rare, 0.5, 1.0)
        drawn = scores[random.integers(0, n, size=(200, n))].mean(axis=1)
        ends = percentile_interval(drawn)
        wider = mean_interval(ends, np.array([scores.mean()]), np.array([float(n)]))
        alone.append(ends.low <= true <= ends.high)
        found.append(wider.low <= true <= wider.high)
    never_seen = (1 - rare) ** n
    assert np.mean(alone) < 1 - 0.9 * never_seen
    assert np.mean(found) > 0.93


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 10, 20])
def test_a_win_rate_is_held_in_95_percent_of_studies_however_few_instances(n):
    # Three models a little apart: by few instances one often wins in all resamples by luck.
    random, means, alone, found = np.random.default_rng(n), np.array([0.6, 0.5, 0.45]), [], []
    for _ in range(1500):
        scores = means[:, None] + 0.2 * random.normal(size=(3, n))
        draws = random.integers(0, n, size=(200, n))
        drawn = scores[:, draws].mean(axis=2)
        wins = (drawn[0] > drawn[1:]).mean(axis=0)
        share = float((scores[0].mean() > scores[1:].mean(axis=1)).mean())
        ends = percentile_interval(wins)
        wider = share_interval(ends, share, n)
        alone.append(ends.low <= 1 <= ends.high)
        found.append(wider.low <= 1 <= wider.high)
    assert np.mean(found) >= np.mean(alone)
    assert np.mean(found) > 0.93
