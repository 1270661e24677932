"""Intervals of proportions, AUCs and means over responses that are clustered in instances."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from calibration.icc import UNDEFINED, Interval
from calibration.intervals import Difference
from calibration.scores import Array, Integers
from calibration.values import NAN


def clustered_proportion(
    hits: Array, trials: Array, clusters: Integers, confidence: float = 0.95
) -> Interval:
    """Return the interval of a proportion of readings when instances, not readings, were sampled.

    Wilson's interval with the effective number of trials p (1 - p) / v in place of their number,
    v being the variance of the ratio of sums between instances; never more than there are
    trials. At p = 0 or 1 instances cannot be told to differ, and their number takes its place:
    none of 5 missed is then 0 to 0.43, not 0 to 0. So it does where each has one trial.

    Parameters
    ----------
    hits, trials : shape (m,)
        1 or 0 each; a reading that is no trial is no hit.
    clusters : shape (m,)
        The instance of each reading, numbered from 0.
    confidence : of the interval, between 0 and 1

    Returns
    -------
    Interval
        Within 0 to 1; NaN without a trial.

    References
    ----------
    Wilson (1927), JASA 22, 209; Korn & Graubard (1998), Survey Methodology 24, 193, for the
    effective number in an exact interval.
    """
    total = float(trials.sum())
    if not total:
        return UNDEFINED
    return wilson(float(hits.sum()) / total, effective_trials(hits, trials, clusters), confidence)


def effective_trials(hits: Array, trials: Array, clusters: Integers) -> float:
    """Return how many independent trials tell as much, see `clustered_proportion`."""
    total = float(trials.sum())
    own, done = (np.bincount(clusters, weights=counts) for counts in (trials, hits))
    share, instances = float(hits.sum()) / total, int((own > 0).sum())
    off = done - share * own
    variance = instances / max(instances - 1, 1) * float(off @ off) / total**2
    if share in (0.0, 1.0) or instances < 2 or instances == total:
        return float(instances)
    if share * (1 - share) >= variance * total:  # instances that are all alike count no more
        return total
    return max(1.0, share * (1 - share) / variance)


def wilson(share: float, trials: float, confidence: float = 0.95) -> Interval:
    """Return Wilson's interval of a proportion of independent trials, whose number may be fractional."""
    z = float(special.ndtri(0.5 + confidence / 2))
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    spread = share * (1 - share) / trials + z * z / (4 * trials * trials)
    half = z * math.sqrt(spread) / (1 + z * z / trials)
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


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
    is_known = ~np.isnan(values)
    if not is_known.any():
        return ClusteredMean(NAN, np.zeros(n_clusters), 0)
    own, where = values[is_known], clusters[is_known]
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
    parts = [(mean.error**2, mean.instances - 1) for mean in (first, second)]
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
