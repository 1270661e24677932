import numpy as np
import pandas as pd
import pytest

from calibration.agreement import Panel
from calibration.bootstrap import Resampling, draw_counts, replicates
from calibration.grid import Grid
from calibration.like_for_like import held_replicates, like_for_like
from calibration.messages import words

JURY = Panel(("j0", "j1"), 2)


def grid_of(table, clusters=None):
    n, raters = table.shape
    names = (*(f"dr{i}" for i in range(raters - 2)), "j0", "j1")
    kinds = ("clinician",) * (raters - 2) + ("juror",) * 2
    where = np.arange(n) if clusters is None else clusters
    return Grid(table, tuple(map(str, range(n))), where, names, kinds)


def make_table(n, doctors=5, each=3, juror_noise=1.0, seed=0):
    random = np.random.default_rng(seed)
    noise = np.array([1.0] * doctors + [juror_noise] * 2)
    table = random.normal(size=(n, 1)) + noise * random.normal(size=(n, doctors + 2))
    for row in table:
        row[random.permutation(doctors)[each:]] = np.nan
    return table


def icc(x, y, method):
    if method == "published":
        r = np.corrcoef(x, y)[0, 1]
        return 2 * r / (1 + r)
    (vx, cov), (_, vy) = np.cov(x, y)
    return 4 * cov / (vx + vy + 2 * cov)


def by_definition(table, method):
    frame = pd.DataFrame(table)
    values = (frame - frame.mean()) / frame.std(ddof=1) if method == "paper" else frame
    doctors = list(values.columns[:-2])
    jury = values[values.columns[-2:]].mean(axis=1, skipna=False)
    gaps = []
    for own in doctors:
        others = values[[one for one in doctors if one != own]].mean(axis=1)
        rows = values[own].notna() & others.notna() & jury.notna()
        gaps.append(
            icc(jury[rows], others[rows], method) - icc(values[own][rows], others[rows], method)
        )
    return np.mean(gaps)


@pytest.mark.parametrize("method", ["paper", "published"])
def test_the_difference_is_the_definition_step_by_step(method):
    table = make_table(50)
    table[3:6, -1] = np.nan

    found = like_for_like(grid_of(table), JURY, method)

    assert len(found.defined) == 5
    assert found.difference == pytest.approx(by_definition(table, method))


@pytest.mark.parametrize("method", ["paper", "published"])
def test_a_replicate_is_the_definition_in_the_resample_written_out(method):
    table = make_table(60, seed=1)
    grid = grid_of(table, np.repeat(np.arange(30), 2))
    counts = next(draw_counts(30, reps=5, seed=0))

    drawn = held_replicates(grid, JURY, like_for_like(grid, JURY, method), method)(counts)

    for ours, resample in zip(drawn, counts, strict=True):
        rows = np.repeat(np.arange(60), np.repeat(resample.astype(int), 2))
        assert ours == pytest.approx(by_definition(table[rows], method))


def test_a_jury_that_is_one_more_clinician_is_neither_better_nor_worse():
    table = make_table(3000, seed=2)
    table[:, -1] = table[:, -2]  # one juror, twice: as noisy as a clinician
    grid = grid_of(table)
    found = like_for_like(grid, JURY, "paper")

    statistic = held_replicates(grid, JURY, found, "paper")
    drawn = replicates(statistic, Resampling(3000, 3000, reps=200))

    assert found.difference == pytest.approx(0, abs=0.03)
    assert np.quantile(drawn, 0.025) < 0 < np.quantile(drawn, 0.975)


def test_a_better_jury_is_above_zero_and_a_random_one_below():
    better = like_for_like(grid_of(make_table(400, juror_noise=0.3)), JURY, "paper")
    random = make_table(400, seed=3)
    random[:, -2:] = np.random.default_rng(0).normal(size=(400, 2))
    worse = like_for_like(grid_of(random), JURY, "paper")

    assert better.difference > 0.1
    assert worse.difference < -0.3


def test_a_clinician_whom_nobody_shares_is_not_compared_and_named():
    table = make_table(40)
    table = np.column_stack([np.full(40, np.nan), table])
    table[0, 0] = 2.0

    found = like_for_like(grid_of(table), JURY, "published")

    assert [held.clinician for held in found.undefined] == ["dr0"]
    assert words(found.undefined[0].reason).startswith("undefined: 1 response has the scores")
    assert len(found.defined) == 5


def test_a_clinician_without_variance_is_not_compared():
    table = make_table(40)
    table[~np.isnan(table[:, 0]), 0] = 3.0

    for method in ("paper", "published"):
        found = like_for_like(grid_of(table), JURY, method)
        assert [held.clinician for held in found.undefined] == ["dr0"]


def test_single_ratings_leave_nothing_to_compare():
    found = like_for_like(grid_of(make_table(40, each=1)), JURY, "paper")

    assert found.defined == ()
    assert np.isnan(found.difference)
    assert len(found.rows) == 0
