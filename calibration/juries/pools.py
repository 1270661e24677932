"""Every jury that some jurors can form, and its ICC in resamples."""

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np
from scipy import sparse

from calibration.agreement import columns, single_rater
from calibration.bootstrap import Counts
from calibration.rating_matrix import RatingMatrix, z_within_raters
from calibration.resampled_moments import (
    Moments,
    Prepared,
    RaterScales,
    icc_of_moments,
    panel_column,
    prepare,
    scale,
)
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.values import Method

Sizes = range


@dataclass(frozen=True, eq=False)
class JurorColumns:
    """Scores of clinicians and jurors on n responses, in the sample itself.

    Attributes
    ----------
    clinicians : shape (n,), the clinicians' mean; 0 where there is none
    has_clinicians : shape (n,), True where there is one
    jurors : shape (n, k), each juror's z (method "paper") or composites; 0 where missing
    has_score : shape (n, k), True where the juror has one
    clusters : shape (n,), the instance of each response
    method : of the ICC
    """

    clinicians: Array
    has_clinicians: Flags
    jurors: Array
    has_score: Flags
    clusters: Integers
    method: Method

    def present(self, members: Flags) -> Flags:
        """Return where all members (B, k) gave a score, shape (B, n)."""
        lost = members.astype(np.float64) @ (~self.has_score).T.astype(np.float64)
        whole: Flags = lost < 0.5
        return whole


def juror_columns(grid: RatingMatrix, jurors: Integers, method: Method) -> JurorColumns:
    """Return the scores of some jurors, columns (k,) of the grid, and of the clinicians."""
    scores = z_within_raters(grid.composites) if method == "paper" else grid.composites
    clinicians = columns(grid, single_rater(grid.raters[jurors[0]]), method).clinicians
    jurors_z = scores[:, jurors]
    return JurorColumns(
        clinicians=np.nan_to_num(clinicians),
        has_clinicians=~np.isnan(clinicians),
        jurors=np.nan_to_num(jurors_z),
        has_score=~np.isnan(jurors_z),
        clusters=grid.clusters,
        method=method,
    )


def number_of_juries(k: int, sizes: Sizes) -> int:
    """Return how many juries of these sizes k jurors can form."""
    return sum(comb(k, size) for size in sizes)


def compositions(k: int, sizes: Sizes) -> Flags:
    """Return every jury of these sizes of k jurors, shape (M, k): by size, then by juror."""
    juries = np.zeros((number_of_juries(k, sizes), k), dtype=np.bool_)
    juries_members = (members for size in sizes for members in combinations(range(k), size))
    for row, members in enumerate(juries_members):
        juries[row, list(members)] = True
    return juries


def common_grid(grid: RatingMatrix, jurors: Integers) -> RatingMatrix:
    """Return the grid of only the responses that all of some jurors, columns (k,), rated."""
    rows = np.all(~np.isnan(grid.composites[:, jurors]), axis=1, keepdims=True)[:, 0]
    _, clusters = np.unique(grid.clusters[rows], return_inverse=True)
    responses = tuple(
        name for name, is_common in zip(grid.responses, rows, strict=True) if is_common
    )
    return replace(
        grid,
        composites=grid.composites[rows],
        responses=responses,
        clusters=clusters.astype(np.int64),
    )


@dataclass(frozen=True, eq=False)
class JuryPool:
    """Juries whose score is the mean of all members, on the responses that all of them rated.

    In a resample each rater's z is computed anew, as `agreement.ScorerReplicates` does. All
    juries share its sums over responses: of products of two jurors, of jurors and clinicians.
    Where jurors lack responses, these sums are computed for each pattern, the set of jurors who
    rated a response, and each jury takes those of the responses that all its members rated.

    Attributes
    ----------
    columns : of the clinicians and all jurors in the sample itself
    subsets : shape (M, k), the juries
    prepared : of the grid
    clinicians, jurors : columns of the grid
    inside : shape (M, patterns), 1 where a pattern holds all members of the jury
    member : shape (patterns, n), 1 where a response has this pattern
    pairs : two jurors, or one twice, and the juries that have both
    """

    columns: JurorColumns
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
        rated_by_all: Array = self.inside @ (
            self.member @ self.columns.has_clinicians.astype(np.float64)
        )
        return rated_by_all

    def icc(self, counts: Counts) -> Array:
        """Return the ICC of every jury in every resample, (B, M); NaN where undefined."""
        data = self.prepared
        scales = scale(data, counts)
        column = panel_column(data, scales, self.clinicians)
        weights = counts[:, data.clusters] * (column.count > 0)
        take = self._sums_of_complete if self.inside.shape[1] == 1 else self._sums_by_pattern
        sums = take(weights, column.mean, scales)
        icc = icc_of_moments(sums, restandardise=data.method == "published").T
        undefined = scales.defined[:, self.jurors] == 0
        if undefined.any():
            icc = np.where(undefined.astype(np.float64) @ self.subsets.T > 0, np.nan, icc)
        return icc

    def _sums_of_complete(self, weights: Array, y: Array, scales: RaterScales) -> Moments:
        """Return the sums (M, B) where all jurors rated all responses, by matrix products alone."""
        values, factor = self.prepared.values[:, self.jurors], scales.factor[:, self.jurors]
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

    def _sums_by_pattern(self, weights: Array, y: Array, scales: RaterScales) -> Moments:
        """Return the sums (M, B), each jury's from the responses that all its members rated."""
        values, factor = self.prepared.values[:, self.jurors].T, scales.factor[:, self.jurors].T
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


def jury_pool(scope: Scope, jurors: Integers, subsets: Flags) -> JuryPool:
    """Return the pool of the mean of subsets (M, k) of some jurors, columns of the grid (k,)."""
    grid, method = scope.grid, scope.options.method
    columns = juror_columns(grid, jurors, method)
    patterns, pattern = np.unique(columns.has_score, axis=0, return_inverse=True)
    lacking = subsets.astype(np.float64) @ (~patterns).T.astype(np.float64)
    k = len(jurors)
    juror_pairs = [
        (i, j, np.flatnonzero(subsets[:, i] & subsets[:, j])) for i in range(k) for j in range(i, k)
    ]
    entries = (np.ones(len(pattern)), (pattern.ravel(), np.arange(len(pattern))))
    return JuryPool(
        columns=columns,
        subsets=subsets,
        prepared=prepare(grid, method),
        clinicians=grid.of_kind("clinician"),
        jurors=jurors,
        inside=(lacking == 0).astype(np.float64),
        member=sparse.csr_array(entries, shape=(len(patterns), len(pattern))),
        pairs=tuple(pair for pair in juror_pairs if len(pair[2])),
    )
