"""One resample, or a stack of them, as weights: every mean, sd, z and ICC computed anew.

A resample that draws a response twice gives it weight 2. All that an ICC of two columns
needs are weighted sums, which matrix products give for many resamples at a time. Leading
axis B is always the resample.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import sparse

from calibration.bootstrap import CELLS, Counts, Statistic
from calibration.rating_matrix import Grid, without_variance
from calibration.scores import Array, Flags, Integers, Method

ROUNDING = 1e-12  # a variance below this share of the second moment is cancellation


@dataclass(frozen=True, eq=False)
class Prepared:
    """A grid made ready for resampling.

    Attributes
    ----------
    values : shape (n, raters)
        Composites shifted (and, for z, scaled) to keep digits; 0 where missing.
    given : shape (n, raters), 1 where there is a composite, else 0
    usable : shape (raters,), False for a rater who takes no part
    clusters : shape (n,)
    sums : shape (clusters, 3 raters), number, sum and sum of squares by cluster
    method : whether columns are made of z ("paper") or of raw composites ("published")
    """

    values: Array
    given: Array
    usable: Flags
    clusters: Integers
    sums: Array
    method: Method

    def of(self, rows: slice | Flags) -> "Prepared":
        """Return some of the responses."""
        values, given, clusters = self.values[rows], self.given[rows], self.clusters[rows]
        return replace(self, values=values, given=given, clusters=clusters)


@dataclass(frozen=True, eq=False)
class Scale:
    """What turns a rater's value v into z = factor * (v - mean), shape (B, raters).

    `defined` is 0 where the resample leaves the rater no variance; factor is 0 there.
    """

    mean: Array
    factor: Array
    defined: Array

    def of(self, resamples: Flags) -> "Scale":
        """Return the scale of some of the resamples."""
        return Scale(self.mean[resamples], self.factor[resamples], self.defined[resamples])


@dataclass(frozen=True, eq=False)
class Column:
    """Sum over a panel's raters of each response, and how many of them gave one, (B, n).

    The count has shape (1, n) where it is the same in every resample.
    """

    total: Array
    count: Array

    @property
    def mean(self) -> Array:
        """Return the panel's mean; 0 where nobody gave a composite."""
        mean: Array = self.total / np.maximum(self.count, 1.0)
        return mean


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted sums of two columns over the responses that have both."""

    n: Array
    x: Array
    y: Array
    xx: Array
    yy: Array
    xy: Array

    @property
    def stacked(self) -> Array:
        """Return the six sums one after another, shape (6, ...)."""
        return np.stack([self.n, self.x, self.y, self.xx, self.yy, self.xy])


def prepare(grid: Grid, method: Method) -> Prepared:
    """Return a grid ready for resampling by one method."""
    given = (~np.isnan(grid.composites)).astype(np.float64)
    flat = without_variance(grid.composites)
    shift, spread = _typical(grid, given) if method == "published" else _own(given, grid)
    values = np.where(given > 0, (grid.composites - shift) / spread, 0.0)
    usable = np.ones_like(flat) if method == "published" else ~flat
    member = sparse.csr_array(
        (np.ones(len(values)), (grid.clusters, np.arange(len(values)))),
        shape=(grid.n_clusters, len(values)),
    )
    sums = np.asarray(member @ np.hstack([given, values, values**2]))
    return Prepared(values, given, usable, grid.clusters, sums, method)


def _own(given: Array, grid: Grid) -> tuple[Array, Array]:
    number = np.maximum(given.sum(axis=0), 1.0)
    mean = np.nansum(grid.composites, axis=0) / number
    spread = np.sqrt(np.nansum((grid.composites - mean) ** 2, axis=0) / number)
    return mean, np.where(spread > 0, spread, 1.0)


def _typical(grid: Grid, given: Array) -> tuple[Array, Array]:
    """Return one shift a kind, so that raters of a panel stay comparable, and no scaling."""
    shift = np.zeros(len(grid.raters))
    for kind in ("clinician", "juror"):
        own = grid.of_kind(kind)
        shift[own] = np.nansum(grid.composites[:, own]) / max(given[:, own].sum(), 1.0)
    metric = grid.of_kind("metric")
    shift[metric] = _own(given, grid)[0][metric]
    return shift, np.ones(len(grid.raters))


def scale(prepared: Prepared, counts: Counts) -> Scale:
    """Return each rater's mean and sd (ddof 1, a response drawn twice counted twice)."""
    if prepared.method == "published":
        as_given = np.ones((len(counts), prepared.values.shape[1]))
        return Scale(mean=np.zeros_like(as_given), factor=as_given, defined=as_given)
    number, total, square = np.hsplit(counts @ prepared.sums, 3)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / number
        about = square - total * mean
        defined = prepared.usable & (number >= 2) & (about > ROUNDING * square)
        factor = np.where(defined, np.sqrt((number - 1) / about), 0.0)
    return Scale(np.where(defined, mean, 0.0), factor, defined.astype(np.float64))


