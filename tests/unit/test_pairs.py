import math
import warnings
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
import pingouin
import pytest

from calibration.bootstrap import BootstrapPlan, draw_counts, replicates
from calibration.clinicians import clinician_pairs
from calibration.rating_matrix import RatingMatrix


def grid_of(table, clusters=None):
    table = np.asarray(table, float)
    n, raters = table.shape
    return RatingMatrix(
        table,
        tuple(map(str, range(n))),
        np.arange(n) if clusters is None else clusters,
        tuple(f"dr{i}" for i in range(raters)),
        ("clinician",) * raters,
    )


def make_grid(n=60, raters=5, share=0.5, seed=0):
    random = np.random.default_rng(seed)
    table = 3 + random.normal(size=(n, 1)) + 0.8 * random.normal(size=(n, raters))
    table = np.round(table * 3) / 3
    table[random.random(table.shape) > share] = np.nan
    table[np.isnan(table).all(axis=1), 0] = 3
    return grid_of(table)


def by_definition(table, pairs):
    """Z over all of a rater's scores, pingouin's ICC over the shared ones, the mean of pairs."""
    z = (table - table.mean()) / table.std(ddof=1)
    iccs = []
    for a, b in pairs:
        shared = z[[a, b]].dropna().reset_index(drop=True)
        long = shared.reset_index(names="target").melt(id_vars="target", var_name="judge")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = pingouin.intraclass_corr(long, "target", "judge", "value").set_index("Type")
        iccs.append(float(found.loc["ICC(C,k)", "ICC"]))
    return np.mean(iccs)


def test_the_mean_over_pairs_is_what_pingouin_finds_pair_by_pair():
    grid = make_grid()
    table = pd.DataFrame(grid.composites, columns=list(grid.raters))

    found = clinician_pairs(grid)

    assert len(found.defined) == 10
    assert found.icc == pytest.approx(by_definition(table, combinations(grid.raters, 2)))


def test_a_replicate_is_what_pingouin_finds_in_the_resample_written_out():
    grid = make_grid(n=60, share=0.7, seed=1)
    clustered = grid_of(grid.composites, np.repeat(np.arange(30), 2))
    counts = next(draw_counts(30, reps=4, seed=0))

    drawn = clinician_pairs(clustered).icc_under(clustered, counts)

    for ours, resample in zip(drawn, counts, strict=True):
        rows = np.repeat(np.arange(60), np.repeat(resample.astype(int), 2))
        table = pd.DataFrame(grid.composites[rows], columns=list(grid.raters))
        assert ours == pytest.approx(by_definition(table, combinations(grid.raters, 2)))


def test_drawing_everything_once_gives_the_mean_itself():
    grid = make_grid(seed=2)
    found = clinician_pairs(grid)

    assert found.icc_under(grid, np.ones((1, 60)))[0] == pytest.approx(found.icc)


def test_z_is_over_all_of_a_clinicians_scores_and_not_over_the_shared_ones():
    # Three shared responses; dr0 also gave two far ones, which halve dr0's z on the shared.
    grid = grid_of([[1, 1], [2, 3], [3, 2], [9, np.nan], [-5, np.nan]])
    z0 = np.array([1, 2, 3]) / np.std([1, 2, 3, 9, -5], ddof=1)
    z1 = np.array([1, 3, 2]) / np.std([1, 3, 2], ddof=1)
    (vx, cov), (_, vy) = np.cov(z0, z1)

    assert clinician_pairs(grid).icc == pytest.approx(4 * cov / (vx + vy + 2 * cov))


def test_a_clinician_without_variance_is_named_and_the_pair_left_out():
    table = make_grid().composites
    table[~np.isnan(table[:, 4]), 4] = 5
    without = clinician_pairs(grid_of(table[:, :4]))

    found = clinician_pairs(grid_of(table))

    assert found.icc == without.icc
    assert len(found.undefined) == 4
    assert all("dr4 without variance" in str(pair.reason) for pair in found.undefined)


def test_pairs_that_share_too_little_are_counted_and_left_out():
    grid = grid_of([[1, 2, np.nan], [2, 1, np.nan], [3, 3, 4], [4, 4, 5], [5, np.nan, 1]])

    found = clinician_pairs(grid, min_shared=3)

    names = [(pair.first, pair.second) for pair in found.defined]
    assert names == [("dr0", "dr1"), ("dr0", "dr2")]
    assert found.too_few == 1
    assert all(pair.fragile for pair in found.defined)


def test_two_shared_responses_can_make_any_icc_below_one():
    grid = grid_of([[1, 2.0], [2, 1.1], [3, np.nan], [np.nan, 9]])

    found = clinician_pairs(grid)

    assert found.icc < 0
    assert clinician_pairs(grid, min_shared=3).defined == ()
    assert math.isnan(clinician_pairs(grid, min_shared=3).icc)


def test_an_exchangeable_pair_finds_the_true_reliability():
    # One unit of shared variance, one of error each: r = 1/2, ICC(C,2) = 2/3.
    random = np.random.default_rng(0)
    table = random.normal(size=(3000, 1)) + random.normal(size=(3000, 4))
    grid = grid_of(table)
    found = clinician_pairs(grid)

    drawn = replicates(partial(found.icc_under, grid), BootstrapPlan(3000, 3000, reps=200))

    assert found.icc == pytest.approx(2 / 3, abs=0.03)
    assert np.quantile(drawn, 0.025) < 2 / 3 < np.quantile(drawn, 0.975)
