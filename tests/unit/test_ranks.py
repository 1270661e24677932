"""Spearman: an example by hand, pandas, and properties."""

import numpy as np
import pandas as pd
import pytest

from calibration.other_measures import spearman


def columns(seed=0, n=40):
    random = np.random.default_rng(seed)
    quality = random.normal(size=n)
    return tuple(np.round(2 * (quality + random.normal(size=n))) / 2 for _ in range(2))


def test_examples_by_hand():
    # Squared differences of the ranks 0, 0, 1, 1: rho 1 - 6 * 2 / (4 * 15).
    assert spearman(np.array([1.0, 2, 3, 4]), np.array([10.0, 20, 40, 30])) == pytest.approx(0.8)
    tied = spearman(np.array([1.0, 1, 2]), np.array([1.0, 2, 3]))
    assert tied == pytest.approx(np.sqrt(3) / 2)  # ranks 1.5, 1.5, 3 with 1, 2, 3


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_pandas_finds(seed):
    x, y = columns(seed)
    assert spearman(x, y) == pytest.approx(pd.Series(x).corr(pd.Series(y), method="spearman"))


@pytest.mark.parametrize(
    ("change", "sign"),
    [
        (lambda x, y: (x + 9, y), 1),
        (lambda x, y: (x, 0.01 * y), 1),
        (lambda x, y: (np.exp(x), y**3), 1),
        (lambda x, y: (x[::-1], y[::-1]), 1),
        (lambda x, y: (y, x), 1),
        (lambda x, y: (x, -y), -1),
    ],
    ids=["shift", "scale", "monotone", "permutation", "exchange", "reversal"],
)
def test_only_the_order_counts(change, sign):
    x, y = columns()
    assert spearman(*change(x, y)) == pytest.approx(sign * spearman(x, y))


def test_means_that_differ_by_rounding_alone_are_ties():
    sums = np.array([0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1, 0.9])
    assert sums[0] != sums[1]
    assert spearman(sums, np.array([1.0, 2, 3])) == pytest.approx(np.sqrt(3) / 2)


@pytest.mark.parametrize(
    ("x", "y"),
    [([], []), ([1.0], [2.0]), ([3.0, 3, 3], [1.0, 2, 3]), ([1.0, 2, 3], [0.0, 0, 0])],
    ids=["nothing", "one", "first constant", "second constant"],
)
def test_what_has_no_order_has_no_correlation(x, y):
    assert np.isnan(spearman(np.array(x), np.array(y)))
