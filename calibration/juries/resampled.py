"""ICCs of juries with intervals, and the ICC to expect of each on new responses."""

from dataclasses import dataclass

import numpy as np

from calibration.agreement import LEAST_RESPONSES
from calibration.bootstrap import (
    CELLS,
    LEAST_CLUSTERS,
    BootstrapPlan,
    Counts,
    by_lots,
    percentile_interval,
)
from calibration.icc import UNDEFINED, Interval
from calibration.jackknife import fisher_z
from calibration.juries.pools import JurorColumns, JuryPool
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers

LEAST_DRAWN = 2  # resamples with an ICC: what a variance takes
MOST_DRAWN = 400  # resamples from which the effective number of juries is computed
LEAST_FREEDOM = 0.5  # of the shrinkage: two or three juries hardly tell how much juries differ
AT_ONCE = 4096  # juries; with more, resamples are not taken fewer at a time


@dataclass(frozen=True, eq=False)
class ExpectedIccs:
    """Expected ICC of every jury, shape (M,), with its 95 % interval; NaN where undefined."""

    icc: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class _Spread:
    """How far the z of juries of one size lie from their mean, and how much of that is chance.

    Attributes
    ----------
    distances : shape (M,), from the mean, in the sample
    resampled : shape (B, M), the same in resamples
    chance_share : share of the variance that chance explains, at most 1
    shrinkage : share of the distances that is taken off; less than `chance_share`, which few
        juries estimate poorly
    true_variance : variance between juries beyond chance
    shrinkage_variance : variance of `shrinkage`
    """

    distances: Array
    resampled: Array
    chance_share: float
    shrinkage: float
    true_variance: float
    shrinkage_variance: float


