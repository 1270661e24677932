"""Intervals of ICCs and of differences of two, from leaving out one instance at a time.

On Fisher's z of the correlation within responses the jackknife's error hardly depends on the ICC,
and an interval goes over to the ICC without leaving its range.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from calibration.agreement import Panel, column_icc, columns
from calibration.f_interval import UNDEFINED, Interval
from calibration.grid import Grid
from calibration.icc_difference import fisher_z
from calibration.left_out import deletions, iccs_without
from calibration.scores import Array, Method
from calibration.values import NAN

HALVINGS = 50  # of the range of levels in which p is sought


@dataclass(frozen=True, eq=False)
class JackknifedIcc:
    """A panel's ICC(C,2) with the clinicians on a grid, and what each instance does to it.

    Attributes
    ----------
    icc : as in the agreement table; NaN where undefined
    moves : shape (clusters,)
        What leaving each instance out does to Fisher's z, scaled so that the sum of squares is its
        variance; 0 for instances without a response here.
    instances : how many have one
    """

    icc: float
    moves: Array
    instances: int

    @property
    def error(self) -> float:
        """Return the standard error of Fisher's z, NaN where undefined."""
        return math.sqrt(float(self.moves @ self.moves)) if self.instances > 1 else NAN

    def interval(self, confidence: float = 0.95) -> Interval:
        """Return the interval of the ICC by t on Fisher's z with instances - 1 degrees of freedom."""
        if not (np.isfinite(self.icc) and self.icc < 1 and self.error > 0):
            return UNDEFINED
        middle = float(fisher_z(np.array(self.icc)))
        half = float(special.stdtrit(self.instances - 1, 0.5 + confidence / 2)) * self.error
        low, high = (1 - math.exp(-2 * end) for end in (middle - half, middle + half))
        return Interval(low, high)


def jackknifed_icc(grid: Grid, panel: Panel, method: Method) -> JackknifedIcc:
    """Return a panel's ICC with the clinicians of a grid, and what each instance does to it.

    Parameters
    ----------
    grid : Grid
        Of at least one response; what is NaN in it is not there.
    panel : jurors
    method : "paper" or "published"; every z is taken anew without the instance

    References
    ----------
    Efron & Tibshirani (1993), An Introduction to the Bootstrap, chapter 11.
    """
    pair = columns(grid, panel, method)
    both, n_clusters = pair.both, grid.n_clusters
    icc = column_icc(pair.clinicians[both], pair.scorer[both], method)
    own = np.unique(grid.clusters[both])
    moves = np.zeros(n_clusters)
    if np.isfinite(icc) and len(own) > 1:
        without = iccs_without(deletions(grid, method, grid.clusters), panel)[own]
        with np.errstate(invalid="ignore", divide="ignore"):
            z = fisher_z(without)
        moves[own] = math.sqrt((len(own) - 1) / len(own)) * (z - z.mean())
    return JackknifedIcc(icc, moves, len(own))


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference with its 95 % interval and two-sided p, all by one method; NaN where undefined."""

    value: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN


def jackknifed_difference(first: JackknifedIcc, second: JackknifedIcc) -> Difference:
    """Return the difference of two ICCs, first minus second, that may share instances.

    The interval is put together from those of the two ICCs, which need not be symmetric, and
    from the correlation of what the instances do to them. p is the level at which it reaches 0.

    References
    ----------
    Zou (2007), Psychological Methods 12, 399: intervals of a difference of correlations.
    """
    gap = first.icc - second.icc
    ends = _ends(first, second, 0.95)
    if not np.isfinite(ends.low):
        return Difference(gap)
    low, high = 0.0, 1.0  # levels of confidence: at the first 0 is outside, at the second within
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        tried = _ends(first, second, middle)
        if tried.low <= 0 <= tried.high:
            high = middle
        else:
            low = middle
    return Difference(gap, ends.low, ends.high, 1 - high)


def _ends(first: JackknifedIcc, second: JackknifedIcc, confidence: float) -> Interval:
    one, other = first.interval(confidence), second.interval(confidence)
    if not (np.isfinite(one.low) and np.isfinite(other.low)):
        return UNDEFINED
    gap = first.icc - second.icc
    shared = float(first.moves @ second.moves) / (first.error * second.error)
    below = _combined(first.icc - one.low, other.high - second.icc, shared)
    above = _combined(one.high - first.icc, second.icc - other.low, shared)
    return Interval(gap - below, gap + above)


def _combined(one: float, other: float, correlation: float) -> float:
    return math.sqrt(max(0.0, one * one + other * other - 2 * correlation * one * other))
