"""Spearman and Kendall: a published example, pandas, brute force, and properties."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from calibration.other_measures import rank_correlations


def tau_b(x, y):
    """Kendall's tau-b by its definition, pair by pair."""
    signs = [
        (np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i, j in combinations(range(len(x)), 2)
    ]
    score = sum(a * b for a, b in signs)
    return score / np.sqrt(sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs))


def columns(seed=0, n=40):
    random = np.random.default_rng(seed)
    quality = random.normal(size=n)
    return tuple(np.round(2 * (quality + random.normal(size=n))) / 2 for _ in range(2))


def test_an_example_by_hand():
    # Four responses: 5 pairs concordant and 1 discordant, tau (5 - 1) / 6. Squared differences
    # of the ranks 0, 0, 1, 1, rho 1 - 6 * 2 / (4 * 15).
    found = rank_correlations(np.array([1.0, 2, 3, 4]), np.array([10.0, 20, 40, 30]))

    assert found.kendall == pytest.approx(2 / 3)
    assert found.spearman == pytest.approx(0.8)


def test_ties_by_hand():
    # Pairs (1,2) (1,3) (2,3): tied in x, concordant, concordant: 2 / sqrt(2 * 3).
    found = rank_correlations(np.array([1.0, 1, 2]), np.array([1.0, 2, 3]))

    assert found.kendall == pytest.approx(2 / np.sqrt(6))
    assert found.spearman == pytest.approx(np.sqrt(3) / 2)  # ranks 1.5, 1.5, 3 with 1, 2, 3


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_pandas_and_brute_force_find(seed):
    x, y = columns(seed)

    found = rank_correlations(x, y)

    assert found.kendall == pytest.approx(tau_b(x, y))
    assert found.spearman == pytest.approx(pd.Series(x).corr(pd.Series(y), method="spearman"))


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
    before, after = rank_correlations(x, y), rank_correlations(*change(x, y))

    assert after.spearman == pytest.approx(sign * before.spearman)
    assert after.kendall == pytest.approx(sign * before.kendall)


def test_means_that_differ_by_rounding_alone_are_ties():
    sums = np.array([0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1, 0.9])
    assert sums[0] != sums[1]

    assert rank_correlations(sums, np.array([1.0, 2, 3])).kendall == pytest.approx(2 / np.sqrt(6))


@pytest.mark.parametrize(
    ("x", "y"),
    [([], []), ([1.0], [2.0]), ([3.0, 3, 3], [1.0, 2, 3]), ([1.0, 2, 3], [0.0, 0, 0])],
    ids=["nothing", "one", "first constant", "second constant"],
)
def test_what_has_no_order_has_no_correlation(x, y):
    found = rank_correlations(np.array(x), np.array(y))

    assert np.isnan([found.spearman, found.kendall]).all()
