"""The Pareto front of agreement against money."""

import math

import numpy as np
import pytest

from calibration.juries.ranking import on_front

NAN = math.nan


def by_definition(icc, usd):
    """Compare every jury with every other one."""
    pairs = list(zip(icc, usd, strict=True))

    def beaten(one):
        return any(
            other[0] >= one[0] and other[1] <= one[1] and other != one
            for other in pairs
            if not math.isnan(sum(other))
        )

    return [not math.isnan(sum(one)) and not beaten(one) for one in pairs]


def test_a_front_worked_by_hand():
    # 0.5 for 3 is beaten by 0.6 for 2; 0.9 for 5 by nobody; 0.6 for 4 has an equal for less.
    icc = np.array([0.3, 0.6, 0.5, 0.9, 0.6])
    usd = np.array([1.0, 2.0, 3.0, 5.0, 4.0])
    assert on_front(icc, usd).tolist() == [True, True, False, True, False]


def test_juries_equal_in_both_stand_on_it_together():
    assert on_front(np.array([0.6, 0.6, 0.6]), np.array([2.0, 2.0, 2.5])).tolist() == [1, 1, 0]


@pytest.mark.parametrize(("icc", "usd"), [(0.9, NAN), (NAN, 0.0), (NAN, NAN)])
def test_who_has_no_icc_or_no_known_cost_is_off_it_and_keeps_nobody_off(icc, usd):
    assert on_front(np.array([0.6, icc]), np.array([2.0, usd])).tolist() == [True, False]


def test_nobody_is_on_the_front_of_nothing():
    assert on_front(np.array([]), np.array([])).tolist() == []


@pytest.mark.parametrize("seed", range(20))
def test_it_is_what_comparing_all_with_all_finds(seed):
    random = np.random.default_rng(seed)
    icc, usd = random.integers(0, 6, 30) / 10, random.integers(0, 6, 30) / 4
    icc[random.random(30) < 0.1], usd[random.random(30) < 0.1] = NAN, NAN
    assert on_front(icc, usd).tolist() == by_definition(icc, usd)