def varied(prepared: Prepared, counts: Counts) -> Flags:
    """Return whether each rater's composites differ in each resample, shape (B, raters)."""
    number, total, square = np.hsplit(counts @ prepared.sums, 3)
    about = square - total**2 / np.maximum(number, 1.0)
    some: Flags = (number >= 2) & (about > ROUNDING * square)
    return some


def panel_column(prepared: Prepared, by: Scale, members: Integers) -> Column:
    """Return the sum of z (or of raw composites) over some raters, response by response."""
    factor, defined = by.factor[:, members], by.defined[:, members]
    given = prepared.given[:, members].T
    total = factor @ prepared.values[:, members].T - (factor * by.mean[:, members]) @ given
    if defined.all():
        return Column(total, given.sum(axis=0)[None, :])
    return Column(total, defined @ given)


def moments(weights: Array, x: Array, y: Array) -> Moments:
    """Return the weighted sums of two columns, all of shape (B, n)."""
    wx, wy = weights * x, weights * y
    return Moments(
        n=weights.sum(axis=-1),
        x=wx.sum(axis=-1),
        y=wy.sum(axis=-1),
        xx=np.einsum("bn,bn->b", wx, x),
        yy=np.einsum("bn,bn->b", wy, y),
        xy=np.einsum("bn,bn->b", wx, y),
    )


def moments_of_two(weights: Array, both: tuple[Array, Array], y: Array) -> tuple[Moments, Moments]:
    """Return the sums of each of two columns with a third, what they share made once.

    All of shape (n, B), the resample last: where few of many responses are taken.
    """
    n, wy = weights.sum(axis=0), weights * y
    of_y, yy = wy.sum(axis=0), np.einsum("nb,nb->b", wy, y)
    first, second = (
        Moments(
            n=n,
            x=np.einsum("nb,nb->b", weights, x),
            y=of_y,
            xx=np.einsum("nb,nb,nb->b", weights, x, x),
            yy=yy,
            xy=np.einsum("nb,nb->b", wy, x),
        )
        for x in both
    )
    return first, second


def moments_of_raters(weights: Array, y: Array, prepared: Prepared, raters: Integers) -> Moments:
    """Return the sums of y (B, n) with the values of single raters, shape (B, raters).

    One rater's z is a straight line of the rater's values, whatever the resample, so the
    values themselves can be summed once and scaled afterwards: matrix products only.
    """
    values, given = prepared.values[:, raters], prepared.given[:, raters]
    wy = weights * y
    return Moments(
        n=weights @ given,
        x=weights @ values,
        y=wy @ given,
        xx=weights @ values**2,
        yy=(wy * y) @ given,
        xy=wy @ values,
    )


