"""Clinicians and the jury held against clinicians: pairs, like for like, and for others like these."""

import math
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kit.composites import TWO_JURORS, by_pingouin, difference_under, grid_of
from scipy import stats

from calibration.bootstrap import BootstrapPlan, draw_counts, replicates
from calibration.clinicians import clinician_pairs, like_for_like, population_interval, without_each
from calibration.columns import PanelColumns
from calibration.intervals import jackknife_error, left_out


def make_grid(n=60, raters=5, share=0.5, seed=0):
    random = np.random.default_rng(seed)
    table = 3 + random.normal(size=(n, 1)) + 0.8 * random.normal(size=(n, raters))
    table = np.round(table * 3) / 3
    table[random.random(table.shape) > share] = np.nan
    table[np.isnan(table).all(axis=1), 0] = 3
    return readers(table)


def mean_of_pairs(table, pairs):
    """Z over all of a rater's scores, pingouin's ICC over the shared ones, the mean of pairs."""
    z = (table - table.mean()) / table.std(ddof=1)
    return np.mean([by_pingouin(z[[*pair]].dropna())["ICC(C,k)"] for pair in pairs])


def test_the_mean_over_pairs_is_what_pingouin_finds_pair_by_pair():
    grid = make_grid()
    table = pd.DataFrame(grid.composites, columns=list(grid.raters))
    found = clinician_pairs(grid)
    assert len(found.defined) == 10
    assert found.icc == pytest.approx(mean_of_pairs(table, combinations(grid.raters, 2)))


def test_a_replicate_is_what_pingouin_finds_in_the_resample_written_out():
    grid = make_grid(n=60, share=0.7, seed=1)
    clustered = readers(grid.composites, np.repeat(np.arange(30), 2))
    counts = next(draw_counts(30, reps=2, seed=0))
    drawn = clinician_pairs(clustered).icc_under(clustered, counts)
    for ours, resample in zip(drawn, counts, strict=True):
        rows = np.repeat(np.arange(60), np.repeat(resample.astype(int), 2))
        table = pd.DataFrame(grid.composites[rows], columns=list(grid.raters))
        assert ours == pytest.approx(mean_of_pairs(table, combinations(grid.raters, 2)))


def test_z_is_over_all_of_a_clinicians_scores_and_not_over_the_shared_ones():
    # Three shared responses; dr0 also gave two far ones, which halve dr0's z on the shared.
    grid = readers([[1, 1], [2, 3], [3, 2], [9, np.nan], [-5, np.nan]])
    z0 = np.array([1, 2, 3]) / np.std([1, 2, 3, 9, -5], ddof=1)
    z1 = np.array([1, 3, 2]) / np.std([1, 3, 2], ddof=1)
    (vx, cov), (_, vy) = np.cov(z0, z1)
    assert clinician_pairs(grid).icc == pytest.approx(4 * cov / (vx + vy + 2 * cov))


def test_a_clinician_without_variance_is_named_and_the_pair_left_out():
    table = make_grid().composites
    table[~np.isnan(table[:, 4]), 4] = 5
    without = clinician_pairs(readers(table[:, :4]))
    found = clinician_pairs(readers(table))
    assert found.icc == without.icc
    assert len(found.undefined) == 4
    assert all("dr4 without variance" in str(pair.reason) for pair in found.undefined)


def test_pairs_that_share_too_little_are_counted_and_left_out():
    grid = readers([[1, 2, np.nan], [2, 1, np.nan], [3, 3, 4], [4, 4, 5], [5, np.nan, 1]])
    found = clinician_pairs(grid, min_shared=3)
    names = [(pair.first, pair.second) for pair in found.defined]
    assert names == [("dr0", "dr1"), ("dr0", "dr2")]
    assert found.too_few == 1
    assert all(pair.fragile for pair in found.defined)
    assert math.isnan(clinician_pairs(grid, min_shared=9).icc)


def test_an_exchangeable_pair_finds_the_true_reliability():
    # One unit of shared variance, one of error each: r = 1/2, ICC(C,2) = 2/3.
    random = np.random.default_rng(0)
    table = random.normal(size=(3000, 1)) + random.normal(size=(3000, 4))
    grid = readers(table)
    found = clinician_pairs(grid)
    drawn = replicates(partial(found.icc_under, grid), BootstrapPlan(3000, 3000, reps=200))
    assert found.icc == pytest.approx(2 / 3, abs=0.03)
    assert np.quantile(drawn, 0.025) < 2 / 3 < np.quantile(drawn, 0.975)


