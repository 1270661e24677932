"""Quadratic weighted kappa: published tables, scikit-learn, its closed form, and properties."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from calibration.chance_corrected import mean_kappa, quadratic_kappa

# The table of Cohen (1968), 200 patients in three diagnoses.
COHEN = np.array([[88.0, 14, 18], [10, 40, 10], [2, 6, 12]])


def raters(n=60, seed=0, number=4, missing=0.3):
    """Return codes 0..4 of several raters of one quality, shape (raters, n), -1 where missing."""
    random = np.random.default_rng(seed)
    quality = 2.5 + random.normal(size=n)
    codes = np.clip(np.round(quality + 0.8 * random.normal(size=(number, n))), 0, 4).astype(int)
    codes[random.random(codes.shape) < missing] = -1
    return codes


def table_of(first, second, q=5):
    table = np.zeros((q, q))
    np.add.at(table, (first, second), 1.0)
    return table


def by_scikit(first, second):
    both = (first >= 0) & (second >= 0)
    return cohen_kappa_score(first[both], second[both], weights="quadratic", labels=range(5))


def test_cohens_table_by_hand():
    # In shares: .07 + .05 + .05 + .03 = .20 one step apart and .10 two steps, so .20 + 4 * .10
    # seen; margins .6 .3 .1 and .5 .3 .2, so .42 + 4 * .17 expected; 1 - .60 / 1.10.
    assert quadratic_kappa(COHEN) == pytest.approx(1 - 0.60 / 1.10)


def test_of_two_points_it_is_plain_kappa():
    # 50 proposals, 20 both yes, 15 both no: .70 seen, .50 expected, the textbook's .40.
    assert quadratic_kappa(np.array([[20.0, 5], [10, 15]])) == pytest.approx(0.40)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_scikit_learns_with_all_points_of_the_scale(seed):
    first, second = raters(seed=seed, number=2, missing=0.0)

    assert quadratic_kappa(table_of(first, second)) == pytest.approx(by_scikit(first, second))


def test_it_is_the_closed_form_of_moments():
    x, y = raters(number=2, missing=0.0).astype(float)
    below = x.var() + y.var() + (x.mean() - y.mean()) ** 2

    closed = 2 * np.cov(x, y, ddof=0)[0, 1] / below

    assert quadratic_kappa(table_of(x.astype(int), y.astype(int))) == pytest.approx(closed)


def test_points_that_nobody_used_change_nothing():
    x, y = raters(number=2, missing=0.0)

    assert quadratic_kappa(table_of(x, y, 11)) == pytest.approx(quadratic_kappa(table_of(x, y)))


def test_the_mean_over_pairs_is_scikit_learns_over_the_shared_responses():
    codes = raters()
    pairs = list(combinations(range(4), 2))

    found, notes = mean_kappa(codes, pairs, 5, 2)

    assert found == pytest.approx(np.mean([by_scikit(codes[a], codes[b]) for a, b in pairs]))
    assert notes == []


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda c: np.where(c >= 0, c + 1, -1), True),
        (lambda c: np.where(c >= 0, 5 - c, -1), True),
        (lambda c: np.where(c >= 0, 2 * c, -1), True),
        (lambda c: c[:, ::-1], True),
        (lambda c: c[::-1], True),
        (lambda c: np.hstack([c, np.full((4, 9), -1)]), True),
        (lambda c: np.vstack([c[:1], np.where(c[1:] >= 0, c[1:] + 1, -1)]), False),
    ],
    ids=["shift", "reversal", "scale", "responses", "raters", "missing", "one stricter rater"],
)
def test_properties(change, same):
    codes = raters()
    pairs = list(combinations(range(4), 2))

    before, _ = mean_kappa(codes, pairs, 12, 2)
    after, _ = mean_kappa(change(codes), pairs, 12, 2)

    assert (after == pytest.approx(before)) is same


def test_a_constant_rater_has_kappa_0():
    codes = np.array([[2, 2, 2, 2], [0, 1, 2, 3]])

    assert mean_kappa(codes, [(0, 1)], 5, 2)[0] == pytest.approx(0.0)


def test_a_pair_that_gave_one_and_the_same_score_has_no_kappa():
    codes = np.array([[4, 4, 4], [4, 4, 4], [3, 4, 2]])

    kappa, (reason,) = mean_kappa(codes, [(0, 1)], 5, 2)

    assert np.isnan(kappa)
    assert reason.code == "kappa_alike"
    assert mean_kappa(codes, [(0, 1), (0, 2)], 5, 2)[0] == mean_kappa(codes, [(0, 2)], 5, 2)[0]
    assert np.isnan(quadratic_kappa(np.zeros((5, 5))))


def test_pairs_that_share_too_little_are_left_out_and_few_shared_responses_are_fragile():
    codes = np.array([[0, 1, 2, 3, -1], [0, 1, 2, 2, 4], [-1, -1, -1, 1, 0]])

    _, (fragile,) = mean_kappa(codes, [(0, 1), (0, 2), (1, 2)], 5, 2)
    _, (none,) = mean_kappa(codes, [(0, 1)], 5, 6)

    assert (fragile["fragile"], fragile["pairs"]) == (2, 2)
    assert (none.code, none["min_shared"]) == ("kappa_no_pair", 6)
