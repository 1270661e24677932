"""Cross-conformal intervals: quantiles by hand, parts by instance, coverage by simulation."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from kit.rated_sample import RatedSample

from calibration.predicting import (
    conformal_interval,
    isotonic_map,
    least_instances,
    weighted_quantile,
)


def ends(rated, jury, level, seed):
    """Return the intervals of new responses with these jury composites."""
    low, high = conformal_interval(*rated.with_jury(jury).arrays, level, seed)
    return low[len(rated.jury) :], high[len(rated.jury) :]


def simulate(instances=60, per=1, seed=0, noise=0.5):
    """Responses of instances that differ in quality, and in how far off the jury is."""
    random = np.random.default_rng(seed)
    numbers = np.repeat(np.arange(instances), per)
    own = 0.6 * random.normal(size=(2, instances))[:, numbers]
    quality = 3 + own[0] + 0.6 * random.normal(size=len(numbers))
    clinicians = quality + 0.3 * random.normal(size=len(numbers))
    jury = 4 + 0.5 * quality + own[1] + noise * random.normal(size=len(numbers))
    return RatedSample(clinicians, jury, numbers)


@pytest.mark.parametrize("level", ["0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "0.99"])
def test_the_least_instances_and_the_rank_are_those_of_exact_arithmetic(level):
    # In floating point 1 / (1 - 0.9) is a little more than 10, and a ceiling would jump.
    exact = Fraction(level)
    least = math.ceil(1 / (1 - exact)) - 1

    assert least_instances(float(level)) == max(4, least)
    for m in range(max(1, least - 3), 300):
        values = np.arange(1.0, m + 1)[:, None]
        found = weighted_quantile(values, np.full(m, 1 / (m + 1)), float(level))
        rank = math.ceil((m + 1) * exact)
        assert found[0] == (rank if rank <= m else math.inf)


def test_responses_of_one_instance_share_its_weight():
    # Three instances at 0.25 each: the last has two responses at 0.125. At 0.6 the values 1, 2
    # (0.5) are not enough and 3 is; the first of the last instance's lies before 2.
    values = np.array([[1.0, 9.0], [2.0, 8.0], [1.5, 3.0], [3.0, 4.0]])
    weights = np.array([0.25, 0.25, 0.125, 0.125])

    assert weighted_quantile(values, weights, 0.6).tolist() == [2.0, 9.0]
    assert weighted_quantile(values, weights, 0.7).tolist() == [3.0, 9.0]
    assert np.isinf(weighted_quantile(values, weights, 0.8)).all()


@pytest.mark.parametrize("m", [9, 10, 25, 39])
def test_a_new_value_is_within_the_quantile_as_often_as_its_rank_says(m):
    # m + 1 exchangeable values: each is the new one equally often, exactly.
    values = np.random.default_rng(m).exponential(size=m + 1)
    weights = np.full(m, 1 / (m + 1))

    covered = [
        values[new] <= weighted_quantile(np.delete(values, new)[:, None], weights, 0.9)[0]
        for new in range(m + 1)
    ]

    assert np.mean(covered) == pytest.approx(math.ceil((m + 1) * 0.9 - 1e-9) / (m + 1))


def by_loops(rated, jury, parts, level):
    """Return the interval of CV+ as the paper writes it, in plain loops; one response an instance."""
    lows, highs = [], []
    for part, x, y in zip(parts, rated.jury, rated.clinicians, strict=True):
        left = parts != part
        made = isotonic_map(rated.jury[left], rated.clinicians[left])
        error = abs(y - np.interp(x, *made))
        lows.append(np.interp(jury, *made) - error)
        highs.append(np.interp(jury, *made) + error)
    n = len(lows)
    return sorted(lows)[math.floor((n + 1) * (1 - level) + 1e-9) - 1], sorted(highs)[
        math.ceil((n + 1) * level) - 1
    ]


def width(rated, level=0.9, seed=0):
    low, high = ends(rated, rated.jury, level, seed)
    return float((high - low).mean())


@pytest.mark.parametrize("instances", [9, 10, 39])
def test_the_interval_is_that_of_the_paper_in_plain_loops(instances):
    rated = simulate(instances)
    parts = np.random.default_rng(5).permutation(instances) % min(10, instances)

    low, high = ends(rated, np.array([4.0, 5.5, 4.0]), 0.9, seed=5)

    for place, jury in enumerate([4.0, 5.5, 4.0]):
        assert (low[place], high[place]) == pytest.approx(by_loops(rated, jury, parts, 0.9))


def test_an_instance_counts_once_however_many_responses_it_has():
    rated = simulate(41)
    thrice = RatedSample(
        *(np.repeat(own, 3) for own in (rated.clinicians, rated.jury)),
        np.repeat(rated.instances, 3),
    )

    assert width(thrice) == pytest.approx(width(rated))


@pytest.mark.parametrize(("instances", "level"), [(0, 0.9), (3, 0.5), (8, 0.9), (17, 0.95)])
def test_too_few_instances_have_no_interval(instances, level):
    low, high = ends(simulate(instances), np.array([4.0]), level, 0)

    assert np.isnan([low, high]).all()
    enough = simulate(least_instances(level))
    assert np.isfinite(ends(enough, np.array([4.0]), level, 0)).all()


def test_one_seed_gives_the_same_parts_and_another_others():
    rated = simulate()
    first, again, other = (width(rated, seed=seed) for seed in (1, 1, 2))

    assert first == again != other


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        (lambda one: RatedSample(one.clinicians, one.jury + 3, one.instances), 1),
        (lambda one: RatedSample(one.clinicians + 3, one.jury, one.instances), 1),
        (lambda one: RatedSample(one.clinicians * 2, one.jury, one.instances), 2),
        (lambda one: RatedSample(one.clinicians, one.jury, one.instances * 7), 1),
    ],
    ids=["jury shifted", "clinicians shifted", "clinicians scaled", "instances renumbered"],
)
def test_the_width_is_in_the_clinicians_points_and_knows_no_offset(change, factor):
    rated = simulate()

    assert width(change(rated), seed=3) == pytest.approx(factor * width(rated, seed=3))


def split(rated, level, seed):
    """Return the interval of a map of one half of the instances by the errors of the other."""
    random = np.random.default_rng(seed)
    names, place = np.unique(rated.instances, return_inverse=True)
    fitting = np.isin(place, random.permutation(len(names))[: len(names) // 2])
    made = isotonic_map(rated.jury[fitting], rated.clinicians[fitting])
    other = rated.of(~fitting)
    order = random.permutation(len(other.jury))
    one = other.of(order[np.unique(other.instances[order], return_index=True)[1]])
    errors = np.sort(np.abs(one.clinicians - np.interp(one.jury, *made)))
    radius = errors[math.ceil((len(errors) + 1) * (level - 1e-9)) - 1]
    return lambda jury: (np.interp(jury, *made) - radius, np.interp(jury, *made) + radius)


def coverage(interval, new):
    low, high = interval(new.jury)
    return ((low <= new.clinicians) & (new.clinicians <= high)).mean(), (high - low).mean()


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.3, 3.0], ids=["a good jury", "a useless jury"])
@pytest.mark.parametrize("per", [1, 4])
@pytest.mark.parametrize(("instances", "level"), [(18, 0.9), (56, 0.9), (56, 0.95)])
def test_intervals_hold_the_truth_as_often_as_they_say_and_are_narrower_than_halves(
    instances, level, per, noise
):
    found, halves = [], []
    for seed in range(600):
        every = simulate(instances + 20, per, seed=seed, noise=noise)
        new = every.instances >= instances
        rated, fresh = every.of(~new), every.of(new)
        interval = partial(ends, rated, level=level, seed=seed)
        found.append(coverage(interval, fresh))
        if instances == 56:
            halves.append(coverage(split(rated, level, seed), fresh))

    held, width = np.mean(found, axis=0)
    error = np.std([one[0] for one in found]) / math.sqrt(len(found))
    assert held > level - 0.005 - 3 * error
    if halves:
        assert width < 0.97 * np.mean(halves, axis=0)[1]
