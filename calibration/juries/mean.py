"""The ICC of every jury in every resample, its column the mean of its members."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from calibration.bootstrap import Counts
from calibration.juries.sets import Bench, Learnt, bench_of
from calibration.resample import (
    Moments,
    Prepared,
    Scale,
    icc_of_moments,
    panel_column,
    prepare,
    scale,
)
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers


@dataclass(frozen=True, eq=False)
class MeanPool:
    """Juries whose score is the mean of all members, on the responses that all of them rated.

    A resample takes each rater's z anew, as `agreement.ScorerReplicates` does. All juries
    share its sums over responses: of products of two jurors, of jurors and clinicians. Where
    jurors lack responses, these sums are kept apart by who rated a response, and each jury
    takes those of the responses that all its members rated.

    Attributes
    ----------
    bench, subsets : as `sets.Pool`
    prepared : of the grid
    clinicians, jurors : columns of the grid
    inside : shape (M, patterns), which sets of jurors who rated a response hold all of a jury
    member : shape (patterns, n), 1 where a response was rated by this set of jurors
    pairs : two jurors, or one twice, and the juries that have both
    """

    bench: Bench
    subsets: Flags
    prepared: Prepared
    clinicians: Integers
    jurors: Integers
    inside: Array
    member: sparse.csr_array
    pairs: tuple[tuple[int, int, Integers], ...]

    @property
    def responses(self) -> Array:
        """Return how many responses a clinician and all members rated, shape (M,)."""
        found: Array = self.inside @ (self.member @ self.bench.heard.astype(np.float64))
        return found

    def learn(self, counts: Counts) -> Learnt:
        """Return the ICC of every jury in every resample."""
        return Learnt(self.icc(counts))

    def icc(self, counts: Counts) -> Array:
        """Return the ICC of every jury in every resample, (B, M); NaN where undefined."""
        data = self.prepared
        by = scale(data, counts)
        column = panel_column(data, by, self.clinicians)
        weights = counts[:, data.clusters] * (column.count > 0)
        take = self._whole if self.inside.shape[1] == 1 else self._apart
        sums = take(weights, column.mean, by)
        icc = icc_of_moments(sums, restandardise=data.method == "published").T
        undefined = by.defined[:, self.jurors] == 0
        if undefined.any():
            icc = np.where(undefined.astype(np.float64) @ self.subsets.T > 0, np.nan, icc)
        return icc

    def _whole(self, weights: Array, y: Array, by: Scale) -> Moments:
        """Return the sums (M, B) where all jurors rated all responses: matrix products alone."""
        values, factor = self.prepared.values[:, self.jurors], by.factor[:, self.jurors]
        share = self.subsets / self.subsets.sum(axis=1, keepdims=True)
        one, other = np.array([pair[:2] for pair in self.pairs]).T
        products = weights @ (values[:, one] * values[:, other])
        twice = share[:, one] * share[:, other] * np.where(one == other, 1.0, 2.0)
        weighted = weights * y
        return Moments(
            n=weights.sum(axis=1)[None],
            x=share @ ((weights @ values) * factor).T,
            y=weighted.sum(axis=1)[None],
            xx=twice @ (products * factor[:, one] * factor[:, other]).T,
            yy=np.einsum("bn,bn->b", weighted, y)[None],
            xy=share @ ((weighted @ values) * factor).T,
        )

    def _apart(self, weights: Array, y: Array, by: Scale) -> Moments:
        """Return the sums (M, B) by who rated a response: each jury from where all its members did."""
        values, factor = self.prepared.values[:, self.jurors].T, by.factor[:, self.jurors].T
        drawn, weighted = weights.T, (weights * y).T
        n, sum_y, yy = (
            self.inside @ (self.member @ part) for part in (drawn, weighted, weighted * y.T)
        )
        x, xx, xy = (np.zeros_like(n) for _ in range(3))
        for one, other, rows in self.pairs:
            inside, scaled = self.inside[rows], factor[one]
            products = (values[one] * values[other])[:, None]
            both = (self.member @ (drawn * products)) * (scaled * factor[other])
            xx[rows] += inside @ (both if one == other else 2 * both)
            if one == other:
                alone = values[one][:, None]
                x[rows] += inside @ ((self.member @ (drawn * alone)) * scaled)
                xy[rows] += inside @ ((self.member @ (weighted * alone)) * scaled)
        size = self.subsets.sum(axis=1).astype(np.float64)[:, None]
        return Moments(n, x / size, sum_y, xx / size**2, yy, xy / size)


def mean_pool(scope: Scope, jurors: Integers, subsets: Flags) -> MeanPool:
    """Return the pool of the mean of subsets (M, k) of some jurors, columns of the grid (k,)."""
    grid, method = scope.grid, scope.asked.method
    bench = bench_of(grid, jurors, method)
    patterns, of = np.unique(bench.given, axis=0, return_inverse=True)
    lost = subsets.astype(np.float64) @ (~patterns).T.astype(np.float64)
    k = len(jurors)
    both = [
        (i, j, np.flatnonzero(subsets[:, i] & subsets[:, j])) for i in range(k) for j in range(i, k)
    ]
    entries = (np.ones(len(of)), (of.ravel(), np.arange(len(of))))
    return MeanPool(
        bench=bench,
        subsets=subsets,
        prepared=prepare(grid, method),
        clinicians=grid.of_kind("clinician"),
        jurors=jurors,
        inside=(lost == 0).astype(np.float64),
        member=sparse.csr_array(entries, shape=(len(patterns), len(of))),
        pairs=tuple(pair for pair in both if len(pair[2])),
    )
