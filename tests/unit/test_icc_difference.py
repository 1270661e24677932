"""The difference of two ICCs: by hand, against Steiger's test, one method, and coverage."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.composites import grid_of
from scipy import stats

from calibration.columns import PanelColumns, column_icc, columns, single_rater
from calibration.intervals import Difference, icc_difference, left_out
from calibration.weighted import scorer_iccs

NAN = math.nan


def grid(composites, per=1, clinicians=2):
    """Return clinicians, then jurors, as a grid of `per` responses an instance."""
    clusters = np.arange(len(composites)) // per
    return grid_of(composites, clusters, composites.shape[1] - clinicians)


def compared(composites, juries, *, per=1, method="paper") -> Difference:
    of, panels = grid(composites, per), [PanelColumns(names, len(names)) for names in juries]
    return icc_difference(*scorer_iccs(of, panels, method, left_out(of.n_clusters)).T)


def study(n, seed, *, per=1, noise=(1.2, 1.2), jurors=1, ceiling=False):
    """Two clinicians and two juries whose jurors have these standard deviations of error."""
    random = np.random.default_rng([seed, n, per])
    shared = random.normal(size=-(-n // per))[np.arange(n) // per]
    share = 0.5 if per > 1 else 0.0
    quality = math.sqrt(share) * shared + math.sqrt(1 - share) * random.normal(size=n)
    spread = np.array([1.0, 1.0, *[noise[0]] * jurors, *[noise[1]] * jurors])
    scores = quality[:, None] + spread * random.normal(size=(n, len(spread)))
    return np.clip(np.rint(4.2 + 0.9 * scores), 1, 5) if ceiling else scores


def juries(jurors):
    names = [f"j{i}" for i in range(2 * jurors)]
    return tuple(names[:jurors]), tuple(names[jurors:])


def test_four_left_out_values_give_the_interval_and_p_computed_by_hand():
    # z = -log(1 - ICC) / 2: ICC 0.75 is log 2, ICC 0 is 0, so z1 - z2 = log 2. Without each of
    # four instances z1 - z2 is log 2 + (0.1, -0.1, 0.1, -0.1), z1 + z2 never changes: the
    # jackknife's variance is 3/4 of the sum of squares 0.04, SE = sqrt(0.03), and, all moves being
    # of one size, t has 3 degrees of freedom. The ends are those of z1 - z2 at z1 + z2 = log 2.
    moved = np.array([0.05, -0.05, 0.05, -0.05])
    first = 1 - np.exp(-2 * (math.log(2) + np.array([0, *moved])))
    second = 1 - np.exp(2 * np.array([0, *moved]))

    found = icc_difference(first, second)

    error, reach = math.sqrt(0.03), 3.182446
    ends = [math.sinh(math.log(2) + sign * reach * error) for sign in (-1, 1)]
    assert found.value == 0.75
    assert (found.low, found.high) == pytest.approx(ends, rel=1e-5)
    t = math.log(2) / error / math.sqrt(3)  # of 3 degrees of freedom the tail has a closed form
    tail = 0.5 - (t / (1 + t**2) + math.atan(t)) / math.pi
    assert found.p == pytest.approx(2 * tail)


def test_the_error_is_that_of_steigers_test_of_two_dependent_correlations():
    # 2r / (1 + r) of z-scores, so z is atanh r, and n - 3 times the variance of the difference of
    # two atanh r with one variable in common is 2 - 2 s (Dunn & Clark 1969; Steiger 1980, 14, 15).
    n, composites = 4000, study(4000, 1)[:, 1:]
    x, y, w = (composites[:, [i]].ravel() for i in range(3))
    r = np.corrcoef([x, y, w])
    mean = (r[0, 1] + r[0, 2]) / 2
    s = (r[1, 2] * (1 - 2 * mean**2) - mean**2 * (1 - 2 * mean**2 - r[1, 2] ** 2) / 2) / (
        1 - mean**2
    ) ** 2
    z = (math.atanh(r[0, 1]) - math.atanh(r[0, 2])) / math.sqrt((2 - 2 * s) / (n - 3))
    of = grid(composites, clinicians=1)
    panels = [single_rater(name) for name in ("j0", "j1")]

    found = icc_difference(*scorer_iccs(of, panels, "published", 1 - np.eye(n + 1, n, -1)).T)

    assert stats.norm.isf(found.p / 2) == pytest.approx(abs(z), rel=0.04)


@pytest.mark.parametrize("per", [1, 3])
@pytest.mark.parametrize("method", ["paper", "published"])
def test_a_weight_of_0_is_as_if_the_instance_had_never_been_there(method, per):
    composites = study(30, 4, per=per, jurors=2)
    first, second = juries(2)
    again = [
        [
            column_icc(pair.clinicians, pair.scorer, method)
            for names in (first, second)
            for pair in [columns(left, PanelColumns(names, 2), method)]
        ]
        for instance in range(30 // per)
        for left in [grid(composites[np.arange(30) // per != instance])]
    ]
    iccs = [
        column_icc(pair.clinicians, pair.scorer, method)
        for names in (first, second)
        for pair in [columns(grid(composites), PanelColumns(names, 2), method)]
    ]

    found = compared(composites, (first, second), per=per, method=method)

    by_hand = icc_difference(*np.array([iccs, *again]).T)
    assert dataclasses.astuple(found) == pytest.approx(dataclasses.astuple(by_hand))


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(8, 80),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
    st.sampled_from(["paper", "published"]),
    st.floats(0.3, 3),
)
def test_p_is_at_most_5_percent_exactly_where_the_interval_excludes_0(
    seed, n, per, ceiling, method, noise
):
    composites = study(n, seed, per=per, noise=(0.8, noise), ceiling=ceiling)
    found = compared(composites, juries(1), per=per, method=method)
    if np.isfinite(found.p):
        assert (found.p <= 0.05) == (found.low > 0 or found.high < 0)
        assert found.low <= found.value <= found.high
    else:
        assert np.isnan([found.low, found.high]).all()


def test_the_other_way_round_everything_has_the_other_sign():
    composites = study(40, 3, noise=(0.7, 1.6))
    first, second = juries(1)
    here, there = compared(composites, (first, second)), compared(composites, (second, first))
    assert (here.value, here.low, here.high, here.p) == pytest.approx(
        (-there.value, -there.high, -there.low, there.p)
    )


def test_scorers_who_say_the_same_differ_by_nothing():
    left = np.array([0.4, 0.3, 0.4, 0.5])
    assert icc_difference(left, left + 1e-12) == Difference(0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("iccs", "first"),
    [
        ((1.0, 0.5), [1.0, 1.0, 1.0]),
        ((0.8, 0.5), [0.8, NAN, 0.7]),
        ((0.8, 0.5), [0.8, 0.7]),
        ((0.8, 0.5), [0.8, 0.8, 0.8]),
    ],
    ids=["an ICC of 1", "undefined without one", "two instances", "nothing changes it"],
)
def test_without_a_jackknife_there_is_a_difference_and_nothing_else(iccs, first):
    second = np.full(1 + len(first), 0.5)
    found = icc_difference(np.array([iccs[0], *first]), second)
    assert found.value == iccs[0] - iccs[1]
    assert np.isnan([found.low, found.high, found.p]).all()


def test_an_undefined_icc_has_no_difference():
    assert math.isnan(icc_difference(np.array([NAN, 1, 1]), np.full(3, 0.5)).value)


def true_iccs(jurors, noise, *, ceiling):
    composites = study(300_000, 0, noise=noise, jurors=jurors, ceiling=ceiling)
    pairs = [
        columns(grid(composites), PanelColumns(names, jurors), "paper") for names in juries(jurors)
    ]
    return [column_icc(pair.clinicians, pair.scorer, "paper") for pair in pairs]


@pytest.mark.slow
@pytest.mark.parametrize("ceiling", [False, True], ids=["continuous", "1 to 5, at the top"])
@pytest.mark.parametrize(("n", "per"), [(25, 1), (56, 1), (56, 4), (112, 1), (300, 1), (300, 5)])
@pytest.mark.parametrize(
    ("jurors", "noise"), [(1, (1.2, 1.2)), (3, (1.2, 1.2)), (1, (0.7, 1.6)), (3, (3.0, 3.0))]
)
def test_intervals_hold_the_difference_in_95_percent_of_studies(n, per, jurors, noise, ceiling):
    true = 0.0
    if noise[0] != noise[1]:
        true = -float(np.diff(true_iccs(jurors, noise, ceiling=ceiling))[0])
    found = [
        compared(
            study(n, seed, per=per, noise=noise, jurors=jurors, ceiling=ceiling),
            juries(jurors),
            per=per,
        )
        for seed in range(800)
    ]
    held = np.mean([difference.low <= true <= difference.high for difference in found])
    chance = 2.5 * math.sqrt(0.95 * 0.05 / len(found))
    assert 0.93 - chance <= held <= 0.97 + chance
