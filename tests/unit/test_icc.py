"""The ICC and its F interval: published tables, pingouin, by hand, and properties."""

import math

import numpy as np
import pingouin
import pytest
from scipy import stats

from calibration.icc import (
    agreement_interval,
    f_interval,
    icc_agreement,
    icc_consistency,
    mean_squares,
    spearman_brown,
)
from calibration.scores import Array
from data.errors import TooFew

# Shrout & Fleiss (1979), table 2: four judges rate six targets.
SHROUT_FLEISS = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]],
    dtype=float,
)


def by_pingouin(scores: Array) -> dict[str, float]:
    import pandas as pd

    n, k = scores.shape
    long = pd.DataFrame(
        {
            "target": np.repeat(np.arange(n), k),
            "judge": np.tile(np.arange(k), n),
            "score": scores.ravel(),
        }
    )
    table = pingouin.intraclass_corr(long, targets="target", raters="judge", ratings="score")
    return dict(zip(table["Type"], table["ICC"], strict=True))


def test_the_iccs_of_shrout_and_fleiss():
    assert round(icc_agreement(SHROUT_FLEISS), 4) == 0.2898
    assert round(float(icc_consistency(SHROUT_FLEISS)), 4) == 0.9093


def test_the_interval_of_agreement_of_shrout_and_fleiss():
    ms = mean_squares(SHROUT_FLEISS)

    ends = agreement_interval(
        (float(ms.rows), float(ms.columns), float(ms.error)), (5, 3, 15), (4, 6)
    )

    assert (ends.low, ends.high) == pytest.approx((0.0188, 0.7611), abs=5e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning")
@pytest.mark.parametrize("seed", range(12))
def test_pingouin_finds_the_same(seed):
    random = np.random.default_rng(seed)
    n, k = random.integers(5, 40), random.integers(2, 6)
    scores = random.normal(size=(n, 1)) + random.normal(size=(1, k)) + random.normal(size=(n, k))

    theirs = by_pingouin(scores)
    assert icc_agreement(scores) == pytest.approx(theirs["ICC(A,1)"], abs=1e-12)
    assert icc_consistency(scores) == pytest.approx(theirs["ICC(C,k)"], abs=1e-12)


def test_a_stack_of_tables_is_each_table_alone():
    stack = np.random.default_rng(0).normal(size=(3, 4, 10, 2))

    iccs = icc_consistency(stack)

    assert iccs.shape == (3, 4)
    assert iccs[2, 1] == icc_consistency(stack[2, 1])


def test_it_has_no_lower_bound():
    nearly_mirrored = np.array([[1, 5], [2, 4], [3, 3], [4, 2.1]])

    assert icc_consistency(nearly_mirrored) < -100


@pytest.mark.parametrize("score", [3.0, 13 / 3, 0.1])
def test_a_constant_table_is_undefined_and_not_zero(score):
    assert np.isnan(icc_consistency(np.full((7, 3), score)))
    assert np.isnan(icc_agreement(np.full((7, 3), score)))


@pytest.mark.parametrize("shape", [(1, 2), (5, 1)])
def test_one_response_or_one_rater_is_too_few(shape):
    with pytest.raises(TooFew, match="2 responses and 2 raters"):
        icc_consistency(np.ones(shape))


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
    x, y = np.random.default_rng(1).normal(size=(2, 30))
    y += x
    z = np.column_stack([stats.zscore(x, ddof=1), stats.zscore(y, ddof=1)])

    doubled = spearman_brown(float(stats.pearsonr(x, y).statistic), 2)

    assert icc_consistency(z) == pytest.approx(doubled, abs=1e-14)
