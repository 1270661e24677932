"""The winner's curse: places in a resample, sums outside it, and studies whose truth is known."""

import math

import numpy as np
import pytest
from plain_scope import scope_of

from calibration.agreement import Panel, columns
from calibration.bootstrap import draw_counts
from calibration.icc import icc_consistency
from calibration.juries.ranking import jury_ranking
from calibration.juries.rows import Wanted
from calibration.juries.winners_curse import NOBODY, best_of_each, best_places

NAN = math.nan
METHODS = ["paper", "published"]


def table(n, seed, *, gain=0.0, jurors=7, noise=1.5):
    """Two clinicians, and jurors of equal noise but for the first three, who may be better."""
    random = np.random.default_rng([seed, n])
    quality = random.normal(size=(n, 1))
    spread = np.full(jurors, noise)
    spread[:3] -= gain
    own = quality + spread * random.normal(size=(n, jurors))
    return np.hstack([quality + random.normal(size=(n, 2)), own])


def truth(**how):
    """Return the ICC of the first three jurors with the clinicians, from very many responses."""
    found = table(300_000, 99, **how)
    z = (found - found.mean(axis=0)) / found.std(axis=0)
    return float(icc_consistency(np.column_stack([z[:, :2].mean(axis=1), z[:, 2:5].mean(axis=1)])))


def test_places_are_in_order_and_of_equal_juries_the_earlier_comes_first():
    icc = np.array([[0.1, 0.5, NAN, 0.5], [NAN, NAN, 0.2, NAN], [NAN] * 4])
    assert best_places(icc, 3).tolist() == [[1, 3, 0], [2, -1, -1], [-1, -1, -1]]
    assert best_places(icc, 9).shape == (3, 4)


def test_the_best_of_each_group_is_found_or_nobody():
    icc = np.array([[0.1, 0.5, NAN, 0.7], [0.3, NAN, NAN, NAN]])
    groups = [np.array([0, 1]), np.array([2, 3])]
    assert best_of_each(icc, groups).tolist() == [[1, 3], [0, NOBODY]]


def outside_by_hand(scope, reps, size):
    """Choose in each resample, and pool covariances of the responses left, in plain loops."""
    method, grid = scope.asked.method, scope.grid
    found = jury_ranking(scope, Wanted(sizes=range(size, size + 1)))
    juries = [Panel(row.jurors, size) for row in sorted(found.rows, key=lambda row: row.jurors)]
    whole = [columns(grid, jury, method) for jury in juries]
    sums = np.zeros((2, 2))
    for counts in next(draw_counts(grid.n_clusters, reps=reps, seed=scope.asked.seed)):
        rows = np.repeat(np.arange(len(grid.responses)), counts[grid.clusters].astype(int))
        again = scope_of(grid.composites[rows], 2, method=method, reps=0)
        best = jury_ranking(again, Wanted(sizes=range(size, size + 1))).rows[0].jurors
        pair = whole[[jury.members for jury in juries].index(best)]
        left = (counts[grid.clusters] == 0) & pair.both
        if left.sum() > 1:
            sums += np.cov(pair.clinicians[left], pair.scorer[left]) * (left.sum() - 1)
    if method == "published":
        r = sums[0, 1] / math.sqrt(sums[0, 0] * sums[1, 1])
        return 2 * r / (1 + r)
    return 4 * sums[0, 1] / sums.sum()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("per", "lost"), [(1, 0.0), (3, 0.0), (1, 0.2)])
def test_the_honest_icc_is_that_of_plain_loops(method, per, lost):
    composites = table(30, 3, jurors=4)
    gone = np.random.default_rng(0).random((30, 4)) < lost
    composites[:, 2:] = np.where(gone, NAN, composites[:, 2:])
    scope = scope_of(composites, 2, per=per, reps=25, seed=5, method=method)

    found = jury_ranking(scope, Wanted(sizes=range(2, 3)))

    assert found.winner.icc_honest == pytest.approx(outside_by_hand(scope, 25, 2), abs=1e-12)
    assert found.by_size[0].icc_honest == found.winner.icc_honest


@pytest.mark.parametrize("pool", ["mean", "median"])
def test_a_jury_that_is_the_only_one_of_its_size_was_not_chosen(pool):
    found = jury_ranking(scope_of(table(40, 0, jurors=3), 2), Wanted(pool=pool))
    last = found.by_size[-1]
    assert (last.n_compared, last.icc_honest, last.optimism) == (1, last.row.icc, 0.0)


def test_a_weighted_jury_chose_its_weights_even_where_it_is_the_only_one():
    found = jury_ranking(scope_of(table(25, 0, jurors=3), 2), Wanted(pool="weighted"))
    assert found.by_size[-1].optimism > 0


def test_one_instance_has_nothing_outside():
    found = jury_ranking(scope_of(table(12, 0, jurors=3), 2, per=12), Wanted())
    assert math.isfinite(found.winner.row.icc)
    assert math.isnan(found.winner.icc_honest)
    assert math.isnan(found.winner.optimism)
    assert math.isnan(found.winner.row.low)


def studies(n, times, **how):
    """Return ICCs of the winner, of all juries on average, and the honest one, (times, 3)."""
    pool, found = how.pop("pool", "mean"), []
    for seed in range(times):
        scope = scope_of(table(n, seed, **how), 2, reps=150, seed=seed)
        best = jury_ranking(scope, Wanted(sizes=range(3, 4), pool=pool, top=1))
        mean = np.mean([row.icc for row in best.rows])
        found.append((best.winner.row.icc, mean, best.winner.icc_honest))
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "optimism"), [(25, 0.105), (56, 0.07), (112, 0.05), (300, 0.03)])
def test_of_equal_juries_the_best_looks_better_and_the_honest_icc_does_not(n, optimism):
    found = studies(n, 300)
    winner, mean, honest = found.T
    error = (honest - mean).std() / math.sqrt(len(found))
    assert (winner - mean).mean() == pytest.approx(optimism, abs=0.015)
    assert abs((honest - mean).mean()) < 3 * error + 0.002
    assert abs(honest.mean() - truth()) < 3 * honest.std() / math.sqrt(len(found)) + 0.5 / n


@pytest.mark.slow
@pytest.mark.parametrize("n", [56, 300])
def test_where_one_jury_is_much_better_little_is_taken_off(n):
    found = studies(n, 200, gain=1.0)
    winner, _, honest = found.T
    true = truth(gain=1.0)
    assert true - 0.03 < honest.mean() < true + 0.01
    assert honest.mean() < winner.mean()


@pytest.mark.slow
def test_the_honest_icc_pays_for_weights_that_were_learnt():
    winner, mean, honest = studies(40, 150, pool="weighted").T
    assert winner.mean() > mean.mean() > honest.mean()
    assert honest.mean() < truth() + 0.01
