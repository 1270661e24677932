"""Quadratic weighted kappa: published tables, scikit-learn, and properties."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from calibration.chance_corrected import mean_kappa, quadratic_kappa

# The table of Cohen (1968), 200 patients in three diagnoses.
COHEN = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]
PAIRS = list(combinations(range(4), 2))
NAN = np.nan


def raters(n=60, seed=0, number=4, missing=0.3):
    """Return scores 0..4 of several raters of one quality, shape (n, raters), NaN where missing."""
    random = np.random.default_rng(seed)
    quality = 2.5 + random.normal(size=n)
    scores = np.clip(np.round(quality + 0.8 * random.normal(size=(number, n))), 0, 4)
    scores[random.random(scores.shape) < missing] = NAN
    return scores.T


def of_table(counts):
    places = np.argwhere(np.ones_like(counts)).astype(float)
    return quadratic_kappa(*np.repeat(places, np.ravel(counts), axis=0).T)


def by_scikit(first, second):
    both = ~np.isnan(first + second)
    return cohen_kappa_score(first[both], second[both], weights="quadratic", labels=range(5))


def test_cohens_table_by_hand():
    # In shares: .07 + .05 + .05 + .03 = .20 one step apart and .10 two steps, so .20 + 4 * .10
    # seen; margins .6 .3 .1 and .5 .3 .2, so .42 + 4 * .17 expected; 1 - .60 / 1.10.
    assert of_table(COHEN) == pytest.approx(1 - 0.60 / 1.10)


def test_of_two_points_it_is_plain_kappa():
    # 50 proposals, 20 both yes, 15 both no: .70 seen, .50 expected, the textbook's .40.
    assert of_table([[20, 5], [10, 15]]) == pytest.approx(0.40)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_scikit_learns_with_all_points_of_the_scale(seed):
    first, second = raters(seed=seed, number=2, missing=0.0).T

    assert quadratic_kappa(first, second) == pytest.approx(by_scikit(first, second))


def test_the_mean_over_pairs_is_scikit_learns_over_the_shared_responses():
    scores = raters()

    found, said = mean_kappa(scores, PAIRS, 2)

    theirs = [by_scikit(scores[:, a], scores[:, b]) for a, b in PAIRS]
    assert (found, said) == (pytest.approx(np.mean(theirs)), None)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda s: s + 1, True),
        (lambda s: 5 - s, True),
        (lambda s: 2 * s, True),
        (lambda s: s[::-1], True),
        (lambda s: s[:, ::-1], True),
        (lambda s: np.vstack([s, np.full((9, 4), NAN)]), True),
        (lambda s: s + np.array([0, 1, 1, 1]), False),
    ],
    ids=["shift", "reversal", "scale", "responses", "raters", "missing", "one stricter rater"],
)
def test_properties(change, same):
    before, _ = mean_kappa(raters(), PAIRS, 2)
    after, _ = mean_kappa(change(raters()), PAIRS, 2)

    assert (after == pytest.approx(before)) is same


def test_a_constant_rater_has_kappa_0():
    assert quadratic_kappa(np.array([2.0, 2, 2, 2]), np.arange(4.0)) == pytest.approx(0.0)


def test_a_pair_that_gave_one_and_the_same_score_has_no_kappa():
    scores = np.array([[4.0, 4, 3], [4, 4, 4], [4, 4, 2]])

    kappa, reason = mean_kappa(scores, [(0, 1)], 2)

    assert np.isnan(kappa)
    assert reason.code == "kappa_alike"
    assert mean_kappa(scores, [(0, 1), (0, 2)], 2)[0] == mean_kappa(scores, [(0, 2)], 2)[0]
    assert np.isnan(quadratic_kappa(np.zeros(0), np.zeros(0)))


def test_pairs_that_share_too_little_are_left_out_and_few_shared_responses_are_fragile():
    scores = np.array([[0, 1, 2, 3, NAN], [0, 1, 2, 2, 4], [NAN, NAN, NAN, 1, 0]]).T

    _, fragile = mean_kappa(scores, [(0, 1), (0, 2), (1, 2)], 2)
    _, none = mean_kappa(scores, [(0, 1)], 6)

    assert (fragile["fragile"], fragile["pairs"]) == (2, 2)
    assert (none.code, none["min_shared"]) == ("kappa_no_pair", 6)
