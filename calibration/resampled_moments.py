"""Weighted moments of bootstrap resamples: every mean, sd, z and ICC computed anew in each.

A resample that draws a response twice gives it weight 2. All that an ICC of two columns needs are
weighted sums, which matrix products give for many resamples at a time; the leading axis B is
always the resample. Several statistics share a batch of resamples, and go through its responses in
blocks, so that what is held at a time fits a processor's cache: each adds up its sums block by
block and makes its values of them at the end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import sparse

from calibration.bootstrap import CELLS, Counts, Statistic
from calibration.rating_matrix import RatingMatrix, without_variance
from calibration.scores import Array, Flags, Integers
from calibration.values import Method

ROUNDING = 1e-12  # a variance below this share of the second moment is cancellation


@dataclass(frozen=True, eq=False)
class Prepared:
    """A grid in the form that resampling needs: shifted values, and sums by cluster.

    Attributes
    ----------
    values : shape (n, raters)
        Composites shifted (and, for z, scaled) to keep digits; 0 where missing.
    has_value : shape (n, raters), 1 where there is a composite, else 0
    usable : shape (raters,), False for a rater who takes no part
    clusters : shape (n,)
    sums : shape (clusters, 3 raters), number, sum and sum of squares by cluster
    method : whether columns are made of z ("paper") or of raw composites ("published")
    """

    values: Array
    has_value: Array
    usable: Flags
    clusters: Integers
    sums: Array
    method: Method

    def of(self, rows: slice | Flags) -> "Prepared":
        """Return some of the responses."""
        values, has_value, clusters = self.values[rows], self.has_value[rows], self.clusters[rows]
        return replace(self, values=values, has_value=has_value, clusters=clusters)


@dataclass(frozen=True, eq=False)
class RaterScales:
    """What turns a rater's value v into z = factor * (v - mean), shape (B, raters).

    `defined` is 0 where the resample leaves the rater no variance; factor is 0 there.
    """

    mean: Array
    factor: Array
    defined: Array

    def of(self, resamples: Flags) -> "RaterScales":
        """Return the scale of some of the resamples."""
        return RaterScales(self.mean[resamples], self.factor[resamples], self.defined[resamples])


@dataclass(frozen=True, eq=False)
class PanelSums:
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


def prepare(grid: RatingMatrix, method: Method) -> Prepared:
    """Return a grid in the form that resampling by one method needs."""
    has_value = (~np.isnan(grid.composites)).astype(np.float64)
    flat = without_variance(grid.composites)
    shift, spread = (
        _kind_scaling(grid, has_value) if method == "published" else _own_scaling(has_value, grid)
    )
    values = np.where(has_value > 0, (grid.composites - shift) / spread, 0.0)
    usable = np.ones_like(flat) if method == "published" else ~flat
    member = sparse.csr_array(
        (np.ones(len(values)), (grid.clusters, np.arange(len(values)))),
        shape=(grid.n_clusters, len(values)),
    )
    sums = np.asarray(member @ np.hstack([has_value, values, values**2]))
    return Prepared(values, has_value, usable, grid.clusters, sums, method)


def _own_scaling(has_value: Array, grid: RatingMatrix) -> tuple[Array, Array]:
    number = np.maximum(has_value.sum(axis=0), 1.0)
    mean = np.nansum(grid.composites, axis=0) / number
    spread = np.sqrt(np.nansum((grid.composites - mean) ** 2, axis=0) / number)
    return mean, np.where(spread > 0, spread, 1.0)


def _kind_scaling(grid: RatingMatrix, has_value: Array) -> tuple[Array, Array]:
    """Return one shift a kind, so that raters of a panel stay comparable, and no scaling."""
    shift = np.zeros(len(grid.raters))
    for kind in ("clinician", "juror"):
        own = grid.of_kind(kind)
        shift[own] = np.nansum(grid.composites[:, own]) / max(has_value[:, own].sum(), 1.0)
    metric = grid.of_kind("metric")
    shift[metric] = _own_scaling(has_value, grid)[0][metric]
    return shift, np.ones(len(grid.raters))


def scale(prepared: Prepared, counts: Counts) -> RaterScales:
    """Return each rater's mean and sd (ddof 1, a response drawn twice counted twice)."""
    if prepared.method == "published":
        as_given = np.ones((len(counts), prepared.values.shape[1]))
        return RaterScales(mean=np.zeros_like(as_given), factor=as_given, defined=as_given)
    number, total, square = np.hsplit(counts @ prepared.sums, 3)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / number
        about = square - total * mean
        defined = prepared.usable & (number >= 2) & (about > ROUNDING * square)
        factor = np.where(defined, np.sqrt((number - 1) / about), 0.0)
    return RaterScales(np.where(defined, mean, 0.0), factor, defined.astype(np.float64))


