"""Every jury that a set of jurors can form, and its ICC in resamples: by mean or by median of its members."""

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Protocol

import numpy as np
from scipy import sparse

from calibration.agreement import columns, one
from calibration.bootstrap import Counts
from calibration.rating_matrix import Grid, z_within_raters
from calibration.resampled_moments import (
    Moments,
    Prepared,
    Scale,
    icc_of_moments,
    moments,
    panel_column,
    prepare,
    scale,
)
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers, Method

Sizes = range


@dataclass(frozen=True, eq=False)
class Bench:
    """Columns of the whole sample.

    Attributes
    ----------
    clinicians : shape (n,), the clinicians' column; 0 where there is none
    heard : shape (n,), True where there is one
    jurors : shape (n, k), each juror's z (method "paper") or composites; 0 where missing
    given : shape (n, k), True where the juror has one
    clusters : shape (n,), the instance of each response
    method : of the ICC
    """

    clinicians: Array
    heard: Flags
    jurors: Array
    given: Flags
    clusters: Integers
    method: Method

    def present(self, members: Flags) -> Flags:
        """Return where all members (B, k) gave a score, shape (B, n)."""
        lost = members.astype(np.float64) @ (~self.given).T.astype(np.float64)
        whole: Flags = lost < 0.5
        return whole


@dataclass(frozen=True, eq=False)
class Learnt:
    """What some resamples say of all juries.

    Attributes
    ----------
    icc : shape (B, M), NaN where undefined
    too_high : shape (B, M) or None
        By how much Fisher's z of an ICC is too high because weights were learnt on the responses
        that they are judged by; None where nothing is learnt.
    """

    icc: Array
    too_high: Array | None = None


class Pool(Protocol):
    """A way to make one column of several jurors: the mean, the median or a weighted mean."""

    @property
    def bench(self) -> Bench:
        """Return the columns of the whole sample."""

    @property
    def subsets(self) -> Flags:
        """Return the juries, shape (M, k)."""

    def learn(self, counts: Counts) -> Learnt:
        """Return what resamples (B, clusters) say."""


def bench_of(grid: Grid, jurors: Integers, method: Method) -> Bench:
    """Return the columns of some jurors, column numbers (k,), and of the clinicians."""
    values = z_within_raters(grid.composites) if method == "paper" else grid.composites
    clinicians = columns(grid, one(grid.raters[jurors[0]]), method).clinicians
    own = values[:, jurors]
    return Bench(
        clinicians=np.nan_to_num(clinicians),
        heard=~np.isnan(clinicians),
        jurors=np.nan_to_num(own),
        given=~np.isnan(own),
        clusters=grid.clusters,
        method=method,
    )


def number_of_juries(k: int, sizes: Sizes) -> int:
    """Return how many juries of these sizes k jurors can make up."""
    return sum(comb(k, size) for size in sizes)


def compositions(k: int, sizes: Sizes) -> Flags:
    """Return every jury of these sizes of k jurors, shape (M, k): by size, then by juror."""
    found = np.zeros((number_of_juries(k, sizes), k), dtype=np.bool_)
    every = (members for size in sizes for members in combinations(range(k), size))
    for place, members in enumerate(every):
        found[place, list(members)] = True
    return found


def common_grid(grid: Grid, jurors: Integers) -> Grid:
    """Return the grid of the responses that all of some jurors rated, as if no other were there."""
    rows = np.all(~np.isnan(grid.composites[:, jurors]), axis=1, keepdims=True)[:, 0]
    _, clusters = np.unique(grid.clusters[rows], return_inverse=True)
    kept = tuple(name for name, stays in zip(grid.responses, rows, strict=True) if stays)
    return replace(
        grid,
        composites=grid.composites[rows],
        responses=kept,
        clusters=clusters.astype(np.int64),
    )


@dataclass(frozen=True, eq=False)
class MeanPool:
    """Juries whose score is the mean of all members, on the responses that all of them rated.

    A resample takes each rater's z anew, as `agreement.ScorerReplicates` does. All juries
    share its sums over responses: of products of two jurors, of jurors and clinicians. Where
    jurors lack responses, these sums are kept apart by who rated a response, and each jury
    takes those of the responses that all its members rated.

    Attributes
    ----------
    bench, subsets : as `Pool`
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
        first, second = np.array([pair[:2] for pair in self.pairs]).T
        products = weights @ (values[:, first] * values[:, second])
        pair_shares = share[:, first] * share[:, second] * np.where(first == second, 1.0, 2.0)
        weighted = weights * y
        return Moments(
            n=weights.sum(axis=1)[None],
            x=share @ ((weights @ values) * factor).T,
            y=weighted.sum(axis=1)[None],
            xx=pair_shares @ (products * factor[:, first] * factor[:, second]).T,
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
        for first, second, rows in self.pairs:
            juries_with_pattern, scaled = self.inside[rows], factor[first]
            products = (values[first] * values[second])[:, None]
            products_by_pattern = (self.member @ (drawn * products)) * (scaled * factor[second])
            xx[rows] += juries_with_pattern @ (
                products_by_pattern if first == second else 2 * products_by_pattern
            )
            if first == second:
                own_values = values[first][:, None]
                x[rows] += juries_with_pattern @ ((self.member @ (drawn * own_values)) * scaled)
                xy[rows] += juries_with_pattern @ ((self.member @ (weighted * own_values)) * scaled)
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
            lower, upper = ordered[low], ordered[low + 1]
            ordered[low], ordered[low + 1] = np.minimum(lower, upper), np.maximum(lower, upper)
    return np.asarray((ordered[(size - 1) // 2] + ordered[size // 2]) / 2)
