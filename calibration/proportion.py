"""Intervals of proportions and of AUC that keep their width at 0 and 1, over instances."""

import math

import numpy as np
from scipy import special

from calibration.f_interval import UNDEFINED, Interval
from calibration.scores import Array, Integers

LEAST_INSTANCES = 2


def clustered_proportion(
    hits: Array, trials: Array, clusters: Integers, confidence: float = 0.95
) -> Interval:
    """Return the interval of a share of readings whose instances are what was sampled.

    Wilson's interval with the effective number of trials p (1 - p) / v in place of their number,
    v being the variance of the ratio of sums between instances; never more than there are
    trials. At p = 0 or 1 instances cannot be told to differ, and their number takes its place:
    none of 5 missed is then 0 to 0.43, not 0 to 0.

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
    own, done = (_summed(one, clusters) for one in (trials, hits))
    share, instances = float(hits.sum()) / total, int((own > 0).sum())
    return wilson(share, effective(own, done, share, instances), confidence)


def _summed(values: Array, clusters: Integers) -> Array:
    sums: Array = np.bincount(clusters, weights=values).astype(np.float64)
    return sums


def effective(trials: Array, hits: Array, share: float, instances: int) -> float:
    """Return how many independent trials a share of clustered ones is worth, 1 or more."""
    total = float(trials.sum())
    if share in (0.0, 1.0) or instances < LEAST_INSTANCES or instances == total:
        return float(instances)
    off = hits - share * trials
    variance = instances / (instances - 1) * float(off @ off) / total**2
    if share * (1 - share) >= variance * total:  # instances that are all alike count no more
        return total
    return max(1.0, share * (1 - share) / variance)


def wilson(share: float, trials: float, confidence: float = 0.95) -> Interval:
    """Return Wilson's interval of a share of so many independent trials, not always whole.

    Examples
    --------
    >>> ends = wilson(0.0, 5)
    >>> round(ends.low, 3), round(ends.high, 3)
    (0.0, 0.434)
    """
    z = float(special.ndtri(0.5 + confidence / 2))
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    spread = share * (1 - share) / trials + z * z / (4 * trials * trials)
    half = z * math.sqrt(spread) / (1 + z * z / trials)
    return Interval(max(0.0, middle - half), min(1.0, middle + half))
