"""The scan of falls: worked examples, its properties, and limits held against a normal integral."""

import math
from dataclasses import replace

import numpy as np
import pytest
from kit.scores import row, watching
from scipy import integrate, stats

from calibration.monitoring import (
    finite_z,
    independent_se,
    limits,
    scan_falls,
    watch,
    window_factor,
)
from calibration.notes import note

NAN = math.nan
ZERO, ONE = np.zeros(4), np.ones(4)
KNOWN = watching(target=0.6)


def test_falls_add_up_over_the_window_that_shows_them_most():
    # Errors 1, 4 periods a year: the last 2 ask for sqrt(4/2), 3 for sqrt(4/3), 4 for 1; so the scan
    # is that of the falls of the window by sqrt(4). Of 1 -2 3 2: -1, then 1, then 3 + 2 = 5.
    scan, windows = scan_falls(np.array([1.0, -2, 3, 2]), ONE, ONE, ZERO, 4)

    assert scan[1:] == pytest.approx([-0.5, 1, 2.5])
    assert windows.tolist() == [0, 2, 3, 2]


def test_one_period_alone_has_no_scan():
    assert scan_falls(np.array([99.0]), ONE[:1], ONE[:1], ZERO[:1], 12)[0] == [-np.inf]


def test_weights_are_responses_and_the_targets_error_is_in_the_scan():
    # Mean of 1 and 4 with weights 3 and 1: 7/4; its variance 2 / 4, the target's 1/2.
    scan, _ = scan_falls(
        np.array([1.0, 4]), np.array([3.0, 1]), np.array([9.0, 2]), np.array([9.0, 0.5]), 2
    )
    assert scan[1] == pytest.approx(7 / 4)


def test_a_common_shift_and_scale_change_nothing():
    falls = np.random.default_rng(0).normal(size=(3, 20))
    weights = np.linspace(0.5, 1, 20)
    own = scan_falls(falls, weights, np.ones(20), np.ones(20), 12)[0]
    twice = scan_falls(2 * falls, weights, np.full(20, 4.0), np.full(20, 4.0), 12)[0]
    alone = scan_falls(falls[1], weights, np.ones(20), np.ones(20), 12)[0]
    assert twice == pytest.approx(own)
    assert alone == pytest.approx(own[1])


def test_a_short_window_must_show_a_fall_of_more_errors_but_never_much_more():
    asked = [window_factor(window, 12) for window in range(2, 13)]
    assert asked == sorted(asked, reverse=True)
    assert (max(asked), asked[-1]) == (1.6, 1)


def test_the_limit_of_two_periods_a_year_is_the_normal_quantile():
    # In the first year of two periods there is one look, at both: a one-sided z test.
    assert limits(np.inf, 2, 0.05, 1)[0] == pytest.approx(stats.norm.ppf(0.95), abs=0.03)
    assert limits(3.0, 2, 0.1, 1)[0] == pytest.approx(stats.norm.ppf(0.9), abs=0.03)


def test_the_limit_of_three_periods_a_year_is_that_of_an_integral():
    # Looks at x1 + x2, then at x2 + x3 and x1 + x2 + x3: within the limit c with x2 given, x1 is
    # below p - x2 and x3 below p - x2, and x1 + x3 below s - x2, with p, s what c allows.
    (limit,) = limits(np.inf, 3, 0.05, 1)
    pair, whole = limit * window_factor(2, 3) * math.sqrt(2), limit * math.sqrt(3)

    def quiet(x1, x2):
        most = min(pair - x2, whole - x1 - x2)
        return stats.norm.pdf(x1) * stats.norm.pdf(x2) * stats.norm.cdf(most)

    found, _ = integrate.dblquad(quiet, -6, 6, -6, lambda x2: pair - x2, epsabs=1e-4)
    assert found == pytest.approx(0.95, abs=0.004)


def test_the_baseline_is_the_mean_weighted_by_responses_and_is_not_watched():
    rows = [row(0, 0.6, 20), row(1, 0.4, 80), row(2, 0.5, 20), row(3, 0.2, 20)]
    found = watch(rows, watching(baseline=2))
    z = (18 * rows[0].fisher_z + 78 * rows[1].fisher_z) / 96

    assert finite_z(found.target_icc) == pytest.approx(z)
    assert [one.role for one in found.periods] == ["baseline", "baseline", "watched", "watched"]
    fall = z - (rows[2].fisher_z + rows[3].fisher_z) / 2
    error = math.sqrt(1 / 96 + 1 / 36)
    assert found.periods[2].scan is None
    assert found.periods[3].scan == pytest.approx(fall / error / 1.6)


