"""Statistics of a survey: published values, other packages, brute force, and properties."""

import math
from itertools import combinations

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_kappa
from statsmodels.stats.proportion import proportion_confint

from calibration.clustered_intervals import wilson
from calibration.survey import (
    Share,
    alpha_nominal,
    category_counts,
    confusion,
    fleiss_kappa,
    mean_rating,
    overall_share,
    placed_as_intended,
    share_difference,
    with_interval,
)

GAP = -1
# Krippendorff (2011), Computing Krippendorff's alpha-reliability, part C: four observers, twelve units.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, GAP, GAP, GAP],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, GAP, 3],
        [GAP, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, GAP],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, GAP],
    ]
)
# A worked example that is printed in many places: 10 subjects, 14 raters, 5 categories; kappa 0.210.
SUBJECTS = np.array(
    [
        *([0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1]),
        *([7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]),
    ],
    dtype=float,
)
placements = arrays(
    np.int64, st.tuples(st.integers(2, 6), st.integers(2, 8)), elements=st.integers(0, 3)
)


def test_alpha_is_krippendorffs_of_his_example() -> None:
    counts = category_counts(OBSERVERS, 6)
    assert alpha_nominal(counts) == pytest.approx(0.743, abs=5e-4)
    data = np.where(OBSERVERS == GAP, np.nan, OBSERVERS)
    assert alpha_nominal(counts) == pytest.approx(
        krippendorff.alpha(data, level_of_measurement="nominal")
    )


def test_kappa_is_that_of_the_worked_example_and_of_statsmodels() -> None:
    assert fleiss_kappa(SUBJECTS) == pytest.approx(0.210, abs=5e-4)
    assert fleiss_kappa(SUBJECTS) == pytest.approx(statsmodels_kappa(SUBJECTS))


@given(placements)
def test_kappa_and_alpha_are_what_counting_all_pairs_gives(placed: np.ndarray) -> None:
    counts = category_counts(placed, 4)
    raters, cards = placed.shape
    pairs = [
        placed[a, card] == placed[b, card]
        for card in range(cards)
        for a, b in combinations(range(raters), 2)
    ]
    seen = sum(pairs) / len(pairs)
    shares = counts.sum(axis=0) / placed.size
    chance = float((shares**2).sum())
    n = placed.size
    drawn = float((counts.sum(axis=0) * (counts.sum(axis=0) - 1)).sum()) / (n * (n - 1))
    if chance == 1:
        assert math.isnan(fleiss_kappa(counts))
        assert math.isnan(alpha_nominal(counts))
        return
    assert fleiss_kappa(counts) == pytest.approx((seen - chance) / (1 - chance))
    assert alpha_nominal(counts) == pytest.approx(1 - (1 - seen) / (1 - drawn))


@given(placements, st.permutations(range(4)))
def test_agreement_does_not_depend_on_what_the_categories_are_called(
    placed: np.ndarray, names: list[int]
) -> None:
    renamed = np.array(names)[placed]
    for function in (fleiss_kappa, alpha_nominal):
        one, two = (function(category_counts(each, 4)) for each in (placed, renamed))
        assert one == pytest.approx(two, nan_ok=True)


def test_the_share_of_a_card_has_wilsons_interval() -> None:
    placed = np.array([[0], [0], [1], [GAP]])
    [share] = placed_as_intended(placed, np.array([0]))
    low, high = proportion_confint(2, 3, method="wilson")
    assert (share.hits, share.trials) == (2, 3)
    assert (share.interval.low, share.interval.high) == pytest.approx((low, high))
    [none] = placed_as_intended(np.array([[GAP]]), np.array([0]))
    assert math.isnan(none.value)


def test_the_overall_interval_widens_where_errors_are_those_of_few_clinicians() -> None:
    intended = np.zeros(20, dtype=np.int64)
    spread = np.zeros((10, 20), dtype=np.int64)
    spread[np.arange(10), np.arange(10)] = 1
    spread[np.arange(10), np.arange(10) + 10] = 1
    heaped = np.zeros((10, 20), dtype=np.int64)
    heaped[0] = 1
    one, two = overall_share(spread, intended), overall_share(heaped, intended)
    assert one.value == two.value == 0.9
    assert two.interval.high - two.interval.low > 2 * (one.interval.high - one.interval.low)


def test_the_confusion_counts_every_placement_once() -> None:
    table = confusion(np.array([[0, 1], [1, 1], [GAP, 0]]), np.array([0, 1]), 2)
    assert table.tolist() == [[1, 1], [1, 2]]


def test_a_mean_has_students_interval_and_none_without_variance() -> None:
    found = mean_rating([4, 5, 3, 4])
    assert (found.mean, found.n) == (4.0, 4)
    assert found.sd == pytest.approx(0.8165, abs=1e-4)
    assert found.interval.low == pytest.approx(2.7008, abs=1e-4)  # 4 - 3.1824 * 0.8165 / 2
    assert math.isnan(mean_rating([4, 4]).interval.low)
    assert math.isnan(mean_rating([]).mean)


def test_a_difference_of_shares_has_newcombes_interval() -> None:
    """Newcombe (1998), table II, comparison (a): 56/70 and 48/80, method 10: 0.0524 to 0.3339."""
    first, second = (Share(k, n, wilson(k / n, n)) for k, n in ((48, 80), (56, 70)))
    found = share_difference(first, second)
    assert found.value == pytest.approx(0.2)
    assert (found.interval.low, found.interval.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_an_interval_holds_its_coefficient_and_is_the_same_for_the_same_seed() -> None:
    found = with_interval("kappa", SUBJECTS, 500, 1)
    assert found == with_interval("kappa", SUBJECTS, 500, 1)
    assert found.interval.low < found.value < found.interval.high
    same = np.array([[3.0, 0.0], [3.0, 0.0]])
    assert math.isnan(with_interval("alpha", same, 50, 0).interval.low)
