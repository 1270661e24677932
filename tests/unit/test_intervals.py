"""Intervals of ICCs: the jackknife in Fisher's z, the bootstrap over instances, and standard errors that hold."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from kit.composites import JURY, Design, drawn, grid_of, loading
from scipy import stats

from calibration import bootstrap
from calibration.bootstrap import BootstrapPlan, draw_counts, percentile_interval, replicates
from calibration.columns import PanelColumns, column_icc, columns
from calibration.icc import f_interval
from calibration.intervals import icc_of_fisher, jackknife_error, jackknife_interval, left_out
from calibration.monitoring import finite_z, independent_se
from calibration.weighted import scorer_iccs, weighted_icc


def jury_icc(grid, weights):
    return scorer_iccs(grid, [JURY], "paper", weights)[:, 0]


def test_each_instance_is_left_out_once_and_many_in_even_groups():
    few, many = left_out(5), left_out(1001)
    assert few.shape == (6, 5)
    assert (few[0] == 1).all()
    assert sorted(np.flatnonzero(row == 0).tolist() for row in few[1:]) == [[n] for n in range(5)]
    assert many.shape == (201, 1001)
    assert ((many[1:] == 0).sum(axis=0) == 1).all()
    assert set((many[1:] == 0).sum(axis=1)) == {5, 6}
    assert (left_out(1001) == many).all()


def test_it_is_the_icc_of_the_study_without_each_instance_taken_back_from_fishers_z():
    table = drawn(Design(3, 0.4, 30), loading(Design(3, 0.4, 30), 0.0), np.random.default_rng(0))
    values = jury_icc(grid_of(table, jurors=3), left_out(30))
    own = []
    for rest in (table, *(table.drop(index=n) for n in range(30))):
        grid = grid_of(rest, jurors=3)
        pair = columns(grid, JURY, "paper")
        own.append(column_icc(pair.clinicians, pair.scorer, "paper"))
    assert sorted(values[1:]) == pytest.approx(sorted(own[1:]))
    z = -np.log(1 - np.array(own)) / 2
    about = z[1:] - z[1:].mean()
    freedom = 2 * 30 / (np.mean(about**4) / np.mean(about**2) ** 2 - 1)
    half = stats.t.ppf(0.975, min(freedom, 29)) * np.sqrt(29 * np.mean(about**2))
    ends, about = jackknife_interval(values), values[1:] - values[1:].mean()
    expected = 1 - np.exp(-2 * (z[0] + np.array([-half, half])))
    assert [ends.low, ends.high] == pytest.approx(expected)
    assert jackknife_error(values) == pytest.approx(np.sqrt(29 / 30 * (about**2).sum()))


@pytest.mark.parametrize("values", [[0.5, 0.4], [0.5, np.nan, 0.4, 0.3], [np.nan, 0.1, 0.2, 0.3]])
def test_what_is_undefined_anywhere_has_no_interval(values):
    ends = jackknife_interval(np.array(values))
    assert np.isnan([ends.low, ends.high, jackknife_error(np.array(values))]).all()


@pytest.mark.slow
@pytest.mark.parametrize("clinicians", [2, 4])
@pytest.mark.parametrize("ceiling", [False, True])
def test_it_holds_the_truth_as_often_as_it_says(clinicians, ceiling):
    design = Design(clinicians, 0.4, 100, ceiling=ceiling)
    random, loaded = np.random.default_rng(3), loading(design, 0.0)
    large = grid_of(drawn(replace(design, responses=200_000), loaded, random), jurors=3)
    pair = columns(large, JURY, "paper")
    truth = column_icc(pair.clinicians, pair.scorer, "paper")
    grids = (grid_of(drawn(design, loaded, random), jurors=3) for _ in range(400))
    found = [jackknife_interval(jury_icc(grid, left_out(100))) for grid in grids]
    held = np.mean([ends.low <= truth <= ends.high for ends in found])
    assert held + 2 * np.sqrt(0.95 * 0.05 / 400) >= 0.93


def mean_of(values):
    def statistic(counts):
        return counts @ values / counts.sum(axis=1)

    return statistic


def test_every_resample_draws_as_many_clusters_as_there_are_and_one_seed_is_one_answer():
    counts = np.concatenate(list(draw_counts(7, reps=50, seed=0)))
    assert counts.shape == (50, 7)
    assert (counts.sum(axis=1) == 7).all()
    assert counts.max() > 1
    values, how = np.arange(9.0), BootstrapPlan(9, 9, reps=20, seed=5)
    first, again = (replicates(mean_of(values), how) for _ in range(2))
    assert (first == again).all()
    assert (first != replicates(mean_of(values), BootstrapPlan(9, 9, reps=20, seed=6))).any()


def test_how_many_are_held_at_a_time_changes_nothing(monkeypatch):
    whole = np.concatenate(list(draw_counts(7, reps=101, seed=3)))
    monkeypatch.setattr(bootstrap, "CELLS", 30)
    parts = list(draw_counts(7, reps=101, seed=3))
    assert len(parts) > 20
    assert (np.concatenate(parts) == whole).all()


def test_no_resamples_have_no_interval_and_undefined_ones_are_left_out_of_it():
    drawn = replicates(mean_of(np.arange(9.0)), BootstrapPlan(9, 9, reps=0))
    assert drawn.shape == (0,)
    assert math.isnan(percentile_interval(drawn).low)
    alone = replicates(mean_of(np.ones(1)), BootstrapPlan(1, 8, reps=20))
    assert np.isnan(alone).tolist() == [True] * 20
    values = np.array([np.nan, np.inf, *np.arange(101.0)])
    ends = percentile_interval(values, confidence=0.9)
    assert (ends.low, ends.high) == pytest.approx((5, 95))


def test_the_mean_has_its_textbook_standard_error():
    values = np.random.default_rng(0).normal(size=200)
    drawn = replicates(mean_of(values), BootstrapPlan(200, 200, reps=8000))
    assert drawn.std() == pytest.approx(values.std() / np.sqrt(200), rel=0.03)


STUDIES = REPS = 400
# Of each column: half is truth (between instances and within), half the rater's own, as much of
# it between instances as within. Two such columns correlate by 1/2: ICC(3,2) = 2r / (1 + r).
TRUTH = 2 / 3


def study(random, instances, each):
    """Return a clinician and a juror who share half their variance."""
    clusters = np.repeat(np.arange(instances), each)
    truth, *own = (
        random.normal(size=instances)[clusters] + random.normal(size=len(clusters)) for _ in "tcj"
    )
    return grid_of(np.column_stack([truth + one for one in own]), clusters, jurors=1)


def covered(instances, each):
    """Return how often the bootstrap over instances, and F, hold the truth."""
    random, panel = np.random.default_rng(instances), PanelColumns(("j0",), 1)
    boot = exact = 0
    for number in range(STUDIES):
        grid = study(random, instances, each)
        how = BootstrapPlan(instances, len(grid.responses), REPS, number)
        drawn = replicates(partial(scorer_iccs, grid, [panel], "paper"), how)[:, 0]
        ends = percentile_interval(drawn)
        pair = columns(grid, panel, "paper")
        icc = column_icc(pair.clinicians, pair.scorer, "paper")
        taken = f_interval(icc, len(grid.responses))
        boot += ends.low <= TRUTH <= ends.high
        exact += taken.low <= TRUTH <= taken.high
    return boot / STUDIES, exact / STUDIES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("instances", "each", "boot", "exact"),
    [
        (56, 1, (0.90, 0.98), (0.92, 0.98)),
        (56, 9, (0.90, 0.98), (0, 0.88)),  # F takes responses of an instance for independent ones
        (12, 5, (0.80, 0.94), (0, 1)),  # too narrow, as the note says
    ],
)
def test_the_bootstrap_over_instances_holds_the_truth_and_f_with_one_response_each(
    instances, each, boot, exact
):
    found = covered(instances, each)
    assert boot[0] <= found[0] <= boot[1]
    assert exact[0] <= found[1] <= exact[1]


def error(x, y, clusters):
    """Return the standard error of the ICC of two columns, leaving out each cluster in turn."""
    return jackknife_error(finite_z(without_each(x, y, clusters)))


def without_each(x, y, clusters):
    weights = left_out(int(clusters.max()) + 1)[:, clusters]
    return weighted_icc(x - x.mean(), y - y.mean(), weights)


def draw(icc, n, per=1, seed=0):
    random = np.random.default_rng(seed)
    r = icc / (2 - icc)
    quality = np.repeat(random.normal(size=n // per), per) * math.sqrt(r)
    noise = math.sqrt(1 - r)
    return quality + noise * random.normal(size=n), quality + noise * random.normal(size=n)


@pytest.mark.parametrize(
    ("icc", "z"),
    [
        (0.6, math.log(2.5) / 2),  # ICC(C,1) = .6 / 1.4 = 3/7; atanh(3/7) = ln(10/4) / 2
        *((0.4, math.log(1.25 / 0.75) / 2), (0.0, 0)),
        *((1.0, math.nan), (math.nan, math.nan), (-math.inf, math.nan)),
    ],
)
def test_an_icc_of_six_tenths_is_a_z_of_nearly_half_and_one_of_1_has_none(icc, z):
    assert finite_z(icc) == pytest.approx(z, nan_ok=True)


@pytest.mark.parametrize("icc", [-486491.0, -1.2, -0.1, 0.0, 0.43, 0.999])
def test_z_goes_there_and_back_however_low_the_icc(icc):
    assert float(icc_of_fisher(finite_z(icc))) == pytest.approx(icc, rel=1e-6)


def test_the_error_of_independent_responses_is_that_of_half_the_log_of_an_f_ratio():
    logs = np.log(stats.f.rvs(19, 19, size=200_000, random_state=0)) / 2
    assert independent_se(20) == pytest.approx(logs.std(), rel=0.01)
    assert independent_se(20) == pytest.approx(1 / math.sqrt(18), rel=0.01)
    assert math.isnan(independent_se(2))


def test_shift_scale_and_order_change_no_error_and_a_single_instance_has_none():
    x, y = draw(0.6, 30)
    order = np.random.default_rng(1).permutation(30)
    own = error(x, y, np.arange(30))
    assert error(3 * x + 5, 3 * y - 2, np.arange(30)) == pytest.approx(own)
    assert error(x[order], y[order], np.arange(30)) == pytest.approx(own)
    x, y = draw(0.6, 4)
    assert math.isnan(error(x, y, np.zeros(4, int)))
    flat = np.array([0.0, 0.0, 0.0, 1.0])
    assert math.isnan(error(flat, flat + x, np.arange(4)))


@pytest.mark.slow
@pytest.mark.parametrize(("per", "low", "high"), [(1, 0.9, 1.15), (5, 0.85, 1.15)])
def test_the_jackknife_is_as_large_as_z_really_varies(per, low, high):
    n = 40 * per
    random = [draw(0.6, n, per, seed) for seed in range(800)]
    clusters = np.arange(n) // per
    iccs = [without_each(x, y, clusters) for x, y in random]
    true = np.std([finite_z(one[0]) for one in iccs])
    found = np.mean([jackknife_error(finite_z(one)) for one in iccs])
    assert low < found / true < high
    assert (true > 1.1 * independent_se(n)) == (per > 1)  # dependent responses vary more
