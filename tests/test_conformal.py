"""Split-conformal intervals: ranks by hand, exact coverage, halves by instance, simulation."""

import math
from fractions import Fraction

import numpy as np
import pytest

from calibration.messages import words
from calibration.predicting.conformal import (
    Conformal,
    Rated,
    conformal_radius,
    half_of_instances,
    held_out_coverage,
    least_calibration,
    one_of_each,
    split_conformal,
    within_scale,
)
from calibration.predicting.isotonic import isotonic_map


def simulate(instances=60, per=1, seed=0, noise=0.5):
    """Responses of instances that differ in quality, and in how far off the jury is."""
    random = np.random.default_rng(seed)
    numbers = np.repeat(np.arange(instances), per)
    own = 0.6 * random.normal(size=(2, instances))[:, numbers]
    quality = 3 + own[0] + 0.6 * random.normal(size=len(numbers))
    clinicians = quality + 0.3 * random.normal(size=len(numbers))
    jury = 4 + 0.5 * quality + own[1] + noise * random.normal(size=len(numbers))
    return Rated(jury, clinicians, numbers)


@pytest.mark.parametrize("level", ["0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "0.99"])
def test_the_least_calibration_and_the_rank_are_those_of_exact_arithmetic(level):
    # In floating point 1 / (1 - 0.9) is a little more than 10, and a ceiling would jump.
    exact = Fraction(level)
    least = math.ceil(1 / (1 - exact)) - 1

    assert least_calibration(float(level)) == least
    assert math.isnan(conformal_radius(np.arange(1.0, least), float(level)))
    for m in range(least, 300):
        radius = conformal_radius(np.arange(1.0, m + 1), float(level))
        assert radius == math.ceil((m + 1) * exact)


def test_nine_residuals_give_their_largest_at_90_percent_and_nineteen_at_95():
    residuals = np.array([0.3, 0.1, 0.9, 0.4, 0.2, 0.8, 0.5, 0.7, 0.6])

    assert (least_calibration(0.9), least_calibration(0.95)) == (9, 19)
    assert conformal_radius(residuals, 0.9) == 0.9
    assert conformal_radius(residuals, 0.8) == 0.8
    assert math.isnan(conformal_radius(residuals, 0.95))


@pytest.mark.parametrize("m", [9, 10, 25, 39])
def test_a_new_residual_is_within_the_radius_as_often_as_its_rank_says(m):
    # m + 1 exchangeable residuals: each is the new one equally often, exactly.
    residuals = np.random.default_rng(m).exponential(size=m + 1)

    covered = [
        residuals[new] <= conformal_radius(np.delete(residuals, new), 0.9) for new in range(m + 1)
    ]

    assert np.mean(covered) == pytest.approx(math.ceil((m + 1) * 0.9 - 1e-9) / (m + 1))


def test_the_interval_is_the_map_of_one_half_and_the_errors_of_the_other():
    rated = simulate(40)
    random = np.random.default_rng(5)
    fitting = half_of_instances(rated.instances, random)
    mapped = isotonic_map(rated.jury[fitting], rated.clinicians[fitting])
    errors = np.sort(np.abs(rated.clinicians - mapped(rated.jury))[~fitting])

    found = split_conformal(rated, 0.9, seed=5)

    assert (found.n_fit, found.n_calibration) == (20, 20)
    assert found.radius == errors[18]  # ceil(21 * 0.9) = 19th
    low, high = found.interval(np.array([4.0]))
    assert [low[0], high[0]] == pytest.approx(
        [mapped(np.array(4.0)) - errors[18], mapped(np.array(4.0)) + errors[18]]
    )


@pytest.mark.parametrize("per", [1, 3])
def test_an_instance_lies_in_one_half_and_gives_one_residual(per):
    rated = simulate(41, per)

    fitting = half_of_instances(rated.instances, np.random.default_rng(0))
    chosen = one_of_each(rated.instances, np.random.default_rng(0))

    assert not set(rated.instances[fitting]) & set(rated.instances[~fitting])
    assert len(set(rated.instances[fitting])) == 20
    assert rated.instances[chosen].tolist() == list(range(41))
    assert split_conformal(rated, 0.9, 0).n_calibration == 21


def test_every_response_of_an_instance_is_as_likely_to_be_drawn():
    random = np.random.default_rng(0)
    instances = np.array([0, 0, 0, 1])

    drawn = np.bincount(np.concatenate([one_of_each(instances, random) for _ in range(3000)]))

    assert drawn[3] == 3000
    assert drawn[:3] == pytest.approx(np.full(3, 1000), rel=0.1)


def test_too_few_calibration_responses_have_a_map_but_no_interval_and_say_why():
    found = split_conformal(simulate(17), 0.95, 0)

    assert found.map is not None
    assert math.isnan(found.radius)
    assert "9 calibration responses" in words(found.reason)
    assert "19 are needed for 95 %" in words(found.reason)
    assert not split_conformal(simulate(17), 0.9, 0).reason


@pytest.mark.parametrize("instances", [0, 1, 5])
def test_too_few_responses_to_fit_have_no_map(instances):
    found = split_conformal(simulate(instances), 0.9, 0)

    assert found.map is None
    assert np.isnan(found.interval(np.array([4.0]))).all()
    assert found.reason["least"] == 3


def test_one_seed_gives_the_same_halves_and_another_others():
    rated = simulate()
    first, again, other = (split_conformal(rated, 0.9, seed) for seed in (1, 1, 2))

    assert first.radius == again.radius != other.radius


def test_cutting_at_the_scale_loses_no_true_value():
    ends = (np.array([0.2, 3.0, np.nan]), np.array([2.0, 5.6, np.nan]))

    low, high = within_scale(ends, (1, 5))

    assert low == pytest.approx([1, 3, np.nan], nan_ok=True)
    assert high == pytest.approx([2, 5, np.nan], nan_ok=True)


def test_held_out_responses_are_each_checked_once_and_by_what_has_not_seen_them():
    rated = simulate(100, 2)
    found = held_out_coverage(rated, 0.9, 0)

    assert found.checked == 200
    assert 0.8 < found.share < 1
    assert held_out_coverage(simulate(12), 0.9, 0).checked == 0
    assert math.isnan(held_out_coverage(simulate(12), 0.9, 0).share)


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        (lambda one: Rated(one.jury + 3, one.clinicians, one.instances), 1),
        (lambda one: Rated(one.jury, one.clinicians + 3, one.instances), 1),
        (lambda one: Rated(one.jury, one.clinicians * 2, one.instances), 2),
        (lambda one: Rated(one.jury, one.clinicians, one.instances * 7), 1),
    ],
    ids=["jury shifted", "clinicians shifted", "clinicians scaled", "instances renumbered"],
)
def test_the_radius_is_in_the_clinicians_points_and_knows_no_offset(change, factor):
    rated = simulate()

    after = split_conformal(change(rated), 0.9, 3)

    assert after.radius == pytest.approx(factor * split_conformal(rated, 0.9, 3).radius)


