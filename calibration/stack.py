"""A stack of resamples that several statistics share: what each needs is made once.

Responses are gone through in parts, so that what is held at a time fits a processor's cache
however many responses and resamples there are. A statistic adds up its sums part by part
and makes its values of them at the end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from calibration.bootstrap import CELLS, Counts, Statistic
from calibration.resample import Column, Prepared, Scale, panel_column, scale
from calibration.scores import Array, Integers

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
