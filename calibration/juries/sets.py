"""The juries that some jurors can make up, and the responses and columns they are judged by."""

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Protocol

import numpy as np

from calibration.agreement import columns, one
from calibration.bootstrap import Counts
from calibration.grid import Grid
from calibration.scores import Array, Flags, Integers, Method
from calibration.zscore import z_within_raters

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