def readers(table, clusters=None):
    """Return a table of clinicians alone."""
    return grid_of(table, clusters, jurors=0)


def make_table(n, doctors=5, each=3, juror_noise=1.0, seed=0):
    random = np.random.default_rng(seed)
    noise = np.array([1.0] * doctors + [juror_noise] * 2)
    table = random.normal(size=(n, 1)) + noise * random.normal(size=(n, doctors + 2))
    for row in table:
        row[random.permutation(doctors)[each:]] = np.nan
    return table


def stepped_up(xx, yy, xy, method):
    single = xy / np.sqrt(xx * yy) if method == "published" else 2 * xy / (xx + yy)
    return 2 * single / (1 + abs(single))


def by_definition(table, method):
    frame = pd.DataFrame(table)
    values = (frame - frame.mean()) / frame.std(ddof=1) if method == "paper" else frame
    doctors = list(values.columns[:-2])
    jury = values[values.columns[-2:]].mean(axis=1, skipna=False)
    sums = np.zeros((2, 3))
    for own in doctors:
        others = values[[one for one in doctors if one != own]].mean(axis=1)
        rows = values[own].notna() & others.notna() & jury.notna()
        y = others[rows] - others[rows].mean()
        for place, x in enumerate((jury[rows], values[own][rows])):
            x = x - x.mean()
            sums[place] += (x**2).sum(), (y**2).sum(), (x * y).sum()
    of_jury, of_clinician = (stepped_up(*one, method) for one in sums)
    return of_jury - of_clinician


@pytest.mark.parametrize("method", ["paper", "published"])
def test_the_difference_is_the_definition_step_by_step(method):
    table = make_table(50)
    table[3:6, -1] = np.nan
    found = like_for_like(grid_of(table), TWO_JURORS, method)
    assert len(found.defined) == 5
    assert found.difference == pytest.approx(by_definition(table, method))


@pytest.mark.parametrize("method", ["paper", "published"])
def test_a_replicate_of_it_is_the_definition_in_the_resample_written_out(method):
    table = make_table(60, seed=1)
    grid = grid_of(table, np.repeat(np.arange(30), 2))
    counts = next(draw_counts(30, reps=5, seed=0))
    drawn = difference_under(grid, TWO_JURORS, method, counts)
    for ours, resample in zip(drawn, counts, strict=True):
        rows = np.repeat(np.arange(60), np.repeat(resample.astype(int), 2))
        assert ours == pytest.approx(by_definition(table[rows], method))


def test_two_clinicians_worked_by_hand():
    """dr0 1 2 3, dr1 1 3 2, jury 1 2 3, each once the held-out one and once the other.

    Held out dr0: jury with dr1 Sxx 2, Syy 2, Sxy 1; dr0 with dr1 the same. Held out dr1: jury
    with dr0 2, 2, 2; dr1 with dr0 2, 2, 1. Pooled r: jury 2 x 3 / (4 + 4) = 0.75, a clinician
    2 x 2 / 8 = 0.5. Stepped up: 1.5 / 1.75 = 6/7 and 1 / 1.5 = 2/3.
    """
    table = np.array([[1, 1, 1, 1], [2, 3, 2, 2], [3, 2, 3, 3]], dtype=float)
    found = like_for_like(grid_of(table), TWO_JURORS, "published")
    assert found.iccs == pytest.approx((6 / 7, 2 / 3))
    assert found.difference == pytest.approx(4 / 21)


@given(
    arrays(float, (8, 5), elements=st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0])),
    arrays(bool, (8, 3)),
    st.sampled_from(["paper", "published"]),
)
def test_no_scores_take_it_beyond_its_bounds(table, missing, method):
    table[:, :3][missing] = np.nan
    found = like_for_like(grid_of(table), TWO_JURORS, method)
    jury, clinician = found.iccs
    assert bool(found.defined) == np.isfinite(jury) == np.isfinite(clinician)
    assert not found.defined or max(abs(jury), abs(clinician)) <= 1 + 1e-12