def test_an_error_smaller_than_chance_alone_is_not_believed():
    scans = [watch([row(0, 0.3, se=se)] * 2, KNOWN).periods[1].scan for se in (0.01, 0.1, 0.9)]
    assert scans[0] == scans[1] > scans[2]


def test_a_reports_own_error_makes_its_target_less_certain():
    rows = [row(n, 0.3) for n in range(4)]
    exact, report = (
        watch(rows, watching(target=0.6, target_se=se)) for se in (0.0, independent_se(60))
    )
    assert exact.periods[3].scan > report.periods[3].scan


@pytest.mark.parametrize("every", ["week", "month", "quarter"])
@pytest.mark.parametrize("rate", [0.01, 0.2])
def test_one_period_alone_is_never_a_fall_however_low(every, rate):
    rows = [*(row(n, 0.6) for n in range(8)), row(8, -900.0), row(9, 0.6)]
    options = watching(false_alarms=rate, every=every)
    for target in (0.6, None):
        assert watch(rows, replace(options, target=target)).alarm is None
    lower = [*rows, *(row(n, -0.9) for n in (10, 11, 12, 13))]
    assert watch(lower, replace(options, target=0.6)).alarm


def test_too_few_undefined_and_perfect_periods_are_left_out_with_the_reason():
    rows = [row(0, 0.6), row(1, NAN), row(2, 1.0), row(3, 0.6, 5, too_few=True), row(4, 0.5)]
    found = watch(rows, KNOWN)
    assert [one.role for one in found.periods] == ["watched", *["left out"] * 3, "watched"]


def test_a_period_that_is_not_over_is_looked_at_once_it_is():
    rows = [row(0, 0.6), replace(row(1, 0.1), over=False)]
    found = watch(rows, KNOWN)
    assert [one.role for one in found.periods] == ["watched", "left out"]


def test_where_there_are_not_enough_periods_none_is_watched_and_it_is_said():
    found = watch([row(0, 0.6), row(1, 0.1)], watching())
    assert [one.role for one in found.periods] == ["", ""]
    assert found.reason == note("not_watched_yet", "not_watched_yet", needed=2)


def test_of_a_report_only_periods_that_end_after_it_are_watched():
    rows = [row(place, 0.6) for place in range(4)]
    found = watch(rows, watching(target=0.5, target_since=rows[2].start))
    assert [one.role for one in found.periods] == ["baseline"] * 2 + ["watched"] * 2
    assert found.target_icc == pytest.approx(0.5)


def test_the_newest_filled_period_is_judged_and_an_unfilled_one_only_if_it_is_alone():
    little = row(3, -0.9, 4, too_few=True, unfilled=True)
    assert watch([row(0, 0.6), little], watching()).judged.period == "p0"
    assert watch([little], watching()).judged.period == "p3"


def test_an_alarm_names_the_periods_of_the_fall_and_what_they_have_together():
    rows = [*(row(n, 0.7) for n in range(3)), *(row(n, 0.1, 40) for n in range(3, 9))]
    found = watch(rows, KNOWN)
    assert found.below == "target"
    assert found.fell[0].period == "p3"
    assert found.alarm is found.fell[-1]
    assert found.icc == pytest.approx(0.1)
    assert found.low < 0.1 < found.high < found.most < 0.6
    assert [one.alarm for one in found.periods].index(True) == found.periods.index(found.alarm)


def test_the_floor_is_watched_from_the_first_period_without_any_target():
    found = watch([row(n, -0.5, 40) for n in range(3)], watching())
    assert (found.reason is None, found.below) == (False, "floor")
    assert watch([row(n, 0.35, 40) for n in range(3)], watching()).alarm is None


def test_earlier_looks_stay_as_they_were_when_a_period_is_added():
    random = np.random.default_rng(2)
    rows = [row(n, 0.6 + 0.2 * random.normal(), se=0.3 * random.random()) for n in range(11)]
    first, then = (watch(rows[:many], watching()).periods for many in (10, 11))
    assert [one.scan for one in first] == [one.scan for one in then[:10]]
