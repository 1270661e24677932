"""ICCs of juries with intervals, and the ICC to expect of each on new responses."""

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
from calibration.icc import UNDEFINED, Interval
from calibration.jackknife import fisher_z
from calibration.juries.pools import Bench, Pool
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers

LEAST_DRAWN = 2  # resamples with an ICC: what a variance takes
MOST_DRAWN = 400  # resamples that tell how many juries' worth of chance there is
LEAST_FREEDOM = 0.5  # of what shrinks: two juries or three say hardly how unlike juries are


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected ICC of every jury, shape (M,), with its 95 % interval; NaN where undefined."""

    icc: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class _Spread:
    """How far juries of one size lie from their mean, and how much of that is chance.

    Attributes
    ----------
    away, moved : shape (M,) and (B, M), distances from the mean, in the sample and resampled
    full : share of the distances that chance explains, at most 1
    taken : share that is taken off, which allows for how little some juries say of `full`
    true : variance between juries beyond chance
    doubt : variance of `taken`
    """

    away: Array
    moved: Array
    full: float
    taken: float
    true: float
    doubt: float


def expected(icc: Array, drawn: Array, sizes: Integers, instances: int, learnt: Array) -> Expected:
    """Return what to expect of juries of which the best will be chosen.

    Juries of one size are drawn towards their mean by the share of their differences that chance
    explains: the best of juries that differ by chance alone is expected to be like the others,
    and a jury that stands out by far stays where it is. The only jury of its size stays too.

    Parameters
    ----------
    icc : shape (M,), NaN where a jury has none
    drawn : shape (M, B), the ICCs in resamples of instances
    sizes : shape (M,), jurors of each jury
    instances : how many there are, at least 2
    learnt : shape (M,)
        By how much Fisher's z of each jury's ICC is too high because weights were learnt on the
        responses that it is judged by; 0 of means and medians.

    Returns
    -------
    Expected
        NaN for a jury without an ICC or with one of 1, or with an ICC in fewer than 2 resamples.

    Notes
    -----
    On Fisher's z of an ICC, z_j = mean + d_j. The variance of the d_j in the resamples, enlarged
    by m / (m - 1), is v; that of the d_j themselves S. chance = v / S, at most 1, is cut to
    (f - 2) / f of it, where f = tr(C)^2 / tr(C^2) is how many independent juries the resampled
    d_j, with covariance C, are worth: juries share jurors, and few say little of S. The expected
    z is mean + (1 - taken) d_j. Its variance adds that of mean and shrunken d_j over the
    resamples, taken^2 times the variance S - v that is not chance, and 2 taken^2 / (f - 2) d_j^2
    for not knowing the share; the interval is of t with m - 1 degrees of freedom, its lower end
    from the fully shrunken value where that is lower.

    References
    ----------
    Empirical Bayes: Efron & Morris (1975), JASA 70, 311; Morris (1983), JASA 78, 47, for
    (f - 2) / f and its variance. Effective number: Satterthwaite (1946), Biometrics Bulletin 2.
    """
    from scipy import stats  # as slow to load as all else that a table takes

    found = np.full((3, len(icc)), np.nan)
    reach = float(stats.t.ppf(0.975, instances - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = fisher_z(icc) - learnt
    known = np.isfinite(z) & ((drawn < 1).sum(axis=1) >= LEAST_DRAWN)
    for size in np.unique(sizes):
        own = np.flatnonzero((sizes == size) & known)
        if len(own):
            found[:, own] = _of_size(z[own], drawn[own].T, instances, reach)
    ends = 1 - np.exp(-2 * found)
    alone = np.isin(sizes, [size for size in np.unique(sizes) if (sizes == size).sum() == 1])
    ends[0] = np.where(alone & (learnt == 0) & np.isfinite(ends[0]), icc, ends[0])
    return Expected(*ends)


def _of_size(z: Array, drawn: Array, instances: int, reach: float) -> Array:
    """Return the expected z and its two ends of juries of one size, (3, M), from ICCs (B, M)."""
    moved = _z_drawn(drawn)
    enlarged = instances / (instances - 1)
    centre = np.nanmean(moved, axis=1)
    moved -= centre[:, None]
    moved -= np.nanmean(moved, axis=0)
    spread = _spread(z - z.mean(), moved, enlarged)
    kept = 1 - spread.taken
    middle = z.mean() + kept * spread.away
    lowest = z.mean() + np.minimum(kept * spread.away, (1 - spread.full) * spread.away)
    shared = centre - centre.mean()
    variance = enlarged * np.nanvar(shared[:, None] + kept * moved, axis=0)
    variance += spread.taken**2 * spread.true + spread.doubt * spread.away**2
    error = np.sqrt(variance)
    return np.stack([middle, lowest - reach * error, middle + reach * error])


def _z_drawn(drawn: Array) -> Array:
    """Return Fisher's z of resampled ICCs where any jury has one; NaN where one has none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = fisher_z(drawn)
    z[~np.isfinite(z)] = np.nan
    return z[np.isfinite(z).any(axis=1)]


def _spread(away: Array, moved: Array, enlarged: float) -> _Spread:
    """Return how much of the distances `away` chance explains, from resampled ones (B, M)."""
    juries = len(away)
    if juries == 1:
        return _Spread(away, moved, 0.0, 0.0, 0.0, 0.0)
    chance = enlarged * float(np.nanvar(moved, axis=0).sum()) / (juries - 1)
    seen = float(away @ away) / (juries - 1)
    full = min(1.0, chance / seen) if seen > 0 else 1.0
    some = np.nan_to_num(moved[:MOST_DRAWN])
    products = some @ some.T
    worth = float(np.trace(products) ** 2 / max((products**2).sum(), np.finfo(float).tiny))
    beyond = max(worth - 2, LEAST_FREEDOM)
    taken = full * beyond / max(worth, beyond)
    return _Spread(away, moved, full, taken, max(0.0, seen - chance), 2 / beyond * taken**2)


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
