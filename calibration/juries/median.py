"""The ICC of every jury in every resample, its column the median of its members."""

from dataclasses import dataclass

import numpy as np

from calibration.bootstrap import Counts
from calibration.juries.sets import Bench, Learnt, bench_of
from calibration.resample import Prepared, icc_of_moments, moments, panel_column, prepare, scale
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers


@dataclass(frozen=True, eq=False)
class MedianPool:
    """Juries whose score is the median of all members, where all of them gave a score.

    A median is no sum: each jury is made anew, response by response, in each resample.
    """

    bench: Bench
    subsets: Flags
    prepared: Prepared
    clinicians: Integers
    jurors: Integers

    def learn(self, counts: Counts) -> Learnt:
        """Return the ICC of every jury in every resample."""
        data = self.prepared
        by = scale(data, counts)
        clinical = panel_column(data, by, self.clinicians)
        weights, y = counts[:, data.clusters] * (clinical.count > 0), clinical.mean
        mean, factor = by.mean[:, self.jurors].T, by.factor[:, self.jurors].T
        z = factor[:, :, None] * (data.values[:, self.jurors].T[:, None, :] - mean[:, :, None])
        icc = np.empty((len(counts), len(self.subsets)))
        for place, members in enumerate(self.subsets):
            rows = self.bench.given[:, members].all(axis=1)
            x = middle(z[members][:, :, rows])
            sums = moments(weights[:, rows], x, y[:, rows])
            icc[:, place] = icc_of_moments(sums, restandardise=data.method == "published")
        flat = (1.0 - by.defined[:, self.jurors]) @ self.subsets.T > 0
        return Learnt(np.where(flat, np.nan, icc))


def median_pool(scope: Scope, jurors: Integers, subsets: Flags) -> MedianPool:
    """Return the pool of the median of subsets (M, k) of jurors, columns of the grid (k,)."""
    grid, method = scope.grid, scope.asked.method
    bench, prepared = bench_of(grid, jurors, method), prepare(grid, method)
    return MedianPool(bench, subsets, prepared, grid.of_kind("clinician"), jurors)


def middle(columns: Array) -> Array:
    """Return the median over the first axis, without NaN; of an even number the middle two's mean.

    Neighbours change places until all are in order: with few columns that is ten times
    as fast as to sort each response by itself.
    """
    ordered, size = list(columns), len(columns)
    for turn in range(size):
        for low in range(turn % 2, size - 1, 2):
            one, other = ordered[low], ordered[low + 1]
            ordered[low], ordered[low + 1] = np.minimum(one, other), np.maximum(one, other)
    return np.asarray((ordered[(size - 1) // 2] + ordered[size // 2]) / 2)