def test_a_jury_that_is_one_more_clinician_is_neither_better_nor_worse():
    table = make_table(3000, seed=2)
    table[:, -1] = table[:, -2]  # one juror, twice: as noisy as a clinician
    grid = grid_of(table)
    found = like_for_like(grid, TWO_JURORS, "paper")
    statistic = partial(difference_under, grid, TWO_JURORS, "paper")
    drawn = replicates(statistic, BootstrapPlan(3000, 3000, reps=200))
    assert found.difference == pytest.approx(0, abs=0.03)
    assert np.quantile(drawn, 0.025) < 0 < np.quantile(drawn, 0.975)


@pytest.mark.parametrize(
    ("method", "own", "reason"),
    [
        ("published", [2.0, *[np.nan] * 39], "undefined: 1 response has all the scores needed"),
        *((method, [3.0] * 40, "undefined: no variance") for method in ("paper", "published")),
    ],
)
def test_a_clinician_who_cannot_be_compared_is_named_with_the_reason(method, own, reason):
    table = np.column_stack([own, make_table(40)])
    found = like_for_like(grid_of(table), TWO_JURORS, method)
    assert [held.clinician for held in found.undefined] == ["dr0"]
    assert str(found.undefined[0].reason).startswith(reason)
    assert len(found.defined) == 5


def test_a_jury_that_says_the_same_of_all_and_single_ratings_leave_nothing_to_compare():
    table = make_table(40)
    table[:, -2:] = 4.0
    found = like_for_like(grid_of(table), TWO_JURORS, "published")
    assert found.defined == ()
    reasons = {str(held.reason) for held in found.undefined}
    assert reasons == {"undefined: the jury gave all these responses the same score"}
    found = like_for_like(grid_of(make_table(40, each=1)), TWO_JURORS, "paper")
    assert (found.defined, len(found.rows)) == ((), 0)
    assert np.isnan(found.difference)


JURY = PanelColumns(("j0",), 1)


def compared(grid):
    found = like_for_like(grid, JURY, "paper")
    if not found.defined:
        return found, [], np.nan
    without = [one.difference for one in without_each(grid, JURY, found, "paper")]
    left = difference_under(grid, JURY, "paper", left_out(len(grid.responses)))
    return found, without, jackknife_error(left)


def test_for_others_like_these_it_is_the_jackknife_over_clinicians_and_over_instances():
    grid = study()
    found, differences, error = compared(grid)
    rest = [grid_of(np.delete(grid.composites, place, axis=1), jurors=1) for place in range(4)]
    without = [like_for_like(one, JURY, "paper").difference for one in rest]
    jackknife = 3 * np.var(without)  # (C - 1) / C times the sum of squares
    half = np.sqrt(stats.t.ppf(0.975, 3) ** 2 * jackknife + (1.959964 * error) ** 2)
    ends = population_interval(found, differences, error)
    own = found.difference
    assert (ends.low, ends.high) == pytest.approx((own - half, own + half))


def test_for_others_like_these_it_is_wider_and_widest_where_clinicians_differ():
    def widths(errors):
        grid = study(400, errors)
        found, differences, error = compared(grid)
        ends = population_interval(found, differences, error)
        return ends.high - ends.low, 2 * 1.96 * error

    alike, fixed = widths((1.0, 1.0, 1.0, 1.0))
    unlike, _ = widths((0.2, 0.5, 2.0, 6.0))
    assert fixed < alike < 4 * fixed
    assert unlike > 1.5 * alike


def study(n=80, errors=(1.0, 1.0, 1.0, 1.0)):
    random = np.random.default_rng(0)
    true = random.normal(size=(n, 1))
    table = true + random.normal(size=(n, len(errors))) * np.sqrt(errors)
    return grid_of(np.hstack([table, true + random.normal(size=(n, 1))]), jurors=1)


@pytest.mark.parametrize("clinicians", [1, 2])
def test_fewer_than_three_clinicians_say_nothing_of_others_like_them(clinicians):
    found = population_interval(*compared(study(errors=(1.0,) * clinicians)))
    assert found.code == "population_few"


def test_a_study_that_hangs_on_one_clinician_says_nothing_of_others_like_them():
    grid = study(errors=(1.0,) * 3)
    grid.composites[:40, 1] = np.nan
    grid.composites[40:, 2] = np.nan  # dr1 and dr2 share nothing: all is with dr0
    assert population_interval(*compared(grid)).code == "population_undefined"
