"""Means over responses whose instances are what was sampled, and differences of two."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from calibration.f_interval import UNDEFINED, Interval
from calibration.jackknife_icc import Difference
from calibration.scores import Array, Integers
from calibration.values import NAN


@dataclass(frozen=True, eq=False)
class ClusteredMean:
    """A mean and what each instance adds to its error.

    Attributes
    ----------
    value : NaN without a response
    moves : shape (clusters,), whose sum of squares is the variance of the mean
    instances : how many have a response
    """

    value: float
    moves: Array
    instances: int

    @property
    def error(self) -> float:
        """Return the standard error, NaN with fewer than two instances."""
        return math.sqrt(float(self.moves @ self.moves)) if self.instances > 1 else NAN

    def interval(self, confidence: float = 0.95) -> Interval:
        """Return the interval by t with instances - 1 degrees of freedom."""
        if not self.error > 0:
            return UNDEFINED
        half = float(special.stdtrit(self.instances - 1, 0.5 + confidence / 2)) * self.error
        return Interval(self.value - half, self.value + half)


def clustered_mean(values: Array, clusters: Integers, n_clusters: int) -> ClusteredMean:
    """Return the mean of values, NaN left out, with its error between instances.

    Parameters
    ----------
    values, clusters : shape (n,), the instances numbered from 0
    n_clusters : how many there are, with or without a value

    References
    ----------
    Cochran (1977), Sampling Techniques, chapter 9A: the mean of clusters of unequal size.
    """
    given = ~np.isnan(values)
    if not given.any():
        return ClusteredMean(NAN, np.zeros(n_clusters), 0)
    own, where = values[given], clusters[given]
    mean, instances = float(own.mean()), len(np.unique(where))
    off = np.bincount(where, weights=own - mean, minlength=n_clusters) / len(own)
    scale = math.sqrt(instances / (instances - 1)) if instances > 1 else 0.0
    return ClusteredMean(mean, scale * off, instances)


def mean_difference(first: ClusteredMean, second: ClusteredMean) -> Difference:
    """Return the difference of two means that may share instances, by Welch's t.

    References
    ----------
    Welch (1947), Biometrika 34, 28, for the degrees of freedom.
    """
    gap, moves = first.value - second.value, first.moves - second.moves
    parts = [(one.error**2, one.instances - 1) for one in (first, second)]
    if not all(error > 0 for error, _ in parts):
        return Difference(gap)
    variance = float(moves @ moves)
    freedom = sum(error for error, _ in parts) ** 2 / sum(e**2 / f for e, f in parts)
    if not variance > 0:
        return Difference(gap)
    t = gap / math.sqrt(variance)
    half = float(special.stdtrit(freedom, 0.975)) * math.sqrt(variance)
    p = 2 * float(special.stdtr(freedom, -abs(t)))
    return Difference(gap, gap - half, gap + half, p)
