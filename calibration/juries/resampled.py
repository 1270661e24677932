"""ICCs of juries with intervals, and the ICC to expect of each on new responses."""

import math
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

DRAWN = 0.632  # share of the instances that a resample holds
LEAST_DRAWN = 2  # resamples with an ICC: what a variance takes
AT_ONCE = 4096  # juries; with more, resamples are not taken fewer at a time


@dataclass(frozen=True, eq=False)
class ExpectedIccs:
    """Expected ICC of every jury, shape (M,), with its 95 % interval; NaN where undefined."""

    icc: Array
    low: Array
    high: Array


def expected_iccs(icc: Array, drawn: Array, luck: Array, instances: int) -> ExpectedIccs:
    """Return the ICC of each jury to expect on new responses, whichever of them is chosen.

    Parameters
    ----------
    icc : shape (M,), NaN where a jury has none
    drawn : shape (M, B), the ICCs in resamples of instances
    luck : shape (M,)
        By how much Fisher's z of each jury's ICC is too high because it is at its rank, see
        `Ranks.luck`; NaN where no resample tells.
    instances : how many there are, at least 2

    Returns
    -------
    ExpectedIccs
        z less 0.632 of the luck, taken back; its ends -+ t times the standard deviation of z over
        the resamples, enlarged by m / (m - 1), with m - 1 degrees of freedom, the lower one from z
        less all of the luck. NaN for a jury without an ICC or with one of 1, without luck, or with
        an ICC in fewer than 2 resamples.

    Notes
    -----
    A choice by a resample rests on 63 % of the instances and is worse than one by all, so that all
    of the luck is too much; hence 0.632 of what is judged by the others and 0.368 of the apparent.

    References
    ----------
    Efron & Tibshirani (1997), JASA 92, 548: the .632 estimator.
    """
    from scipy import stats  # as slow to load as all else that a table takes

    freedom = max(instances - 1, 1)
    reach = float(stats.t.ppf(0.975, freedom)) * math.sqrt((freedom + 1) / freedom)
    with np.errstate(divide="ignore", invalid="ignore"):
        z, resampled = fisher_z(icc) - DRAWN * luck, fisher_z(drawn)
    finite = np.isfinite(resampled)
    z = np.where(np.isfinite(z) & (finite.sum(axis=1) >= LEAST_DRAWN), z, np.nan)
    low, error = z - (1 - DRAWN) * np.maximum(luck, 0.0), np.zeros(len(z))
    for jury in np.flatnonzero(np.isfinite(z)):
        error[jury] = reach * resampled[jury, finite[jury]].std()
    return ExpectedIccs(*(1 - np.exp(-2 * ends) for ends in (z, low - error, z + error)))


@dataclass(frozen=True, eq=False)
class Ranks:
    """The ranks of juries in a sample, among those of their size, and the highest of all.

    Attributes
    ----------
    groups : the juries of one size each, and all together; their numbers from the highest ICC down
    """

    groups: tuple[Integers, ...]

    def sums(self, inside: Array, outside: Array) -> Array:
        """Return what chance adds to the z of the jury at each rank, summed over resamples.

        Parameters
        ----------
        inside, outside : shape (B, M)
            ICCs in each resample, and over the instances that it did not draw.

        Returns
        -------
        shape (2, groups, M)
            The sums over the resamples, and of how many they are, in the places of the sample's juries.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            z = fisher_z(outside)
        z[~np.isfinite(z)] = np.nan
        found = np.zeros((2, len(self.groups), inside.shape[1]))
        for place, group in enumerate(self.groups):
            chosen = np.argsort(
                -np.nan_to_num(inside[:, group], nan=-np.inf), axis=1, kind="stable"
            )
            gained = z[:, group] - np.take_along_axis(z[:, group], chosen, axis=1)
            found[0, place, group] = np.nansum(gained, axis=0)
            found[1, place, group] = np.isfinite(gained).sum(axis=0)
        return found


def ranks(icc: Array, sizes: Integers) -> Ranks:
    """Return the ranks of juries by their ICC (M,), of their sizes (M,) and of all."""
    order = np.argsort(-np.nan_to_num(icc, nan=-np.inf), kind="stable")
    return Ranks((*(order[sizes[order] == size] for size in np.unique(sizes)), order))


def luck(ranked: Ranks, sums: Array) -> Array:
    """Return by how much Fisher's z of each jury's ICC is too high because it is at its rank.

    A rank, first of 35 say, is given to another jury in another sample. In each resample of
    instances the juries of a size are ranked anew; the jury that comes to a rank there is
    compared, on the instances that were not drawn, with the one that has the rank in the sample.
    What the latter is better by, averaged over the resamples, is what chance has added to it:
    nothing where the same jury always has the rank, the whole distance from the others where all
    are alike. The best of all juries is ranked among all.

    Parameters
    ----------
    ranked : of the sample
    sums : of `Ranks.sums`, over all resamples

    Returns
    -------
    shape (M,)
        NaN where no resample has both ICCs.
    """
    with np.errstate(invalid="ignore"):
        by_group = sums[0] / sums[1]
    found = np.full(sums.shape[2], np.nan)
    for place, group in enumerate(ranked.groups):
        places = group if place < len(ranked.groups) - 1 else group[:1]
        found[places] = by_group[place, places]
    return found


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


def jury_iccs(scope: Scope, pool: JuryPool) -> JuryIccs:
    """Return the ICCs of all juries of a pool, all from the same resamples of instances.

    Parameters
    ----------
    scope : Scope
    pool : JuryPool

    Returns
    -------
    JuryIccs
        Intervals and expected ICCs are NaN where there is a single instance, or no resample. A
        jury that is the only one of its size, and not the best of all, has its own ICC as expected.
    """
    options, clusters = scope.options, scope.grid.n_clusters
    drawn = np.full((len(pool.subsets), options.reps if clusters >= LEAST_CLUSTERS else 0), np.nan)
    n, instances = scored_counts(pool.columns, pool.subsets)
    sample_icc = pool.icc(np.ones((1, clusters)))[0]
    icc = np.where(n >= LEAST_RESPONSES, sample_icc, np.nan)
    known = ~np.isnan(icc) & (instances >= LEAST_CLUSTERS)
    ranked = ranks(icc, pool.subsets.sum(axis=1))
    rows, start = max(len(scope.grid.responses), min(len(pool.subsets), AT_ONCE)), 0
    resampling = BootstrapPlan(clusters, rows, drawn.shape[1], options.seed, options.executor)
    sums = np.zeros((2, len(ranked.groups), len(pool.subsets)))
    for lot, lot_sums in by_lots(_ResampleLot(pool, ranked), resampling):
        drawn[:, start : start + len(lot)] = lot.T
        sums += lot_sums
        start += len(lot)
        scope.tick(len(lot))
    return JuryIccs(
        icc=icc,
        n=n,
        instances=instances,
        intervals=intervals(drawn, known),
        undefined=np.isnan(drawn).sum(axis=1),
        expected=expected_iccs(np.where(known, icc, np.nan), drawn, luck(ranked, sums), clusters),
    )


@dataclass(frozen=True, eq=False)
class _ResampleLot:
    """ICCs of juries in one lot of resamples, (B, M), and what chance adds at their ranks."""

    pool: JuryPool
    ranked: Ranks

    def __call__(self, counts: Counts) -> tuple[Array, Array]:
        inside = self.pool.icc(counts)
        outside = self.pool.icc((counts == 0).astype(counts.dtype))
        return inside, self.ranked.sums(inside, outside)


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
