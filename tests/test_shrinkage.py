"""What to expect of the best of many juries: by hand, at the ends, and where the truth is known."""

import math

import numpy as np
import pytest
from kit.scores import scope_of

from calibration.icc import icc_consistency
from calibration.juries.ranking import RankingOptions, jury_ranking
from calibration.juries.resampled import expected_iccs

NAN = math.nan
SIZES = range(1, 6)


def table(n, seed, *, spreads=(1.5,) * 7, per=1, ceiling=False):
    """Two clinicians, and jurors with these standard deviations of error."""
    random = np.random.default_rng([seed, n])
    instances = -(-n // per)
    share = 0.5 if per > 1 else 0.0
    quality = math.sqrt(share) * random.normal(size=instances)[np.arange(n) // per]
    quality += math.sqrt(1 - share) * random.normal(size=n)
    error = np.array([1.0, 1.0, *spreads]) * random.normal(size=(n, 2 + len(spreads)))
    scores = quality[:, None] + error
    return np.clip(np.rint(4 + scores), 1, 5) if ceiling else scores


def icc_of_z(drawn):
    return 1 - np.exp(-2 * np.asarray(drawn))


def test_two_juries_are_drawn_together_as_computed_by_hand():
    # z of 0.6 and 0.2: mean 0.4, distances 0.2 and -0.2, S = 0.08. In four resamples z1 - z2 is
    # 0.4 + (0.2, -0.2, 0.2, -0.2): the distances move by 0.1, and v = (0.01 + 0.01) 10/9. Of one
    # pair worth f is 1, so v / S is taken at 0.5 / 1 of it: taken = 0.5 * 0.02222 / 0.08.
    moved = np.array([0.1, -0.1, 0.1, -0.1])
    drawn = icc_of_z(np.stack([0.6 + moved, 0.2 - moved]))

    found = expected_iccs(icc_of_z([0.6, 0.2]), drawn, np.array([2, 2]), 10, np.zeros(2))

    full = 0.02 * 10 / 9 / 0.08
    taken, away = 0.5 * full, 0.2
    assert found.icc == pytest.approx(
        icc_of_z([0.4 + away * (1 - taken), 0.4 - away * (1 - taken)])
    )
    variance = 10 / 9 * ((1 - taken) * 0.1) ** 2 + taken**2 * (0.08 - 0.02 * 10 / 9)
    reach = 2.262157 * math.sqrt(variance + 2 / 0.5 * taken**2 * away**2)  # t of 9 degrees
    low = 0.4 + away * (1 - full) - reach
    assert found.low[0] == pytest.approx(float(icc_of_z(low)))
    assert found.high[0] == pytest.approx(float(icc_of_z(0.4 + away * (1 - taken) + reach)))


def test_juries_that_differ_by_less_than_chance_are_expected_to_be_nearly_alike():
    random = np.random.default_rng(0)
    drawn = icc_of_z(0.8 + 0.1 * random.normal(size=(200, 400)))
    seen = icc_of_z(0.8 + 0.05 * random.normal(size=200))
    found = expected_iccs(seen, drawn, np.full(200, 3), 60, np.zeros(200))
    assert np.ptp(found.icc) < 0.05 * np.ptp(seen)


def test_a_jury_that_stands_out_far_beyond_chance_stays_where_it_is():
    random = np.random.default_rng(0)
    middle = np.linspace(0, 2, 30)[:, None]
    seen = icc_of_z(middle[:, 0])
    drawn = icc_of_z(middle + 0.01 * random.normal(size=(30, 400)))
    found = expected_iccs(seen, drawn, np.full(30, 2), 60, np.zeros(30))
    assert found.icc == pytest.approx(seen, abs=1e-3)


def test_juries_of_another_size_change_nothing():
    random = np.random.default_rng(1)
    z = random.normal(0.5, 0.1, size=9)
    drawn = icc_of_z(z[:, None] + 0.1 * random.normal(size=(9, 100)))
    sizes = np.array([1] * 4 + [2] * 5)
    both = expected_iccs(icc_of_z(z), drawn, sizes, 40, np.zeros(9))
    alone = expected_iccs(icc_of_z(z[:4]), drawn[:4], sizes[:4], 40, np.zeros(4))
    for name in ("icc", "low", "high"):
        assert getattr(both, name)[:4] == pytest.approx(getattr(alone, name))


@pytest.mark.parametrize(
    ("icc", "row"), [(NAN, [0.5] * 4), (1.0, [0.5] * 4), (0.5, [NAN] * 3 + [0.5]), (0.5, [NAN] * 4)]
)
def test_a_jury_without_an_icc_or_with_too_few_resampled_has_no_expectation(icc, row):
    drawn = np.array([row, [0.4, 0.5, 0.6, 0.5], [0.3, 0.5, 0.4, 0.5]])
    found = expected_iccs(np.array([icc, 0.5, 0.4]), drawn, np.array([1, 1, 1]), 20, np.zeros(3))
    for ends in (found.icc, found.low, found.high):
        assert np.isnan(ends).tolist() == [True, False, False]


@pytest.mark.parametrize("pool", ["mean", "median"])
def test_a_jury_that_is_the_only_one_of_its_size_was_not_chosen(pool):
    found = jury_ranking(scope_of(table(40, 0, spreads=[1.5] * 3), 2), RankingOptions(pool=pool))
    last = found.by_size[-1]
    assert (last.n_compared, last.row.icc_honest, last.optimism) == (1, last.row.icc, 0.0)
    assert last.row.honest_low < last.row.icc < last.row.honest_high


def test_a_weighted_jury_chose_its_weights_even_where_it_is_the_only_one():
    composites = table(25, 0, spreads=[1.5] * 3)
    found = jury_ranking(scope_of(composites, 2), RankingOptions(pool="weighted"))
    assert found.by_size[-1].optimism > 0
    single = jury_ranking(scope_of(composites[:, :3], 2), RankingOptions(pool="weighted"))
    assert single.by_size[0].optimism == pytest.approx(0, abs=1e-12)  # one juror has weight 1


def test_one_instance_leaves_nothing_to_expect():
    found = jury_ranking(scope_of(table(12, 0, spreads=[1.5] * 3), 2, per=12), RankingOptions())
    assert math.isfinite(found.winner.row.icc)
    assert np.isnan([found.winner.row.icc_honest, found.winner.optimism]).all()
    assert np.isnan([found.winner.row.low, found.winner.row.honest_low]).all()


def true_iccs(rows, **how):
    """Return each jury's ICC with the clinicians from very many responses, by its jurors."""
    every = table(200_000, 99, **how)
    z = (every - every.mean(axis=0)) / every.std(axis=0)
    clinicians = z[:, :2].mean(axis=1)
    return {
        row.jurors: float(
            icc_consistency(
                np.column_stack(
                    [clinicians, z[:, [2 + int(name[1:]) for name in row.jurors]].mean(axis=1)]
                )
            )
        )
        for row in rows
    }


def studies(n, times, **how):
    """Return of each study's winner its ICC, true ICC, expected one, and both ends, (times, 5)."""
    wanted = RankingOptions(sizes=how.pop("sizes", SIZES), pool=how.pop("pool", "mean"))
    true, found = {}, []
    for seed in range(times):
        scope = scope_of(table(n, seed, **how), 2, per=how.get("per", 1), reps=200, seed=seed)
        rows = jury_ranking(scope, wanted).rows
        true = true or true_iccs(rows, **how)
        best = rows[0]
        known = best.icc, true[best.jurors], best.icc_honest, best.honest_low, best.honest_high
        found.append(known)
    return np.array(found).T


GRADED = (0.8, 1.0, 1.2, 1.4, 1.6, 1.9, 2.2)
GOOD_THREE = (0.5, 0.5, 0.5, 1.5, 1.5, 1.5, 1.5)


@pytest.mark.slow
@pytest.mark.parametrize("n", [25, 56, 112, 300])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"sizes": range(3, 4)},
        {"spreads": GRADED},
        {"spreads": GOOD_THREE},
        {"spreads": GRADED, "ceiling": True},
        {"ceiling": True},
        {"spreads": [1.5] * 3, "sizes": range(1, 4)},
    ],
    ids=["equal", "equal of three", "graded", "three good", "graded 1-5", "equal 1-5", "of three"],
)
def test_the_expected_icc_errs_no_more_than_the_apparent_one_and_its_interval_holds(how, n):
    times = 300 if n < 300 else 150
    apparent, true, honest, low, high = studies(n, times, **how)
    errors = [np.sqrt(np.mean((one - true) ** 2)) for one in (honest, apparent)]
    assert errors[0] <= errors[1] * 1.03
    assert abs(np.mean(honest - true)) <= abs(np.mean(apparent - true)) + 0.005
    chance = 2.5 * math.sqrt(0.95 * 0.05 / times)
    assert 0.93 - chance <= np.mean((low <= true) & (true <= high)) <= 0.98 + chance


@pytest.mark.slow
def test_responses_that_share_instances_are_no_independent_ones():
    apparent, true, honest, low, high = studies(56, 300, per=4)
    assert np.mean((honest - true) ** 2) <= np.mean((apparent - true) ** 2)
    assert np.mean((low <= true) & (true <= high)) > 0.91


@pytest.mark.slow
def test_the_expected_icc_pays_for_weights_that_were_learnt():
    # Learnt weights are judged by those of very many responses: equal jurors, equal weights.
    apparent, true, honest, _low, _high = studies(40, 200, pool="weighted", sizes=range(3, 4))
    assert np.mean((honest - true) ** 2) < np.mean((apparent - true) ** 2)
    assert np.mean(honest - true) < 0.6 * np.mean(apparent - true)
