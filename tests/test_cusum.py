"""The CUSUM: a worked example, its properties, and how soon it finds a fall."""

import math

import numpy as np
import pytest
from periods_study import row

from calibration.codes import NoteCode as Code
from calibration.monitoring.cusum import falling_cusum
from calibration.monitoring.fisher import fisher_z, independent_se
from calibration.monitoring.watch import Normal, spread, watch
from calibration.values import note

ONE = np.ones(6)
NAN = math.nan


def test_falls_add_up_less_the_allowance_and_never_below_zero():
    # target 10: steps 1, -2, 3, 2 less .5 each: .5, then 0, then 2.5, then 4.
    found = falling_cusum(np.array([9.0, 12, 7, 8]), np.ones(4), 10)

    assert found.sums.tolist() == [0.5, 0, 2.5, 4]
    assert found.alarm == 3


def test_the_alarm_is_the_first_time_and_recovery_does_not_move_it():
    found = falling_cusum(np.array([0.0, -5, 0, 9, 9, -9]), ONE, 0.0)
    assert (found.alarm, found.sums[3]) == (1, 0)


def test_a_period_without_a_value_leaves_the_sum_as_it_was():
    values = np.array([-2.0, NAN, -2.0])
    found = falling_cusum(values, np.ones(3), 0.0)
    assert found.sums.tolist() == [1.5, 1.5, 3]
    assert falling_cusum(values, np.array([1, 1, NAN]), 0.0).sums.tolist() == [1.5, 1.5, 1.5]


def test_a_common_shift_and_scale_change_nothing():
    values = np.random.default_rng(0).normal(size=20)
    errors = np.linspace(0.5, 1, 20)
    own = falling_cusum(values, errors, 0.3).sums
    assert falling_cusum(2 * values + 7, 2 * errors, 7.6).sums == pytest.approx(own)


def test_without_a_target_nothing_is_compared():
    assert falling_cusum(np.full(3, -9.0), np.ones(3), NAN).alarm is None


def test_the_baseline_is_the_mean_weighted_by_precision_and_is_not_watched():
    rows = [row(0, 0.6, 20), row(1, 0.4, 80), row(2, 0.5, 20), row(3, 0.2, 20)]
    found = watch(rows, Normal(periods=2))
    weights = np.array([spread(one) ** -2 for one in rows[:2]])
    z = weights @ [rows[0].fisher_z, rows[1].fisher_z] / weights.sum()

    assert float(fisher_z(found.target_icc)) == pytest.approx(z)
    assert found.target_low < found.target_icc < found.target_high
    assert [one.role for one in found.rows] == ["baseline", "baseline", "watched", "watched"]
    assert found.rows[3].cusum == pytest.approx((z - rows[3].fisher_z) / independent_se(20) - 0.5)


def test_an_error_smaller_than_chance_alone_is_not_believed():
    assert spread(row(0, 0.6, 20, se=0.01)) == independent_se(20)
    assert spread(row(0, 0.6, 20, se=0.9)) == 0.9


def test_too_few_undefined_and_perfect_periods_are_left_out_with_the_reason():
    rows = [row(0, 0.6), row(1, NAN), row(2, 1.0), row(3, 0.6, 5, too_few=True), row(4, 0.5)]
    found = watch(rows, Normal(None, 0.6, None, "given"))
    assert [one.role for one in found.rows] == ["watched", *["left out"] * 3, "watched"]
    assert [one.notes[0].code for one in found.rows[1:4]] == [
        Code.LEFT_OUT_NO_Z,
        Code.LEFT_OUT_NO_Z,
        Code.LEFT_OUT_FEW,
    ]


def test_where_there_are_not_enough_periods_there_is_no_cusum_and_it_is_said():
    found = watch([row(0, 0.6), row(1, 0.1)], Normal(periods=3))
    assert found.rows == ()
    assert found.reason == note(Code.NO_CUSUM_YET, periods=2, baseline=3)


def test_of_a_report_only_periods_that_end_after_it_are_watched():
    rows = [row(place, 0.6) for place in range(4)]
    found = watch(rows, Normal(None, 0.5, rows[2].start, "report 1"))
    assert [one.role for one in found.rows] == ["baseline"] * 2 + ["watched"] * 2
    assert found.target_icc == pytest.approx(0.5)


def test_the_newest_filled_period_is_judged_and_an_unfilled_one_only_if_it_is_alone():
    little = row(3, -0.9, 4, too_few=True, unfilled=True)
    assert watch([row(0, 0.6), little], Normal()).judged.period == "p0"
    assert watch([little], Normal()).judged is little


def test_earlier_periods_are_those_before_the_judged_one_with_an_icc_that_counts():
    rows = [row(0, 0.6), row(1, NAN), row(2, 0.9, 4, too_few=True), row(3, 0.5), row(4, 0.4)]
    last = row(5, 0.1, 3, too_few=True, unfilled=True)
    found = watch([*rows, last], Normal())
    assert found.judged.period == "p4"
    assert [one.period for one in found.earlier] == ["p0", "p3"]
    assert watch(rows[:1], Normal()).earlier == ()


def delays(now, n, runs, periods, seed=0, baseline=0):
    """Return the period of the first alarm of many studies, `periods` + 1 where there is none.

    The sampling of z is exact: half the log of an F ratio of mean squares.
    """
    random = np.random.default_rng(seed)

    def z(icc, size):
        return float(fisher_z(icc)) + np.log(random.f(n - 1, n - 1, size=size)) / 2

    targets = z(0.6, (runs, baseline)).mean(axis=1) if baseline else np.full(runs, fisher_z(0.6))
    errors = np.full(periods, independent_se(n))
    found = [falling_cusum(z(now, periods), errors, float(one)).alarm for one in targets]
    return np.array([periods + 1 if one is None else one + 1 for one in found])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("icc", "n", "mean"), [(0.4, 20, 11), (0.2, 20, 5), (0.4, 40, 6), (0.2, 40, 3)]
)
def test_a_fall_is_found_as_soon_as_the_docs_say(icc, n, mean):
    assert delays(icc, n, 2000, 120).mean() == pytest.approx(mean, rel=0.15)


@pytest.mark.slow
def test_while_nothing_changes_an_alarm_comes_rarer_than_every_250_periods():
    found = delays(0.6, 20, 1500, 400)
    assert np.minimum(found, 400).sum() / (found <= 400).sum() > 250


@pytest.mark.slow
@pytest.mark.parametrize(("baseline", "false"), [(3, 0.25), (6, 0.19), (12, 0.14)])
def test_a_target_from_few_periods_raises_false_alarms_as_often_as_the_docs_say(baseline, false):
    found = delays(0.6, 20, 3000, 24, baseline=baseline)
    assert (found <= 24).mean() == pytest.approx(false, abs=0.03)
