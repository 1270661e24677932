"""All juries over the same resamples: their intervals, and what to expect of them."""

from dataclasses import dataclass

import numpy as np

from calibration.agreement import LEAST_RESPONSES
from calibration.bootstrap import (
    CELLS,
    LEAST_CLUSTERS,
    Counts,
    Resampling,
    by_lots,
    percentile_interval,
)
from calibration.f_interval import UNDEFINED, Interval
from calibration.juries.sets import Bench, Pool
from calibration.juries.shrinkage import Expected, expected
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers

AT_ONCE = 4096  # juries; with more, resamples are not taken fewer at a time


@dataclass(frozen=True, eq=False)
class Found:
    """Figures of juries (M,), and what to expect of them on new responses.

    `undefined` counts the resamples in which a jury has no ICC.
    """

    icc: Array
    n: Integers
    ends: list[Interval]
    undefined: Integers
    expected: Expected


def resampled(scope: Scope, pool: Pool, asked: Integers) -> Found:
    """Return what is found of the juries `asked`, numbers into the pool's juries.

    Intervals and expected ICCs are NaN where there is a single instance, or no resample. A jury
    that is the only one of its size, and learnt nothing, has its own ICC as the expected one.
    """
    how, clusters = scope.asked, scope.grid.n_clusters
    drawn = np.full((len(asked), how.reps if clusters >= LEAST_CLUSTERS else 0), np.nan)
    rows, start = max(len(scope.grid.responses), min(len(pool.subsets), AT_ONCE)), 0
    lots = Resampling(clusters, rows, drawn.shape[1], how.seed, how.executor)
    too_high = np.zeros((2, len(asked)))
    for icc, own in by_lots(_OneLot(pool, asked), lots):
        drawn[:, start : start + len(icc)] = icc.T
        too_high += own
        start += len(icc)
        scope.tick(len(icc))
    n, instances = counted(pool.bench, pool.subsets[asked])
    whole = pool.learn(np.ones((1, clusters))).icc[0, asked]
    icc = np.where(n >= LEAST_RESPONSES, whole, np.nan)
    known = ~np.isnan(icc) & (instances >= LEAST_CLUSTERS)
    size = pool.subsets[asked].sum(axis=1)
    learnt = too_high[0] / np.maximum(too_high[1], 1)
    return Found(
        icc=icc,
        n=n,
        ends=intervals(drawn, known),
        undefined=np.isnan(drawn).sum(axis=1),
        expected=expected(np.where(known, icc, np.nan), drawn, size, clusters, learnt),
    )


@dataclass(frozen=True, eq=False)
class _OneLot:
    """ICCs of the juries asked for in one lot of resamples, (B, M), and what learning them cost.

    The cost is the sum over resamples of how much they are too high, and their number, (2, M).
    """

    pool: Pool
    asked: Integers

    def __call__(self, counts: Counts) -> tuple[Array, Array]:
        learnt = self.pool.learn(counts)
        icc = learnt.icc[:, self.asked]
        if learnt.too_high is None:
            return icc, np.zeros((2, len(self.asked)))
        too_high = learnt.too_high[:, self.asked]
        known = np.isfinite(too_high)
        return icc, np.stack([np.where(known, too_high, 0.0).sum(axis=0), known.sum(axis=0)])


def intervals(drawn: Array, known: Flags) -> list[Interval]:
    """Return the percentile 95 % interval of each jury (M, B) that is known (M,)."""
    found = [UNDEFINED] * len(drawn)
    if not drawn.shape[1]:
        return found
    places, at_once = np.flatnonzero(known), max(1, 8 * CELLS // drawn.shape[1])
    for start in range(0, len(places), at_once):
        own = places[start : start + at_once]
        values = drawn[own]
        whole = np.isfinite(values).all(axis=1)
        ends = np.quantile(values[whole], [0.025, 0.975], axis=1, overwrite_input=True)
        for place, low, high in zip(own[whole].tolist(), *ends.tolist(), strict=True):
            found[place] = Interval(low, high)
        for place in own[~whole].tolist():
            found[place] = percentile_interval(drawn[place])
    return found


def counted(bench: Bench, subsets: Flags) -> tuple[Integers, Integers]:
    """Return how many responses each jury (M, k) and a clinician scored; their instances, at most 2."""
    heard = np.flatnonzero(bench.heard)
    clusters = bench.clusters[heard]
    n, instances = (np.zeros(len(subsets), dtype=np.int64) for _ in range(2))
    at_once = max(1, CELLS // max(len(heard), 1))
    for start in range(0, len(subsets) if len(heard) else 0, at_once):
        own = slice(start, start + at_once)
        present = bench.present(subsets[own])[:, heard]
        n[own] = present.sum(axis=1)
        first = np.where(present, clusters, clusters.max()).min(axis=1)
        last = np.where(present, clusters, 0).max(axis=1)
        instances[own] = np.where(n[own] > 0, 1 + (last > first), 0)
    return n, instances
