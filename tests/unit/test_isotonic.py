"""The isotonic map: values by hand, scikit-learn and the max-min formula, what changes nothing."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from calibration.predicting import isotonic_map


def simulate(n=60, seed=0):
    """Means of three whole scores and of two: many responses share a jury composite."""
    random = np.random.default_rng(seed)
    quality = 3 + random.normal(size=n)
    jury = np.clip(np.round(3 * (quality + 0.5 * random.normal(size=n))) / 3, 1, 5)
    return jury, np.clip(np.round(2 * (quality + 0.5 * random.normal(size=n))) / 2, 1, 5)


def test_violators_are_pooled_as_by_hand():
    # 3 then 2 becomes 2.5 twice, 4 then 3.5 becomes 3.75 twice; the rest stays.
    _, values = isotonic_map(np.arange(1.0, 6), np.array([1, 3, 2, 4, 3.5]))

    assert values == pytest.approx([1, 2.5, 2.5, 3.75, 3.75])


def test_responses_with_one_jury_composite_are_one_knot_with_their_number_as_weight():
    # 4 (twice, mean 3) above 5 (once, 1.5): pooled to (3 + 3 + 1.5) / 3.
    knots, values = isotonic_map(np.array([4.0, 5, 4, 1]), np.array([2.0, 1.5, 4, 1]))

    assert knots == pytest.approx([1, 4, 5])
    assert values == pytest.approx([1, 2.5, 2.5])


def test_the_same_three_scores_added_in_another_order_are_one_knot():
    thirds = np.array([(0.1 + 0.2) + 0.3, 0.1 + (0.2 + 0.3), 2.0])

    assert len(np.unique(thirds)) == 3
    assert len(isotonic_map(thirds, np.array([1.0, 2, 3]))[0]) == 2


@pytest.mark.parametrize("seed", range(5))
def test_map_and_interpolation_are_scikit_learns(seed):
    jury, clinicians = simulate(seed=seed)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(jury, clinicians)
    asked = np.linspace(0.5, 5.5, 101)

    found = isotonic_map(jury, clinicians)

    assert np.interp(asked, *found) == pytest.approx(theirs.predict(asked), abs=1e-8)


def test_a_jury_that_ranks_against_the_clinicians_gives_everyone_their_mean():
    _, values = isotonic_map(np.arange(1.0, 6), np.array([5.0, 4, 3, 3, 1]))

    assert np.ptp(values) <= 1e-9
    assert values == pytest.approx(np.full(5, 3.2))


@pytest.mark.parametrize(
    ("change", "back"),
    [
        (lambda jury, own: (jury, own + 2), lambda value: value - 2),
        (lambda jury, own: (jury, own * 3), lambda value: value / 3),
        (lambda jury, own: (jury[::-1], own[::-1]), lambda value: value),
        (lambda jury, own: (np.tile(jury, 2), np.tile(own, 2)), lambda value: value),
        (lambda jury, own: (jury**2, own), lambda value: value),
    ],
    ids=["shift", "scale", "permutation", "everything twice", "a rising change of the jury"],
)
def test_values_follow_the_clinicians_and_only_the_jurys_order(change, back):
    jury, clinicians = simulate()
    _, before = isotonic_map(jury, clinicians)

    _, after = isotonic_map(*change(jury, clinicians))

    assert back(after) == pytest.approx(before)
