"""The bootstrap over instances: resample them with all their responses and read off intervals."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from calibration.icc import UNDEFINED, Interval
from calibration.scores import Array
from calibration.values import RESAMPLES

LEAST_CLUSTERS = 2  # every resample of one cluster is that cluster: they say nothing of chance
CELLS = 2**18  # drawn responses held at a time: what fits a processor's cache, not its memory
MOST_AT_ONCE = 1024
T = TypeVar("T")

Counts = Array
"""Shape (B, clusters): how often each cluster was drawn in each of B resamples."""

Statistic = Callable[[Counts], Array]
"""From counts (B, clusters) to one value, or one row of values, a resample."""

Tick = Callable[[int], None]
"""Told, from time to time, how many resamples have been done since it was last told."""


def draw_counts(
    clusters: int, *, reps: int, seed: int, rows: int | None = None
) -> Iterator[Counts]:
    """Draw clusters with replacement and yield how often each came, a few resamples at a time.

    A cluster drawn twice counts twice: nothing is averaged away. The resamples depend on
    the number of clusters and the seed alone, not on how many are yielded at a time, so
    two statistics with one seed are compared on the same resamples.

    Parameters
    ----------
    clusters : how many clusters there are, and how many each resample draws
    reps : how many resamples
    seed : of the draw
    rows : responses in all the clusters, which bounds the resamples yielded at a time
    """
    random = np.random.default_rng(seed)
    at_once = max(1, min(MOST_AT_ONCE, CELLS // max(rows or clusters, 1)))
    for size in (min(at_once, reps - start) for start in range(0, reps, at_once)):
        drawn = random.integers(0, clusters, size=(size, clusters))
        drawn += clusters * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * clusters)
        yield counts.reshape(size, clusters).astype(np.float64)


@dataclass(frozen=True, eq=False)
class BootstrapPlan:
    """How a statistic is resampled: what `replicates` needs beside the statistic.

    `executor` computes lots of resamples elsewhere; None: here, one after another. The lots
    depend on `rows` and `reps` alone, never on who computes them.
    """

    clusters: int
    rows: int
    reps: int = RESAMPLES
    seed: int = 0
    executor: Executor | None = None


def by_lots(statistic: Callable[[Counts], T], plan: BootstrapPlan) -> Iterator[T]:
    """Yield a statistic of one lot of resamples after another, in the order of `draw_counts`."""
    drawn = draw_counts(plan.clusters, reps=plan.reps, seed=plan.seed, rows=plan.rows)
    return plan.executor.map(statistic, drawn) if plan.executor else map(statistic, drawn)


def replicates(statistic: Statistic, plan: BootstrapPlan, tick: Tick | None = None) -> Array:
    """Return the statistic of every resample, shape (reps, ...); NaN where it is undefined.

    It is undefined in all of them where there is a single cluster: its resamples are all the
    same, and an interval read off them would have no width and claim certainty.
    """
    if plan.clusters < LEAST_CLUSTERS:
        shape = statistic(np.ones((1, plan.clusters))).shape[1:]
        return np.full((plan.reps, *shape), np.nan)
    done = []
    for values in by_lots(statistic, plan):
        done.append(values)
        if tick:
            tick(len(values))
    return np.concatenate(done) if done else statistic(np.ones((1, plan.clusters)))[:0]


def percentile_interval(values: Array, confidence: float = 0.95) -> Interval:
    """Return the percentile interval of bootstrap replicates.

    Parameters
    ----------
    values : shape (reps,)
        Replicates of one statistic; those that are not finite are left out.
    confidence : float, in (0, 1)

    Returns
    -------
    Interval
        The central quantiles; NaN where no replicate is finite.

    References
    ----------
    Efron & Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return UNDEFINED
    tail = (1 - confidence) / 2
    low, high = np.quantile(finite, [tail, 1 - tail])
    return Interval(float(low), float(high))