def varied(prepared: Prepared, counts: Counts) -> Flags:
    """Return whether each rater's composites differ in each resample, shape (B, raters)."""
    number, total, square = np.hsplit(counts @ prepared.sums, 3)
    about = square - total**2 / np.maximum(number, 1.0)
    some: Flags = (number >= 2) & (about > ROUNDING * square)
    return some


def panel_column(prepared: Prepared, by: RaterScales, members: Integers) -> PanelSums:
    """Return the sum of z (or of raw composites) over some raters, response by response."""
    factor, defined = by.factor[:, members], by.defined[:, members]
    has_value = prepared.has_value[:, members].T
    total = factor @ prepared.values[:, members].T - (factor * by.mean[:, members]) @ has_value
    if defined.all():
        return PanelSums(total, has_value.sum(axis=0)[None, :])
    return PanelSums(total, defined @ has_value)


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
    values, has_value = prepared.values[:, raters], prepared.has_value[:, raters]
    wy = weights * y
    return Moments(
        n=weights @ has_value,
        x=weights @ values,
        y=wy @ has_value,
        xx=weights @ values**2,
        yy=(wy * y) @ has_value,
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


@dataclass(frozen=True, eq=False)
class ResponseBlock:
    """Some responses of a batch of resamples: their values, and how often each resample draws them.

    Attributes
    ----------
    prepared : of these responses; its `sums` are those of the whole study
    by : means and sds of the whole study, resample by resample
    weights : shape (B, rows)
    rows : which responses of the study these are
    """

    prepared: Prepared
    by: RaterScales
    weights: Array
    rows: slice
    columns: dict[bytes, PanelSums] = field(default_factory=dict)

    def column(self, members: Integers) -> PanelSums:
        """Return a panel's column over these responses; computed once and shared."""
        key = members.tobytes()
        if key not in self.columns:
            self.columns[key] = panel_column(self.prepared, self.by, members)
        return self.columns[key]


@dataclass(frozen=True, eq=False)
class ResampleBatch:
    """Some resamples of a study: counts of shape (B, clusters)."""

    prepared: Prepared
    counts: Counts

    @cached_property
    def by(self) -> RaterScales:
        """Return every rater's mean and sd in each resample."""
        return scale(self.prepared, self.counts)

    def parts(self) -> Iterator[ResponseBlock]:
        """Yield the responses, some at a time."""
        data, size = self.prepared, max(1, CELLS // len(self.counts))
        for start in range(0, len(data.values), size):
            rows = slice(start, start + size)
            yield ResponseBlock(data.of(rows), self.by, self.counts[:, data.clusters[rows]], rows)


class Summed(Protocol):
    """A statistic made of sums over responses."""

    def sums(self, part: ResponseBlock) -> Array:
        """Return the sums over some responses, of the same shape for every part."""

    def value(self, sums: Array, stack: ResampleBatch) -> Array:
        """Return the statistic, shape (B,) or (B, m), from the sums over all responses."""


def joint_statistic(prepared: Prepared, statistics: Sequence[Summed]) -> Statistic:
    """Return several statistics of one grid as one, their columns side by side."""

    def of(counts: Counts) -> Array:
        stack = ResampleBatch(prepared, counts)
        sums = [np.zeros(())] * len(statistics)
        for part in stack.parts():
            sums = [
                total + statistic.sums(part)
                for total, statistic in zip(sums, statistics, strict=True)
            ]
        parts = zip(sums, statistics, strict=True)
        return np.column_stack([statistic.value(total, stack) for total, statistic in parts])

    return of
