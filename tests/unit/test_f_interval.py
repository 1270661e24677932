import math

import numpy as np
import pytest
from scipy import stats

from calibration.icc import agreement_interval, f_interval, spearman_brown


@pytest.mark.parametrize(
    ("icc", "n", "low", "high"),
    [
        (0.474, 56, 0.103, 0.692),
        (0.361, 56, -0.090, 0.625),
        (0.305, 31, -0.441, 0.665),
        (0.625, 25, 0.149, 0.835),
        (0.668, 25, 0.247, 0.854),
    ],
)
def test_the_intervals_of_the_papers_table(icc, n, low, high):
    ends = f_interval(icc, n)

    assert (ends.low, ends.high) == pytest.approx((low, high), abs=6e-4)


@pytest.mark.parametrize(("n", "low", "high"), [(56, 0.32, 0.77), (400, 0.51, 0.67)])
def test_the_intervals_of_the_planner(n, low, high):
    ends = f_interval(0.60, n)

    assert (ends.low, ends.high) == pytest.approx((low, high), abs=5e-3)


def test_a_wider_confidence_is_a_wider_interval_around_the_same_icc():
    narrow, wide = f_interval(0.5, 40, confidence=0.8), f_interval(0.5, 40, confidence=0.99)

    assert wide.low < narrow.low < 0.5 < narrow.high < wide.high


def test_a_negative_limit_is_not_cut_at_zero():
    assert f_interval(-1.2, 18).low < -1.2


@pytest.mark.parametrize(("icc", "n"), [(math.nan, 30), (0.5, 1), (-math.inf, 9)])
def test_without_an_icc_there_is_no_interval(icc, n):
    assert math.isnan(f_interval(icc, n).low)
    assert math.isnan(f_interval(icc, n).high)


def test_rows_without_variance_have_no_interval_of_absolute_agreement():
    ends = agreement_interval((0.0, 0.3, 0.5), (2, 1, 2), (2, 3))
    assert math.isnan(ends.low)
    assert math.isnan(ends.high)


def test_it_covers_what_it_says():
    # Two raters with equal error: true ICC(C,2) = 2 r / (1 + r) with r = .5, so 2/3.
    random = np.random.default_rng(0)
    truth, n, trials = 2 / 3, 25, 2000
    item = random.normal(size=(trials, n))
    x, y = (item + random.normal(size=(trials, n)) for _ in "xy")
    cov = ((x - x.mean(1, keepdims=True)) * (y - y.mean(1, keepdims=True))).sum(1) / (n - 1)
    iccs = 4 * cov / (x.var(1, ddof=1) + y.var(1, ddof=1) + 2 * cov)

    ends = [f_interval(float(icc), n) for icc in iccs[:500]]
    covered = np.mean([end.low < truth < end.high for end in ends])

    assert 0.92 < covered < 0.98


def test_spearman_brown_doubles_pearsons_r_into_the_icc_of_two_z_scores():
    from calibration.icc import icc_consistency

    x, y = np.random.default_rng(1).normal(size=(2, 30))
    y += x
    z = np.column_stack([stats.zscore(x, ddof=1), stats.zscore(y, ddof=1)])

    doubled = spearman_brown(float(stats.pearsonr(x, y).statistic), 2)

    assert icc_consistency(z) == pytest.approx(doubled, abs=1e-14)


def test_spearman_brown_undoes_itself():
    assert spearman_brown(spearman_brown(0.3, 4), 1 / 4) == pytest.approx(0.3)
