"""All juries over the same resamples: intervals, and the chosen ones judged outside."""

from collections.abc import Sequence
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
from calibration.juries.sets import Bench, Learnt, Pool
from calibration.juries.winners_curse import Outside, best_of_each, best_places
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers

AT_ONCE = 4096  # juries; with more, resamples are not taken fewer at a time


@dataclass(frozen=True, eq=False)
class Found:
    """Figures of juries (M,), and expected ICCs of the first ranks and of the best of each size.

    `undefined` counts the resamples in which a jury has no ICC.
    """

    icc: Array
    n: Integers
    ends: list[Interval]
    undefined: Integers
    by_rank: Array
    by_size: Array


def resampled(scope: Scope, pool: Pool, asked: Integers, top: int) -> Found:
    """Return what is found of the juries `asked`, numbers into the pool's juries.

    Intervals and expected ICCs are NaN where there is a single instance. A jury that is the
    only one of its size was not chosen among them: its expected ICC is its ICC.
    """
    how, clusters = scope.asked, scope.grid.n_clusters
    size = pool.subsets[asked].sum(axis=1)
    groups = [np.flatnonzero(size == one) for one in np.unique(size)]
    places = min(max(top, 1), len(asked))
    outside = Outside(np.zeros((places + len(groups), 3)))
    drawn = np.full((len(asked), how.reps if clusters >= LEAST_CLUSTERS else 0), np.nan)
    rows, start = max(len(scope.grid.responses), min(len(pool.subsets), AT_ONCE)), 0
    lots = Resampling(clusters, rows, drawn.shape[1], how.seed, how.executor)
    for icc, sums in by_lots(_OneLot(pool, asked, groups, places), lots):
        drawn[:, start : start + len(icc)] = icc.T
        outside.sums += sums
        start += len(icc)
        scope.tick(len(icc))
    n, instances = counted(pool.bench, pool.subsets[asked])
    whole = pool.learn(np.ones((1, clusters))).icc[0, asked]
    icc = np.where(n >= LEAST_RESPONSES, whole, np.nan)
    honest = outside.icc(restandardise=how.method == "published")
    return Found(
        icc=icc,
        n=n,
        ends=intervals(drawn, ~np.isnan(icc) & (instances >= LEAST_CLUSTERS)),
        undefined=np.isnan(drawn).sum(axis=1),
        by_rank=icc if pool.fixed and len(asked) == 1 else honest[:places],
        by_size=np.array(
            [
                icc[group[0]] if pool.fixed and len(group) == 1 else one
                for group, one in zip(groups, honest[places:], strict=True)
            ]
        ),
    )


@dataclass(frozen=True, eq=False)
class _OneLot:
    """ICCs of the juries asked for in one lot of resamples, (B, M), and their sums outside it."""

    pool: Pool
    asked: Integers
    groups: Sequence[Integers]
    places: int

    def __call__(self, counts: Counts) -> tuple[Array, Array]:
        learnt = self.pool.learn(counts)
        icc = learnt.icc[:, self.asked]
        chosen = np.hstack([best_places(icc, self.places), best_of_each(icc, self.groups)])
        outside = Outside(np.zeros((chosen.shape[1], 3)))
        outside.add(self.pool.bench, counts, chosen, _Chosen(self.pool, self.asked, learnt))
        return icc, outside.sums


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The members and columns of juries that were chosen among those asked for."""

    pool: Pool
    asked: Integers
    learnt: Learnt

    def __call__(self, chosen: Integers) -> tuple[Flags, Array]:
        jury = self.asked[chosen]
        return self.pool.subsets[jury], self.learnt.column(jury)


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
