"""Bias and limits of agreement: a published table, scipy, and properties."""

import numpy as np
import pytest
from scipy import stats

from calibration.other_measures import bland_altman

# Bland & Altman (1986), table 1: first peak flow by the large Wright meter and by the mini one.
LARGE = [494, 395, 516, 434, 476, 557, 413, 442, 650, 433, 417, 656, 267, 478, 178, 423, 427]
MINI = [512, 430, 520, 428, 500, 600, 364, 380, 658, 445, 432, 626, 260, 477, 259, 350, 451]
PEAK_FLOW = np.array(LARGE, float) - np.array(MINI, float)


def ends(interval):
    return (interval.low, interval.high)


def test_the_peak_flow_meters_of_the_source_come_out_as_printed():
    # Printed there: mean -2.1, sd 38.8, interval of the bias -22.0 to 17.8. The source rounds
    # 1.96 to 2 for the limits, -79.7 and 75.5.
    bias, interval, limits = bland_altman(PEAK_FLOW)

    assert bias == pytest.approx(-2.1, abs=0.05)
    assert ends(interval) == pytest.approx((-22.0, 17.8), abs=0.1)
    assert (limits.high - bias) / 1.96 == pytest.approx(38.8, abs=0.05)
    assert ends(limits) == pytest.approx((-79.7 + 0.04 * 38.8, 75.5 - 0.04 * 38.8), abs=0.1)


def test_the_interval_of_the_bias_is_scipys_of_one_mean():
    theirs = stats.ttest_1samp(PEAK_FLOW, 0.0).confidence_interval(0.95)

    assert ends(bland_altman(PEAK_FLOW)[1]) == pytest.approx(tuple(theirs))


@pytest.mark.parametrize(
    ("change", "bias", "width"),
    [
        (lambda d: d + 2, lambda b: b + 2, 1.0),
        (lambda d: 3 * d, lambda b: 3 * b, 3.0),
        (lambda d: -d, lambda b: -b, 1.0),
        (lambda d: d[::-1], lambda b: b, 1.0),
    ],
    ids=["shift", "scale", "exchange", "permutation"],
)
def test_shift_scale_exchange_and_order_move_only_what_they_should(change, bias, width):
    before, after = bland_altman(PEAK_FLOW), bland_altman(change(PEAK_FLOW))

    assert after[0] == pytest.approx(bias(before[0]))
    for old, new in zip(before[1:], after[1:], strict=True):
        assert new.high - new.low == pytest.approx(width * (old.high - old.low))


def test_one_difference_has_a_bias_and_no_limits_and_none_has_nothing():
    alone, nothing = bland_altman(np.array([1.5])), bland_altman(np.array([]))

    assert alone[0] == 1.5
    assert np.isnan(nothing[0])
    assert np.isnan([*ends(alone[1]), *ends(alone[2])]).all()


def test_equal_differences_leave_intervals_without_width():
    assert ends(bland_altman(np.full(5, 0.5))[2]) == (0.5, 0.5)


def test_responses_of_one_instance_count_as_one_where_they_are_alike():
    random = np.random.default_rng(1)
    differences = random.normal(size=12)
    once = bland_altman(differences)
    thrice = bland_altman(np.repeat(differences, 3), np.repeat(np.arange(12), 3))
    assert thrice[0] == pytest.approx(once[0])
    assert ends(thrice[1]) == pytest.approx(ends(once[1]))
    assert ends(bland_altman(np.append(differences, np.nan))[1]) == pytest.approx(ends(once[1]))
