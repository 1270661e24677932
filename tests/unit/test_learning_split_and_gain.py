"""The parts that a jury learns from, and the gain on the part that it has not seen."""

import numpy as np
import pytest
from scipy import stats

from calibration.learning import LEAST, SHARES, part_gain, split_instances
from data.errors import TooFew


def strata(n: int = 100) -> dict[int, tuple[str, int]]:
    """Return instances of two benchmarks and three levels."""
    return {number: ("visits" if number % 3 else "notes", number % 5 // 2) for number in range(n)}


def test_every_instance_is_in_one_part_and_the_parts_have_their_shares() -> None:
    parts = split_instances(strata(), seed=1)
    assert sorted(sum(parts.values(), ())) == list(range(100))
    assert [len(parts[name]) for name in SHARES] == [40, 25, 35]
    for benchmark in ("visits", "notes"):
        members = [one for one in range(100) if strata()[one][0] == benchmark]
        trained = len(set(members) & set(parts["train"]))
        assert abs(trained - 0.4 * len(members)) < 3


def test_the_split_is_of_the_seed_and_not_of_the_order() -> None:
    turned = dict(reversed(strata().items()))
    assert split_instances(turned, seed=1) == split_instances(strata(), seed=1)
    assert split_instances(strata(), seed=2) != split_instances(strata(), seed=1)


def test_too_few_instances_are_refused_with_how_many_it_takes() -> None:
    with pytest.raises(TooFew, match="about 40 instances"):
        split_instances(strata(30), seed=1)
    parts = split_instances(strata(40), seed=1)
    assert min(map(len, parts.values())) >= LEAST


def test_one_response_an_instance_gives_the_paired_t_interval() -> None:
    random = np.random.default_rng(3)
    clinicians, before, after = random.normal(3, 1, (3, 40))
    found = part_gain(clinicians, before, after, np.arange(40))
    gains = np.abs(before - clinicians) - np.abs(after - clinicians)
    by_scipy = stats.ttest_1samp(gains, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(by_scipy), abs=1e-12)
    assert found.gain == pytest.approx(found.before - found.after, abs=1e-12)


def test_a_response_without_a_juror_is_left_out_and_counted() -> None:
    whole, lacking = np.array([3.0, 2.0, 4.0]), np.array([1.0, np.nan, 4.0])
    found = part_gain(whole, lacking, whole, np.array([7, 8, 9]))
    assert (found.n_responses, found.n_instances, found.n_missing) == (2, 2, 1)
    assert (found.before, found.after) == (1.0, 0.0)
    nothing = part_gain(whole, whole * np.nan, whole, np.array([7, 8, 9]))
    assert nothing.n_responses == 0
    assert np.isnan(nothing.gain)
    assert not nothing.is_shown


def test_the_interval_covers_the_true_gain_with_responses_that_share_instances() -> None:
    random, covered = np.random.default_rng(5), 0
    instances = np.repeat(np.arange(35), 3)
    true_gain = 0.4 * np.sqrt(2 / np.pi)  # of two absolute normal errors, of 1.0 and 0.6
    for _ in range(1000):
        shared = np.repeat(random.normal(0, 1, 35), 3)
        before = 0.5**0.5 * (shared + random.normal(0, 1, 105))
        after = 0.6 * random.normal(0, 1, 105)
        found = part_gain(np.zeros(105), before, after, instances)
        covered += found.low <= true_gain <= found.high
    assert 930 <= covered <= 970