def expected_iccs(
    icc: Array, drawn: Array, sizes: Integers, instances: int, optimism: Array
) -> ExpectedIccs:
    """Return the ICC of each jury to expect on new responses, whichever of them is chosen.

    The ICCs of juries of one size are shrunk towards their mean by the share of their variance
    that chance explains: the best of juries that differ by chance alone is expected to be like
    the others, and a jury far above the others keeps its ICC. So does the only jury of its size.

    Parameters
    ----------
    icc : shape (M,), NaN where a jury has none
    drawn : shape (M, B), the ICCs in resamples of instances
    sizes : shape (M,), jurors of each jury
    instances : how many there are, at least 2
    optimism : shape (M,)
        By how much Fisher's z of each jury's ICC is too high because weights were learnt on the
        responses that it is judged by; 0 of means and medians.

    Returns
    -------
    ExpectedIccs
        NaN for a jury without an ICC or with one of 1, or with an ICC in fewer than 2 resamples.

    Notes
    -----
    On Fisher's z of an ICC, z_j = mean + d_j. The variance of the d_j in the resamples, enlarged
    by m / (m - 1), is v; that of the d_j themselves S. chance = v / S, at most 1, is cut to
    (f - 2) / f of it, where f = tr(C)^2 / tr(C^2) is how many independent juries the resampled
    d_j, with covariance C, are worth: juries share jurors, and few say little of S. The expected
    z is mean + (1 - shrinkage) d_j. Its variance adds that of mean and shrunken d_j over the
    resamples, shrinkage^2 times the variance S - v that is not chance, and
    2 shrinkage^2 / (f - 2) d_j^2 for not knowing the share. The interval is of t with m - 1
    degrees of freedom, its lower end from the fully shrunken value where that is lower.

    References
    ----------
    Empirical Bayes: Efron & Morris (1975), JASA 70, 311; Morris (1983), JASA 78, 47, for
    (f - 2) / f and its variance. Effective number: Satterthwaite (1946), Biometrics Bulletin 2.
    """
    from scipy import stats  # as slow to load as all else that a table takes

    fisher_ends = np.full((3, len(icc)), np.nan)
    reach = float(stats.t.ppf(0.975, instances - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = fisher_z(icc) - optimism
    known = np.isfinite(z) & ((drawn < 1).sum(axis=1) >= LEAST_DRAWN)
    for size in np.unique(sizes):
        members = np.flatnonzero((sizes == size) & known)
        if len(members):
            fisher_ends[:, members] = _expected_of_size(
                z[members], drawn[members].T, instances, reach
            )
    ends = 1 - np.exp(-2 * fisher_ends)
    only_of_size = np.isin(sizes, [size for size in np.unique(sizes) if (sizes == size).sum() == 1])
    ends[0] = np.where(only_of_size & (optimism == 0) & np.isfinite(ends[0]), icc, ends[0])
    return ExpectedIccs(*ends)


def _expected_of_size(z: Array, drawn: Array, instances: int, reach: float) -> Array:
    """Return the expected z and its two ends of juries of one size, (3, M), from ICCs (B, M)."""
    resampled = _fisher_z_of_resamples(drawn)
    enlarged = instances / (instances - 1)
    centre = np.nanmean(resampled, axis=1)
    resampled -= centre[:, None]
    resampled -= np.nanmean(resampled, axis=0)
    spread = _spread(z - z.mean(), resampled, enlarged)
    remaining = 1 - spread.shrinkage
    middle = z.mean() + remaining * spread.distances
    lowest = z.mean() + np.minimum(
        remaining * spread.distances, (1 - spread.chance_share) * spread.distances
    )
    shift = centre - centre.mean()
    variance = enlarged * np.nanvar(shift[:, None] + remaining * resampled, axis=0)
    variance += (
        spread.shrinkage**2 * spread.true_variance + spread.shrinkage_variance * spread.distances**2
    )
    error = np.sqrt(variance)
    return np.stack([middle, lowest - reach * error, middle + reach * error])


def _fisher_z_of_resamples(drawn: Array) -> Array:
    """Return Fisher's z of resampled ICCs where any jury has one; NaN where one has none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = fisher_z(drawn)
    z[~np.isfinite(z)] = np.nan
    return z[np.isfinite(z).any(axis=1)]


def _spread(distances: Array, resampled: Array, enlarged: float) -> _Spread:
    """Return how much of the distances (M,) chance explains, from resampled ones (B, M)."""
    juries = len(distances)
    if juries == 1:
        return _Spread(distances, resampled, 0.0, 0.0, 0.0, 0.0)
    chance = enlarged * float(np.nanvar(resampled, axis=0).sum()) / (juries - 1)
    variance = float(distances @ distances) / (juries - 1)
    chance_share = min(1.0, chance / variance) if variance > 0 else 1.0
    finite = np.nan_to_num(resampled[:MOST_DRAWN])
    products = finite @ finite.T
    effective = float(np.trace(products) ** 2 / max((products**2).sum(), np.finfo(float).tiny))
    freedom = max(effective - 2, LEAST_FREEDOM)
    shrinkage = chance_share * freedom / max(effective, freedom)
    return _Spread(
        distances,
        resampled,
        chance_share,
        shrinkage,
        max(0.0, variance - chance),
        2 / freedom * shrinkage**2,
    )


@dataclass(frozen=True, eq=False)
class JuryIccs:
    """ICCs of M juries with the clinicians.

    Attributes
    ----------
    icc : shape (M,), NaN where undefined
    n, instances : shape (M,), responses that a clinician and all members scored, and their instances
    intervals : percentile 95 % intervals
    undefined : shape (M,), resamples in which a jury has no ICC
    expected : on new responses
    """

    icc: Array
    n: Integers
    instances: Integers
    intervals: list[Interval]
    undefined: Integers
    expected: ExpectedIccs


def jury_iccs(scope: Scope, pool: JuryPool, juries: Integers) -> JuryIccs:
    """Return the ICCs of some juries, all from the same resamples of instances.

    Parameters
    ----------
    scope : Scope
    pool : JuryPool
    juries : shape (M,), numbers of the pool's juries

    Returns
    -------
    JuryIccs
        Intervals and expected ICCs are NaN where there is a single instance, or no resample. A
        jury that is the only one of its size, and has no weights, has its own ICC as expected.
    """
    options, clusters = scope.options, scope.grid.n_clusters
    drawn = np.full((len(juries), options.reps if clusters >= LEAST_CLUSTERS else 0), np.nan)
    rows, start = max(len(scope.grid.responses), min(len(pool.subsets), AT_ONCE)), 0
    resampling = BootstrapPlan(clusters, rows, drawn.shape[1], options.seed, options.executor)
    optimism_sums = np.zeros((2, len(juries)))
    for icc, lot_sums in by_lots(_ResampleLot(pool, juries), resampling):
        drawn[:, start : start + len(icc)] = icc.T
        optimism_sums += lot_sums
        start += len(icc)
        scope.tick(len(icc))
    n, instances = scored_counts(pool.columns, pool.subsets[juries])
    sample_icc = pool.resample(np.ones((1, clusters))).icc[0, juries]
    icc = np.where(n >= LEAST_RESPONSES, sample_icc, np.nan)
    known = ~np.isnan(icc) & (instances >= LEAST_CLUSTERS)
    sizes = pool.subsets[juries].sum(axis=1)
    optimism = optimism_sums[0] / np.maximum(optimism_sums[1], 1)
    return JuryIccs(
        icc=icc,
        n=n,
        instances=instances,
        intervals=intervals(drawn, known),
        undefined=np.isnan(drawn).sum(axis=1),
        expected=expected_iccs(np.where(known, icc, np.nan), drawn, sizes, clusters, optimism),
    )


@dataclass(frozen=True, eq=False)
class _ResampleLot:
    """ICCs of juries in one lot of resamples, (B, M), and sums of their optimism, (2, M).

    The sums are, over the resamples of the lot, the optimism and the number that have one.
    """

    pool: JuryPool
    juries: Integers

    def __call__(self, counts: Counts) -> tuple[Array, Array]:
        resampled = self.pool.resample(counts)
        icc = resampled.icc[:, self.juries]
        if resampled.optimism is None:
            return icc, np.zeros((2, len(self.juries)))
        optimism = resampled.optimism[:, self.juries]
        is_known = np.isfinite(optimism)
        return icc, np.stack([np.where(is_known, optimism, 0.0).sum(axis=0), is_known.sum(axis=0)])


def intervals(drawn: Array, known: Flags) -> list[Interval]:
    """Return the percentile 95 % interval of each jury from its ICCs (M, B), if `known` (M,)."""
    ends_by_jury = [UNDEFINED] * len(drawn)
    if not drawn.shape[1]:
        return ends_by_jury
    defined, batch_size = np.flatnonzero(known), max(1, 8 * CELLS // drawn.shape[1])
    for start in range(0, len(defined), batch_size):
        batch = defined[start : start + batch_size]
        values = drawn[batch]
        finite = np.isfinite(values).all(axis=1)
        ends = np.quantile(values[finite], [0.025, 0.975], axis=1, overwrite_input=True)
        for place, low, high in zip(batch[finite].tolist(), *ends.tolist(), strict=True):
            ends_by_jury[place] = Interval(low, high)
        for place in batch[~finite].tolist():
            ends_by_jury[place] = percentile_interval(drawn[place])
    return ends_by_jury


def scored_counts(columns: JurorColumns, subsets: Flags) -> tuple[Integers, Integers]:
    """Return how many responses each jury (M, k) and a clinician scored, and their instances."""
    rated = np.flatnonzero(columns.has_clinicians)
    rated = rated[np.argsort(columns.clusters[rated], kind="stable")]
    _, starts = np.unique(columns.clusters[rated], return_index=True)
    n, instances = (np.zeros(len(subsets), dtype=np.int64) for _ in range(2))
    batch_size = max(1, CELLS // max(len(rated), 1))
    for start in range(0, len(subsets) if len(rated) else 0, batch_size):
        batch = slice(start, start + batch_size)
        present = columns.present(subsets[batch])[:, rated]
        n[batch] = present.sum(axis=1)
        instances[batch] = np.logical_or.reduceat(present, starts, axis=1).sum(axis=1)
    return n, instances
