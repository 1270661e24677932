from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kit.composites import TWO_JURORS, difference_under, grid_of

from calibration.bootstrap import BootstrapPlan, draw_counts, replicates
from calibration.clinicians import like_for_like
from calibration.icc import icc_consistency
from calibration.rating_matrix import z_within_raters
from calibration.weighted import pooled_icc


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
def test_a_replicate_is_the_definition_in_the_resample_written_out(method):
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


@pytest.mark.parametrize("method", ["paper", "published"])
def test_it_is_the_icc_of_all_comparisons_laid_end_to_end(method):
    grid = grid_of(make_table(40, seed=4))
    found = like_for_like(grid, TWO_JURORS, method)
    raw = grid.composites
    values = z_within_raters(raw) if method == "paper" else raw
    ends = []
    for held in found.defined:
        own = int(grid.columns([held.clinician])[0])
        others = np.nanmean(np.delete(values[:, :5], own, axis=1)[held.rows], axis=1)
        both = np.column_stack([values[held.rows, -2:].mean(axis=1), others])
        ends.append(both - both.mean(axis=0))
    laid = np.concatenate(ends)
    laid = laid / laid.std(axis=0) if method == "published" else laid

    assert found.iccs[0] == pytest.approx(float(icc_consistency(laid)))


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


def test_a_jury_that_ranks_in_reverse_has_what_one_in_order_has_with_another_sign():
    squares = np.array([2.0, 3.0, 1.5])

    for method in ("paper", "published"):
        alike, reverse = pooled_icc(squares, method), pooled_icc(squares * [1, 1, -1], method)
        assert reverse == pytest.approx(-alike)


def test_one_clinician_with_few_responses_does_not_decide():
    table = make_table(80, seed=5)
    for place, score in zip(range(3), (9.0, -9.0, 8.0), strict=True):  # against everybody
        table[place] = [-score, *[score] * (table.shape[1] - 1)]
    table[3:, 0] = np.nan

    found = like_for_like(grid_of(table), TWO_JURORS, "paper")

    assert len(found.defined) == 5
    assert min(found.iccs) >= -1
    assert abs(found.difference) < 0.5


def test_a_jury_that_is_one_more_clinician_is_neither_better_nor_worse():
    table = make_table(3000, seed=2)
    table[:, -1] = table[:, -2]  # one juror, twice: as noisy as a clinician
    grid = grid_of(table)
    found = like_for_like(grid, TWO_JURORS, "paper")

    statistic = partial(difference_under, grid, TWO_JURORS, "paper")
    drawn = replicates(statistic, BootstrapPlan(3000, 3000, reps=200))

    assert found.difference == pytest.approx(0, abs=0.03)
    assert np.quantile(drawn, 0.025) < 0 < np.quantile(drawn, 0.975)


def test_a_better_jury_is_above_zero_and_a_random_one_below():
    better = like_for_like(grid_of(make_table(400, juror_noise=0.3)), TWO_JURORS, "paper")
    random = make_table(400, seed=3)
    random[:, -2:] = np.random.default_rng(0).normal(size=(400, 2))
    worse = like_for_like(grid_of(random), TWO_JURORS, "paper")

    assert better.difference > 0.1
    assert worse.difference < -0.3


def test_a_clinician_whom_nobody_shares_is_not_compared_and_named():
    table = make_table(40)
    table = np.column_stack([np.full(40, np.nan), table])
    table[0, 0] = 2.0

    found = like_for_like(grid_of(table), TWO_JURORS, "published")

    assert [held.clinician for held in found.undefined] == ["dr0"]
    assert str(found.undefined[0].reason).startswith(
        "undefined: 1 response has all the scores needed"
    )
    assert len(found.defined) == 5


def test_a_clinician_without_variance_is_not_compared():
    table = make_table(40)
    table[~np.isnan(table[:, 0]), 0] = 3.0

    for method in ("paper", "published"):
        found = like_for_like(grid_of(table), TWO_JURORS, method)
        assert str(found.undefined[0].reason) == "undefined: no variance"
        assert [held.clinician for held in found.undefined] == ["dr0"]


def test_a_jury_that_says_the_same_of_all_is_undefined_with_the_reason():
    table = make_table(40)
    table[:, -2:] = 4.0

    found = like_for_like(grid_of(table), TWO_JURORS, "published")

    assert found.defined == ()
    reasons = {str(held.reason) for held in found.undefined}
    assert reasons == {"undefined: the jury gave all these responses the same score"}


def test_single_ratings_leave_nothing_to_compare():
    found = like_for_like(grid_of(make_table(40, each=1)), TWO_JURORS, "paper")

    assert found.defined == ()
    assert np.isnan(found.difference)
    assert len(found.rows) == 0
