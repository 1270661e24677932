"""Fisher's z of an ICC: golden values, another package's z, and standard errors that hold."""

import math

import numpy as np
import pytest
from scipy import stats

from calibration.intervals import icc_of_fisher, jackknife_error, left_out
from calibration.monitoring import finite_z, independent_se
from calibration.weighted import weighted_icc


def error(x, y, clusters):
    """Return the standard error of the ICC of two columns, leaving out each cluster in turn."""
    return jackknife_error(finite_z(without_each(x, y, clusters)))


def without_each(x, y, clusters):
    weights = left_out(int(clusters.max()) + 1)[:, clusters]
    return weighted_icc(x - x.mean(), y - y.mean(), weights)


def draw(icc, n, per=1, seed=0):
    random = np.random.default_rng(seed)
    r = icc / (2 - icc)
    quality = np.repeat(random.normal(size=n // per), per) * math.sqrt(r)
    noise = math.sqrt(1 - r)
    return quality + noise * random.normal(size=n), quality + noise * random.normal(size=n)


def test_an_icc_of_six_tenths_is_a_z_of_nearly_half():
    # ICC(C,1) = .6 / 1.4 = 3/7; atanh(3/7) = ln(10/4) / 2.
    assert finite_z(0.6) == pytest.approx(math.log(2.5) / 2)
    assert finite_z(0.4) == pytest.approx(math.log(1.25 / 0.75) / 2)
    assert finite_z(0.0) == 0


def test_z_scored_columns_have_the_z_of_their_correlation():
    x, y = draw(0.5, 30)
    r = stats.pearsonr(x, y).statistic
    assert finite_z(2 * r / (1 + r)) == pytest.approx(math.atanh(r))


@pytest.mark.parametrize("icc", [-486491.0, -1.2, -0.1, 0.0, 0.43, 0.999])
def test_z_goes_there_and_back_however_low_the_icc(icc):
    assert float(icc_of_fisher(finite_z(icc))) == pytest.approx(icc, rel=1e-6)


@pytest.mark.parametrize("icc", [1.0, math.nan, -math.inf])
def test_without_a_finite_z_there_is_none(icc):
    assert math.isnan(finite_z(icc))


def test_the_error_of_independent_responses_is_that_of_half_the_log_of_an_f_ratio():
    logs = np.log(stats.f.rvs(19, 19, size=200_000, random_state=0)) / 2
    assert independent_se(20) == pytest.approx(logs.std(), rel=0.01)
    assert independent_se(20) == pytest.approx(1 / math.sqrt(18), rel=0.01)
    assert math.isnan(independent_se(2))


def test_the_jackknife_is_what_leaving_each_instance_out_by_hand_gives():
    x, y = draw(0.6, 24, per=2)
    clusters = np.arange(24) // 2
    left = []
    for one in range(12):
        pair = np.column_stack([x, y])[clusters != one]
        cov = np.cov(pair.T)
        left.append(math.atanh(2 * cov[0, 1] / (cov[0, 0] + cov[1, 1])))
    expected = math.sqrt(11 / 12 * np.square(np.array(left) - np.mean(left)).sum())

    assert error(x, y, clusters) == pytest.approx(expected)


def test_shift_scale_and_order_of_both_columns_change_no_error():
    x, y = draw(0.6, 30)
    order = np.random.default_rng(1).permutation(30)
    own = error(x, y, np.arange(30))
    assert error(3 * x + 5, 3 * y - 2, np.arange(30)) == pytest.approx(own)
    assert error(x[order], y[order], np.arange(30)) == pytest.approx(own)


def test_a_single_instance_or_one_that_all_hangs_on_has_no_error():
    x, y = draw(0.6, 4)
    assert math.isnan(error(x, y, np.zeros(4, int)))
    flat = np.array([0.0, 0.0, 0.0, 1.0])
    assert math.isnan(error(flat, flat + x, np.arange(4)))


@pytest.mark.slow
@pytest.mark.parametrize(("per", "low", "high"), [(1, 0.9, 1.15), (5, 0.85, 1.15)])
def test_the_jackknife_is_as_large_as_z_really_varies(per, low, high):
    n = 40 * per
    random = [draw(0.6, n, per, seed) for seed in range(800)]
    clusters = np.arange(n) // per
    iccs = [without_each(x, y, clusters) for x, y in random]
    true = np.std([finite_z(one[0]) for one in iccs])
    found = np.mean([jackknife_error(finite_z(one)) for one in iccs])
    assert low < found / true < high
    assert (true > 1.1 * independent_se(n)) == (per > 1)  # dependent responses vary more
