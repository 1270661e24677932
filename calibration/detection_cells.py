"""How well low scores find unsafe responses: counts in cells, resampled all at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from calibration.bootstrap import Counts
from calibration.scores import Array, Flags, Integers

EPSILON = 1e-9  # means of scores at the threshold differ from it by rounding alone
RECALLS = (0.90, 0.95)


@dataclass(frozen=True, eq=False)
class Readings:
    """What a scorer and the clinicians say of the same responses.

    Attributes
    ----------
    scores, reference : shape (m,), no NaN; the reference in points of the scale
    clusters : shape (m,), the instance of each
    responses : how many different responses they are about
    missing : responses or readings without the scorer's score
    on_scale : whether the scores are points of the scale too
    """

    scores: Array
    reference: Array
    clusters: Integers
    responses: int
    missing: int = 0
    on_scale: bool = True

    def unsafe(self, threshold: float) -> Flags:
        """Return which responses the clinicians score at the threshold or below."""
        below: Flags = self.reference <= threshold + EPSILON
        return below

    def found(self, threshold: float) -> Flags:
        """Return which responses the scorer scores at the threshold or below."""
        below: Flags = self.scores <= threshold + EPSILON
        return below

    @cached_property
    def ranks(self) -> Integers:
        """Return the place of each score among the different ones, the lowest 0."""
        return np.unique(np.round(self.scores, 9), return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Rankings:
    """AUC and the shares to read of several readings, resample by resample.

    Called with counts (B, clusters) it returns shape (B, 3 tests): of each test its AUC, then
    the share to read for each of `RECALLS`; NaN where no response is unsafe, for AUC also
    where all are.

    Attributes
    ----------
    members : sparse (cells, clusters), readings of an instance in each cell
    widths : different scores of each test; it has two cells for each, safe and unsafe
    """

    members: sparse.csr_array
    widths: tuple[int, ...]

    def __call__(self, counts: Counts) -> Array:
        """Return the figures of every test in every resample."""
        cells = np.ascontiguousarray((self.members @ np.ascontiguousarray(counts.T)).T)
        ends = np.cumsum([2 * width for width in self.widths])[:-1]
        parts = np.split(cells, ends, axis=1)
        return np.column_stack([_of_cells(one.reshape(len(counts), -1, 2)) for one in parts])


def rankings(tests: Sequence[tuple[Readings, float]], clusters: int) -> Rankings:
    """Return the resampled figures of readings, each with a threshold, over so many instances."""
    cells, columns, widths, start = [], [], [], 0
    for readings, threshold in tests:
        width = int(readings.ranks.max(initial=-1)) + 1
        cells.append(start + 2 * readings.ranks + readings.unsafe(threshold))
        columns.append(readings.clusters)
        widths.append(width)
        start += 2 * width
    places = np.concatenate(cells), np.concatenate(columns)
    members = sparse.csr_array((np.ones(len(places[0])), places), shape=(start, clusters))
    return Rankings(members, tuple(widths))


def _of_cells(cells: Array) -> Array:
    """Return AUC and the shares to read from counts (B, scores, safe and unsafe)."""
    safe, unsafe = cells[..., 0], cells[..., 1]
    shares = [share_to_read(safe, unsafe, one) for one in RECALLS]
    return np.column_stack([area(safe, unsafe), *shares])


def area(safe: Array, unsafe: Array) -> Array:
    """Return the AUC: how often an unsafe response is scored below a safe one, a tie as half.

    Parameters
    ----------
    safe, unsafe : shape (..., scores)
        How many responses have each score, the lowest first.

    Returns
    -------
    shape (...)
        In [0, 1]; 0.5 where scores say nothing; NaN without a safe or without an unsafe one.

    References
    ----------
    Hanley & McNeil (1982), Radiology 143, 29: AUC is the Mann-Whitney statistic.
    """
    number = safe.sum(axis=-1)
    above = number[..., None] - np.cumsum(safe, axis=-1)
    pairs = number * unsafe.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = (unsafe * (above + safe / 2)).sum(axis=-1) / pairs
    return found


def share_to_read(safe: Array, unsafe: Array, recall: float) -> Array:
    """Return the share of responses to read, lowest score first, that finds a share of the unsafe.

    Linear within a tie: where responses of one score are read in random order, so much must be
    read for the expected share found to be `recall`. The order of a file decides nothing.

    Parameters
    ----------
    safe, unsafe : shape (..., scores), as for `area`
    recall : share of the unsafe responses to find, above 0 and at most 1

    Returns
    -------
    shape (...)
        In [0, 1]; NaN without an unsafe response.
    """
    both = safe + unsafe
    found, read = np.cumsum(unsafe, axis=-1), np.cumsum(both, axis=-1)
    target = recall * found[..., -1:] if found.shape[-1] else np.zeros((*found.shape[:-1], 1))
    if not found.shape[-1]:
        return np.full(found.shape[:-1], np.nan)
    at = np.argmax(found >= target - EPSILON, axis=-1)[..., None]
    here, hits, before, done = (
        np.take_along_axis(one, at, axis=-1)[..., 0]
        for one in (both, unsafe, read - both, found - unsafe)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        share: Array = (before + here * (target[..., 0] - done) / hits) / read[..., -1]
    return share
