"""What to expect of the best of many juries: by hand, at the ends, and where the truth is known."""

import math

import numpy as np
import pytest
from kit.scores import scope_of

from calibration.icc import icc_consistency
from calibration.juries import expected_iccs, gained_by_luck, jury_ranking

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


def test_luck_is_what_another_jury_at_the_rank_is_worse_by_on_what_was_not_drawn():
    # First of three alike in size is jury 1. Two resamples choose jury 0 and 1; what they left out has
    # z of 0.5, 0.7 and 0.6, then 0.4, 0.9 and NaN: 0.7 - 0.5 and 0.9 - 0.9 at the first rank.
    sizes = np.array([2, 2, 2])
    order = np.array([1, 0, 2])
    inside = icc_of_z([[0.9, 0.8, 0.7], [0.7, 0.8, 0.9]])
    outside = np.array([[0.5, 0.7, 0.6], [0.4, 0.9, NAN]])
    inside[1] = inside[1][[0, 2, 1]]
    outside = np.where(np.isnan(outside), NAN, icc_of_z(outside))
    total, number = gained_by_luck(order, sizes, inside, outside)
    found = total / number
    assert found[1] == pytest.approx((0.2 + 0.0) / 2)
    assert found[3] == found[1]  # all are of one size: the best of it is the best of all
    assert found[0] == pytest.approx(
        (0.5 - 0.7) / 1
    )  # the second resample has no z of the jury there
    assert found[2] == pytest.approx(0.0)


def test_the_expected_icc_takes_632_thousandths_of_the_luck_and_its_lower_end_all():
    drawn = icc_of_z(np.array([[0.9, 1.1, 0.8, 1.2]]))
    found = expected_iccs(icc_of_z([1.0]), drawn, np.array([0.1]), 10)
    reach = 2.262157 * math.sqrt(10 / 9 * 0.025)  # t of 9 degrees; variance of the four
    assert found[0, 0] == pytest.approx(float(icc_of_z(1 - 0.0632)))
    assert found[1, 0] == pytest.approx(float(icc_of_z(0.9 - reach)))
    assert found[2, 0] == pytest.approx(float(icc_of_z(1 - 0.0632 + reach)))


def test_the_best_of_juries_that_differ_by_chance_is_expected_among_them_and_a_far_better_one_stays():
    alike = jury_ranking(scope_of(table(60, 3), 2, reps=400), sizes=range(3, 4))
    assert alike.winner.icc_honest < alike.winner.icc - 0.02
    spreads = (0.3, *[3.0] * 6)
    apart = jury_ranking(scope_of(table(60, 3, spreads=spreads), 2, reps=400), sizes=range(1, 2))
    assert apart.winner.jurors == ("j0",)
    assert apart.winner.icc_honest == pytest.approx(apart.winner.icc, abs=1e-12)


def test_the_best_of_all_sizes_is_judged_among_all_and_others_among_their_size():
    found = jury_ranking(scope_of(table(40, 0, spreads=[1.5] * 3), 2))
    only = found.by_size[-1]
    others = [row for row in found.rows[1:] if row.size == 3]
    assert (only.size, found.of_size(3)) == (3, 1)
    assert (only.rank == 1) != bool(others)
    assert all(row.icc_honest == row.icc for row in others)


@pytest.mark.parametrize(
    ("icc", "row"), [(NAN, [0.5] * 4), (1.0, [0.5] * 4), (0.5, [NAN] * 3 + [0.5]), (0.5, [NAN] * 4)]
)
def test_a_jury_without_an_icc_or_with_too_few_resampled_has_no_expectation(icc, row):
    drawn = np.array([row, [0.4, 0.5, 0.6, 0.5], [0.3, 0.5, 0.4, 0.5]])
    found = expected_iccs(np.array([icc, 0.5, 0.4]), drawn, np.zeros(3), 20)
    for ends in found:
        assert np.isnan(ends).tolist() == [True, False, False]


def test_a_jury_that_was_chosen_among_none_has_its_own_icc():
    scope = scope_of(table(40, 0, spreads=[1.5] * 3), 2)
    row = jury_ranking(scope, sizes=range(3, 4)).winner
    assert row.icc_honest == pytest.approx(row.icc, abs=1e-12)
    assert row.honest_low < row.icc < row.honest_high


def test_one_instance_leaves_nothing_to_expect():
    found = jury_ranking(scope_of(table(12, 0, spreads=[1.5] * 3), 2, per=12))
    assert math.isfinite(found.winner.icc)
    assert np.isnan([found.winner.icc_honest, found.winner.optimism]).all()
    assert np.isnan([found.winner.low, found.winner.honest_low]).all()


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
    sizes = how.pop("sizes", SIZES)
    true, found = {}, []
    for seed in range(times):
        scope = scope_of(table(n, seed, **how), 2, per=how.get("per", 1), reps=200, seed=seed)
        rows = jury_ranking(scope, sizes).rows
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
def test_the_expected_icc_is_nearer_the_truth_than_the_apparent_one_and_its_interval_holds(how, n):
    times = 300 if n < 300 else 150
    apparent, true, honest, low, high = studies(n, times, **how)
    bias, luck_of_choosing = np.mean(honest - true), np.mean(apparent - true)
    assert abs(bias) <= 0.45 * luck_of_choosing + 0.02
    assert np.sqrt(np.mean((honest - true) ** 2)) <= 1.25 * np.sqrt(np.mean((apparent - true) ** 2))
    chance = 2.5 * math.sqrt(0.95 * 0.05 / times)
    assert 0.93 - chance <= np.mean((low <= true) & (true <= high)) <= 0.98 + chance


@pytest.mark.slow
def test_responses_that_share_instances_are_no_independent_ones():
    apparent, true, honest, low, high = studies(56, 300, per=4)
    assert np.mean((honest - true) ** 2) <= np.mean((apparent - true) ** 2)
    assert np.mean((low <= true) & (true <= high)) > 0.91