def cover(rated, new, level, seed):
    made: Conformal = split_conformal(rated, level, seed)
    low, high = made.interval(new.jury)
    return ((low <= new.clinicians) & (new.clinicians <= high)).mean()


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.3, 3.0], ids=["a good jury", "a useless jury"])
@pytest.mark.parametrize("per", [1, 6])
@pytest.mark.parametrize(("instances", "level"), [(18, 0.9), (60, 0.9), (60, 0.95)])
def test_intervals_hold_the_truth_of_new_instances_as_often_as_they_say(
    instances, level, per, noise
):
    found = []
    for seed in range(1500):
        every = simulate(instances + 20, per, seed=seed, noise=noise)
        new = every.instances >= instances
        found.append(cover(every.of(~new), every.of(new), level, seed))

    m = instances - instances // 2
    expected = math.ceil((m + 1) * level - 1e-9) / (m + 1)
    error = np.std(found) / math.sqrt(len(found))
    assert np.mean(found) > level - 4 * error
    assert np.mean(found) == pytest.approx(expected, abs=4 * error)


@pytest.mark.slow
def test_residuals_of_all_responses_would_cover_less_where_instances_are_few():
    # Why each calibration instance gives one residual alone.
    one, every = [], []
    for seed in range(1500):
        study = simulate(38, 8, seed=seed)
        new = study.instances >= 18
        rated, fresh = study.of(~new), study.of(new)
        single = Rated(rated.jury, rated.clinicians, np.arange(len(rated.jury)))
        one.append(cover(rated, fresh, 0.9, seed))
        every.append(cover(single, fresh, 0.9, seed))

    assert np.mean(one) > 0.89
    assert np.mean(every) < np.mean(one) - 0.01


@pytest.mark.slow
@pytest.mark.parametrize("per", [1, 5])
def test_the_coverage_found_on_held_out_responses_is_near_what_was_asked(per):
    shares = [held_out_coverage(simulate(80, per, seed=seed), 0.9, 0).share for seed in range(300)]

    assert np.mean(shares) == pytest.approx(0.91, abs=0.015)
