"""Clinicians against each other: the mean ICC over pairs that share responses."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from calibration.agreement import column_icc
from calibration.notes import Figures, Note, quoted, undefined
from calibration.rating_matrix import RatingMatrix, without_variance, z_within_raters
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN

FRAGILE = 10  # pairs sharing fewer responses have an ICC that may be anything below 1


@dataclass(frozen=True)
class ClinicianPair:
    """Two clinicians, the responses they share, and their ICC; NaN with a reason why."""

    first: str
    second: str
    shared: Integers
    icc: float
    reason: Note | None = None

    @property
    def fragile(self) -> bool:
        """Return whether the pair shares fewer than 10 responses."""
        return len(self.shared) < FRAGILE


@dataclass(frozen=True, eq=False)
class ClinicianPairs:
    """Every pair of clinicians that shares enough responses.

    Attributes
    ----------
    defined, undefined : tuples of ClinicianPair
        Undefined are those with a rater without variance; they count nowhere.
    too_few : int
        Pairs that share something, but fewer responses than asked for.
    """

    defined: tuple[ClinicianPair, ...]
    undefined: tuple[ClinicianPair, ...]
    too_few: int

    @property
    def icc(self) -> float:
        """Return the mean ICC of the defined pairs, NaN if there is none."""
        iccs = [pair.icc for pair in self.defined]
        return float(np.mean(iccs)) if iccs else float("nan")

    @property
    def shared(self) -> Integers:
        """Return the rows of the grid that some defined pair shares."""
        rows = [pair.shared for pair in self.defined]
        return np.unique(np.concatenate(rows)) if rows else np.array([], dtype=np.int64)

    @property
    def clinicians(self) -> tuple[str, ...]:
        """Return the clinicians in the defined pairs."""
        return tuple(sorted({name for pair in self.defined for name in (pair.first, pair.second)}))


def clinician_pairs(grid: RatingMatrix, min_shared: int = 2) -> ClinicianPairs:
    """Return the ICC(3,2) of every pair of clinicians.

    Each clinician is z-scored over all of his or her composites in the grid, not only the
    shared ones; the ICC is of the shared responses. This holds for both methods, "paper"
    and "published": they differ in how a jury or metric is compared, not here.

    Parameters
    ----------
    grid : RatingMatrix
    min_shared : int
        Responses a pair must share, at least 2. At 2 an ICC says next to nothing, and
        has no lower bound: look at the number of fragile pairs.
    """
    own = grid.of_kind("clinician")
    z = z_within_raters(grid.composites)
    has_composite = ~np.isnan(grid.composites)
    flat = without_variance(grid.composites)
    pairs, too_few = [], 0
    for a, b in combinations(own, 2):
        shared = np.flatnonzero(has_composite[:, a] & has_composite[:, b])
        if len(shared) >= max(min_shared, 2):
            pairs.append(_pair(grid, z, flat, (a, b), shared))
        else:
            too_few += len(shared) > 0
    return ClinicianPairs(
        defined=tuple(pair for pair in pairs if not pair.reason),
        undefined=tuple(pair for pair in pairs if pair.reason),
        too_few=too_few,
    )


def _pair(
    grid: RatingMatrix, z: Array, flat: Flags, columns: tuple[int, int], shared: Integers
) -> ClinicianPair:
    first, second = (grid.raters[column] for column in columns)
    constant = [grid.raters[column] for column in columns if flat[column]]
    if constant:
        return ClinicianPair(
            first, second, shared, NAN, undefined("flat_raters", _flat_raters, raters=constant)
        )
    x, y = (z[shared, column] for column in columns)
    icc = column_icc(x, y, "paper", least=2)
    reason = (
        None
        if np.isfinite(icc)
        else undefined("flat_shared", "no variance on the shared responses")
    )
    return ClinicianPair(first, second, shared, icc, reason)


def _flat_raters(figures: Figures) -> str:
    return f"{' and '.join(map(quoted, figures['raters']))} without variance"
