import math

import numpy as np
import pytest

from calibration import bootstrap
from calibration.bootstrap import (
    BootstrapPlan,
    draw_counts,
    percentile_interval,
    replicates,
)


def mean_of(values):
    def statistic(counts):
        return counts @ values / counts.sum(axis=1)

    return statistic


def test_every_resample_draws_as_many_clusters_as_there_are():
    counts = np.concatenate(list(draw_counts(7, reps=50, seed=0)))

    assert counts.shape == (50, 7)
    assert (counts.sum(axis=1) == 7).all()
    assert counts.max() > 1


def test_how_many_are_held_at_a_time_changes_nothing(monkeypatch):
    whole = np.concatenate(list(draw_counts(7, reps=101, seed=3)))
    monkeypatch.setattr(bootstrap, "CELLS", 30)
    parts = list(draw_counts(7, reps=101, seed=3))

    assert len(parts) > 20
    assert (np.concatenate(parts) == whole).all()


def test_one_seed_is_one_answer():
    values, how = np.arange(9.0), BootstrapPlan(9, 9, reps=20, seed=5)

    first, again = (replicates(mean_of(values), how) for _ in range(2))

    assert (first == again).all()
    assert (first != replicates(mean_of(values), BootstrapPlan(9, 9, reps=20, seed=6))).any()


def test_no_resamples_are_an_empty_answer_and_an_undefined_interval():
    drawn = replicates(mean_of(np.arange(9.0)), BootstrapPlan(9, 9, reps=0))

    assert drawn.shape == (0,)
    assert math.isnan(percentile_interval(drawn).low)


def test_undefined_replicates_are_left_out_of_the_interval():
    values = np.array([np.nan, np.inf, *np.arange(101.0)])

    ends = percentile_interval(values, confidence=0.9)

    assert (ends.low, ends.high) == pytest.approx((5, 95))


def test_the_mean_has_its_textbook_standard_error():
    values = np.random.default_rng(0).normal(size=200)

    drawn = replicates(mean_of(values), BootstrapPlan(200, 200, reps=8000))

    assert drawn.std() == pytest.approx(values.std() / np.sqrt(200), rel=0.03)


def test_a_single_cluster_has_replicates_and_intervals_that_are_undefined():
    drawn = replicates(mean_of(np.ones(1)), BootstrapPlan(1, 8, reps=20))

    assert np.isnan(drawn).all()
    assert len(drawn) == 20
