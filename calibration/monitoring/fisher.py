"""Fisher's z of an ICC(C,2), and a standard error of it that knows of instances."""

import math

import numpy as np
from scipy import special

from calibration.bootstrap import CELLS, LEAST_CLUSTERS, Statistic
from calibration.scores import Array, Integers

NAN = float("nan")


def fisher_z(icc: Array | float) -> Array:
    """Return Fisher's z of ICC(C,2): atanh of the single-rater ICC(C,1) = ICC / (2 - ICC).

    Parameters
    ----------
    icc : any shape
        ICC(C,2), at most 1 and without lower bound; NaN where undefined.

    Returns
    -------
    same shape
        NaN where the ICC is undefined, 1, or -inf: there z is not finite.

    Notes
    -----
    ICC(C,1) is 2 cov / (var x + var y), which lies between -1 and 1 however far below 0
    ICC(C,2) falls. For independent normal responses the spread of z hardly depends on the
    ICC, which is why periods are compared on it.

    References
    ----------
    Fisher (1925), Statistical Methods for Research Workers, section 39.
    """
    icc = np.asarray(icc, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.arctanh(icc / (2.0 - icc))
    return np.where(np.isfinite(z), z, np.nan)


def icc_of_fisher(z: Array | float) -> Array:
    """Return the ICC(C,2) of Fisher's z: r = tanh z, then 2r / (1 + r). NaN stays NaN."""
    r = np.tanh(np.asarray(z, dtype=np.float64))
    return np.asarray(2.0 * r / (1.0 + r))


def independent_se(n: int) -> float:
    """Return the standard error of Fisher's z for n independent normal responses.

    z is half the logarithm of F = MS_rows / MS_error plus a constant, and F has n - 1 and n - 1
    degrees of freedom, so var z = trigamma((n - 1) / 2) / 2: about 1 / (n - 2). NaN if n < 3.
    """
    return math.sqrt(float(special.polygamma(1, (n - 1) / 2)) / 2) if n > 2 else NAN


def error_of_interval(low: float | None, high: float | None, n: int) -> float:
    """Return the standard error of Fisher's z that a 95 % interval of an ICC(C,2) stands for.

    Half the interval's width on z by 1.96, and never less than that of n independent responses,
    which it is too where the interval is undefined.
    """
    ends = fisher_z(np.array([low, high], dtype=np.float64))
    half = float(ends[1] - ends[0]) / 2 / special.ndtri(0.975)
    return float(np.fmax(half, independent_se(n)))


def jackknife_se(statistic: Statistic, clusters: int) -> float:
    """Return the standard error of Fisher's z by leaving each instance out in turn.

    Parameters
    ----------
    statistic : from counts (B, clusters) to ICC(C,2), shape (B,)
    clusters : int
        Instances, each left out with all its responses.

    Returns
    -------
    float
        sqrt((m - 1) / m * sum of squared distances to their mean) over the m values without
        one instance. No chance enters. NaN with fewer than 2 instances, or where the ICC
        without one of them has no z.

    References
    ----------
    Efron & Tibshirani (1993), An Introduction to the Bootstrap, section 11.2.
    """
    if clusters < LEAST_CLUSTERS:
        return NAN
    at_once = max(1, CELLS // clusters)
    blocks = [np.arange(at, min(at + at_once, clusters)) for at in range(0, clusters, at_once)]
    left = np.concatenate([fisher_z(statistic(_without(own, clusters))) for own in blocks])
    away = left - left.mean()
    return float(np.sqrt((clusters - 1) / clusters * np.square(away).sum()))


def _without(own: Integers, clusters: int) -> Array:
    """Return counts, a row for each of some clusters, with that one left out."""
    counts = np.ones((len(own), clusters))
    counts[np.arange(len(own)), own] = 0.0
    return counts
