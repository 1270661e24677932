"""The jury and a clinician before the same judge: the mean of the other clinicians."""

from dataclasses import dataclass

import numpy as np

from calibration.agreement import Panel, column_icc, why_undefined
from calibration.bootstrap import Counts
from calibration.codes import NoteCode as Code
from calibration.grid import Grid
from calibration.resample import Moments, Prepared, icc_of_moments, moments_of_two, prepare
from calibration.scores import Array, Integers, Method
from calibration.stack import Part, Stack, together
from calibration.values import NAN, Note, note
from calibration.zscore import mean_of_given, z_within_raters


@dataclass(frozen=True, eq=False)
class Held:
    """One clinician left out, the rows judged by all three, and the two ICCs with the others."""

    clinician: str
    rows: Integers
    jury_icc: float
    clinician_icc: float
    reason: Note | None = None

    @property
    def difference(self) -> float:
        """Return by how much the jury's ICC exceeds the clinician's."""
        return self.jury_icc - self.clinician_icc


@dataclass(frozen=True, eq=False)
class LikeForLike:
    """Every clinician left out in turn; `undefined` those without a comparison."""

    defined: tuple[Held, ...]
    undefined: tuple[Held, ...]

    @property
    def difference(self) -> float:
        """Return the mean difference, NaN if no clinician could be compared."""
        gaps = [held.difference for held in self.defined]
        return float(np.mean(gaps)) if gaps else float("nan")

    @property
    def means(self) -> tuple[float, float]:
        """Return the mean ICC of the jury, and that of a clinician, with the others; else NaN."""
        if not self.defined:
            return NAN, NAN
        pairs = [(held.jury_icc, held.clinician_icc) for held in self.defined]
        jury, clinician = np.mean(pairs, axis=0).tolist()
        return jury, clinician

    @property
    def rows(self) -> Integers:
        """Return the rows of the grid that some comparison uses."""
        rows = [held.rows for held in self.defined]
        return np.unique(np.concatenate(rows)) if rows else np.array([], dtype=np.int64)


def like_for_like(grid: Grid, jury: Panel, method: Method) -> LikeForLike:
    """Leave each clinician out in turn: ICC(jury, others) minus ICC(clinician, others).

    "Others" is the mean of the remaining clinicians of a response. Both ICCs are over the
    same responses: those that the clinician, another clinician and the jury all scored.
    The difference is above 0 when the jury agrees with clinicians more than a clinician
    does; it is averaged over clinicians, each counting once.
    """
    values = z_within_raters(grid.composites) if method == "paper" else grid.composites
    panel = mean_of_given(values[:, grid.columns(jury.members)])
    scored = np.where(jury.present(grid), panel, np.nan)
    clinicians = grid.of_kind("clinician")
    held = [
        _hold_out(
            grid.raters[own], values[:, own], scored, _others(values, clinicians, own), method
        )
        for own in clinicians
    ]
    return LikeForLike(
        defined=tuple(one for one in held if not one.reason),
        undefined=tuple(one for one in held if one.reason),
    )


def _others(values: Array, clinicians: Integers, own: int) -> Array:
    return mean_of_given(values[:, clinicians[clinicians != own]])


def _hold_out(name: str, own: Array, jury: Array, others: Array, method: Method) -> Held:
    rows = np.flatnonzero(~(np.isnan(own) | np.isnan(jury) | np.isnan(others)))
    rest = others[rows]
    reason = note(Code.FLAT) if np.isnan(own).all() else None
    reason = reason or why_undefined(jury[rows], rest, names=("the jury", "the others"))
    reason = reason or why_undefined(own[rows], rest, names=(name, "the others"))
    if reason:
        return Held(name, rows, float("nan"), float("nan"), reason)
    return Held(
        name, rows, column_icc(jury[rows], rest, method), column_icc(own[rows], rest, method)
    )


@dataclass(frozen=True, eq=False)
class HeldReplicates:
    """The mean difference, resample by resample: counts (B, clusters) to shape (B,).

    A clinician whom a resample leaves undefined is left out of that resample's mean.
    """

    prepared: Prepared
    clinicians: Integers
    jury: Integers
    jury_present: Array
    held: tuple[tuple[int, Integers], ...]

    def __call__(self, counts: Counts) -> Array:
        """Return the mean over the clinicians; NaN where none is defined."""
        return together(self.prepared, [self])(counts)[:, 0]

    def sums(self, part: Part) -> Array:
        """Return both columns' sums with the others', (2, 6, B, clinicians)."""
        everyone, jury = part.column(self.clinicians), part.column(self.jury)
        weights = part.weights * self.jury_present[part.rows] * (jury.count > 0)
        count = np.broadcast_to(everyone.count, weights.shape)
        # Each clinician takes some of the responses: quick where a response is a row.
        laid = [everyone.total, count, jury.mean, weights]
        by_response = [np.ascontiguousarray(one.T) for one in laid]
        return np.stack([self._both(part, by_response, *held) for held in self.held], axis=-1)

    def _both(self, part: Part, laid: list[Array], own: int, rows: Integers) -> Array:
        """Return one clinician's sums from (n, B): sum, count, the jury's mean, weights."""
        start, end = np.searchsorted(rows, [part.rows.start, part.rows.stop])
        rows, by = rows[start:end] - part.rows.start, part.by
        total, count, jurors, weights = (one.take(rows, axis=0) for one in laid)
        z = by.factor[:, own] * (part.prepared.values[rows, own][:, None] - by.mean[:, own])
        defined = by.defined[:, own]
        count -= defined
        rest = (total - z) / np.maximum(count, 1.0)
        shared = weights * ((count > 0) * defined)
        return np.stack([one.stacked for one in moments_of_two(shared, (jurors, z), rest)])

    def value(self, sums: Array, stack: Stack) -> Array:
        """Return the mean difference from the sums over all responses."""
        again = stack.prepared.method == "published"
        jury, own = (icc_of_moments(Moments(*one), restandardise=again) for one in sums)
        return mean_of_given(jury - own)


def held_replicates(
    grid: Grid, jury: Panel, compared: LikeForLike, method: Method
) -> HeldReplicates:
    """Return the resampled mean difference over the clinicians that could be compared."""
    own = grid.columns(held.clinician for held in compared.defined)
    return HeldReplicates(
        prepared=prepare(grid, method),
        clinicians=grid.of_kind("clinician"),
        jury=grid.columns(jury.members),
        jury_present=jury.present(grid).astype(np.float64),
        held=tuple(zip(map(int, own), (held.rows for held in compared.defined), strict=True)),
    )