def icc_of_moments(sums: Moments, x_factor: Array | float = 1.0, *, restandardise: bool) -> Array:
    """Return ICC(C,2) = 4 cov / (var x + var y + 2 cov) of two columns from their sums.

    Parameters
    ----------
    sums : of x and y
    x_factor : what x is multiplied by
    restandardise : z-score both columns first, which makes it 2r / (1 + r)

    Returns
    -------
    shape of the sums
        NaN where a column has no variance or one mirrors the other.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        xx = sums.xx - sums.x**2 / sums.n
        yy = sums.yy - sums.y**2 / sums.n
        xy = (sums.xy - sums.x * sums.y / sums.n) * x_factor
        varied = (xx > ROUNDING * sums.xx) & (yy > ROUNDING * sums.yy) & (sums.n >= 2)
        xx = xx * np.square(x_factor)
        if restandardise:
            xy, xx, yy = xy / np.sqrt(xx * yy), np.ones_like(xx), np.ones_like(yy)
        both = xx + yy + 2 * xy
        return np.where(varied & (both > ROUNDING * (xx + yy)), 4 * xy / both, np.nan)


LEAST_AT_ONCE = 64  # resamples in a stack: products of fewer rows wait for memory
MOST_ROWS = CELLS // LEAST_AT_ONCE


@dataclass(frozen=True, eq=False)
class Part:
    """Some responses of a stack: their values, and how often each resample draws them.

    Attributes
    ----------
    prepared : of these responses; its `sums` are those of the whole study
    by : means and sds of the whole study, resample by resample
    weights : shape (B, rows)
    rows : which responses of the study these are
    """

    prepared: Prepared
    by: Scale
    weights: Array
    rows: slice
    columns: dict[bytes, Column] = field(default_factory=dict)

    def column(self, members: Integers) -> Column:
        """Return a panel's column over these responses; made once for all who ask."""
        key = members.tobytes()
        if key not in self.columns:
            self.columns[key] = panel_column(self.prepared, self.by, members)
        return self.columns[key]


@dataclass(frozen=True, eq=False)
class Stack:
    """Some resamples of a study: counts of shape (B, clusters)."""

    prepared: Prepared
    counts: Counts

    @cached_property
    def by(self) -> Scale:
        """Return every rater's mean and sd in each resample."""
        return scale(self.prepared, self.counts)

    def parts(self) -> Iterator[Part]:
        """Yield the responses, some at a time."""
        data, size = self.prepared, max(1, CELLS // len(self.counts))
        for start in range(0, len(data.values), size):
            rows = slice(start, start + size)
            yield Part(data.of(rows), self.by, self.counts[:, data.clusters[rows]], rows)


class Summed(Protocol):
    """A statistic made of sums over responses."""

    def sums(self, part: Part) -> Array:
        """Return the sums over some responses, of the same shape for every part."""

    def value(self, sums: Array, stack: Stack) -> Array:
        """Return the statistic, shape (B,) or (B, m), from the sums over all responses."""


def together(prepared: Prepared, statistics: Sequence[Summed]) -> Statistic:
    """Return several statistics of one grid as one, their columns side by side."""

    def of(counts: Counts) -> Array:
        stack = Stack(prepared, counts)
        sums = [np.zeros(())] * len(statistics)
        for part in stack.parts():
            sums = [one + each.sums(part) for one, each in zip(sums, statistics, strict=True)]
        found = zip(sums, statistics, strict=True)
        return np.column_stack([each.value(one, stack) for one, each in found])

    return of


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Whether any of some raters has no variance in a resample, 1 or 0: shape (B,)."""

    raters: Integers

    def sums(self, part: Part) -> Array:
        """Return nothing: a resample's sds are known without its responses."""
        return np.zeros(())

    def value(self, sums: Array, stack: Stack) -> Array:
        """Return 1 for each resample in which a rater has no variance."""
        lost: Array = (stack.by.defined[:, self.raters] == 0).any(axis=1).astype(np.float64)
        return lost
