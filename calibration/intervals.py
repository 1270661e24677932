"""Intervals of ICCs and of their differences: the delete-one-instance jackknife on Fisher's z, with t.

No seed and no number of resamples moves them. docs/evidence.md compares how often they cover with
the exact F interval and the bootstrap.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from calibration.icc import UNDEFINED, Interval
from calibration.scores import Array, Integers
from calibration.values import NAN

MOST_GROUPS = 200  # more instances are left out some at a time: the interval hardly changes
LARGEST_Z = math.atanh(1 - 1e-12)  # of a correlation, on Fisher's scale
ANGLES = 720  # of the ellipse: its ends are told to 1 in 50,000 of its width
LEAST_INSTANCES = 3  # with two left-out values a variance is all there is
SAME = 1e-9  # ICCs that are closer are the same ICC, computed in another order


def left_out(instances: int, own: Integers | None = None) -> Array:
    """Return the weights of all instances, then without each, or each group of them, in turn.

    Parameters
    ----------
    instances : how many there are
    own : shape (k,), optional
        The instances of what a figure rests on, which alone are left out in turn; else all.

    Returns
    -------
    shape (1 + m, instances), m at most 200
        1 for an instance that is there, 0 for one that is left out. Groups are of instances in
        random order, always the same, and as even as can be.
    """
    own = np.arange(instances) if own is None else np.unique(own)
    groups = min(len(own), MOST_GROUPS)
    mixed = own[np.random.default_rng(0).permutation(len(own))]
    weights = np.ones((1 + groups, instances))
    weights[1 + np.arange(len(own)) % max(groups, 1), mixed] = 0.0
    return weights


def jackknife_interval(
    values: Array, confidence: float = 0.95, *, mirrored: bool = False, single: bool = False
) -> Interval:
    """Return the interval of an ICC of two columns, ICC(C,2) or one stepped up from a single rater's.

    Parameters
    ----------
    values : shape (1 + m,)
        The ICC, then without each instance (or group of instances) in turn: a statistic of the
        weights that `left_out` returns.
    confidence : of the interval
    mirrored : whether an ICC below 0 is mirrored, as `weighted.pooled_icc` has it
    single : whether the ICC is of a single rater, r itself; one of -1, 1 or beyond has no interval

    Returns
    -------
    Interval
        z -+ t s, taken back, where z = atanh(r) and ICC = 2r / (1 + r), or 2r / (1 + |r|) where
        it is mirrored; s is the jackknife's standard error and t the quantile with Satterthwaite's
        degrees of freedom, from the fourth moment of the values left out, at least 2 and at most
        m - 1. NaN where any of `values` is, or m is below 2.

    References
    ----------
    Efron & Stein (1981), Annals of Statistics 9, 586. Satterthwaite (1946), Biometrics
    Bulletin 2, 110.
    """
    if len(values) < 3 or not np.isfinite(values).all() or (single and abs(values[0]) >= 1):
        return UNDEFINED
    z = _bounded_z(values, mirrored=mirrored, single=single)
    reach = float(special.stdtrit(_freedom(z), (1 + confidence) / 2)) * jackknife_error(z)
    ends = _bounded(z[0] + np.array([-reach, reach]))
    low, high = np.tanh(ends) if single else icc_of_fisher(ends, mirrored=mirrored)
    return Interval(float(low), float(high))


def jackknife_error(values: Array) -> float:
    """Return the jackknife's standard error of a statistic on its own scale.

    `values` as for `jackknife_interval`; NaN where any is not finite, or m is below 2.
    """
    m = len(values) - 1
    if m < 2 or not np.isfinite(values).all():
        return math.nan
    return math.sqrt((m - 1) * float(values[1:].var()))


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference with its interval and two-sided p, all by one method; NaN where undefined."""

    value: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN


def icc_difference(
    first: Array, second: Array, confidence: float = 0.95, *, mirrored: bool = False
) -> Difference:
    """Return the difference of two ICCs, the first minus the second, with interval and p.

    Parameters
    ----------
    first, second : shape (1 + m,)
        As for `jackknife_interval`, without the same instances in turn; each below 1.
    confidence : of the interval
    mirrored : as there

    Returns
    -------
    Difference
        p is at most 1 - confidence exactly where the interval excludes 0. All 0 with p 1 for
        scorers who say the same. Without interval and p with fewer than 3 instances, where either
        ICC is 1, or undefined without some instance, or no instance changes the difference.

    Notes
    -----
    The jackknife gives the covariance matrix of the two z. p is that of t = (z1 - z2) / SE with
    Satterthwaite's degrees of freedom. The interval is of the differences of the ICCs of all z1, z2
    on the ellipse within that quantile of t: it touches z1 = z2, where the difference is 0, exactly
    where p reaches 1 - confidence.

    References
    ----------
    Tukey (1958), Annals of Mathematical Statistics 29, 614. Leaving out whole clusters: Lipsitz,
    Dear & Zhao (1994), Biometrics 50, 842. The interval is a profile of the delta method's ellipse.
    """
    gap = float(first[0] - second[0])
    if not np.isfinite(gap):
        return Difference()
    if np.all(np.abs(first - second) < SAME):
        return Difference(0.0, 0.0, 0.0, 1.0)
    known = len(first) > LEAST_INSTANCES and np.isfinite([first, second]).all()
    if not known or max(first[0], second[0]) >= 1 - SAME or np.ptp(first - second) < SAME:
        return Difference(gap)
    one, other = _bounded_z(np.stack([first, second]), mirrored=mirrored)
    apart, both = one - other, one + other
    error, freedom = jackknife_error(apart), _freedom(apart)
    along = (len(apart) - 2) * float(np.cov(apart[1:], both[1:], ddof=0)[0, 1]) / error
    across = math.sqrt(max(jackknife_error(both) ** 2 - along**2, 0.0))
    reach = float(special.stdtrit(freedom, (1 + confidence) / 2))
    angle = np.linspace(0, 2 * np.pi, ANGLES + 1)  # 0 and half of it are the ends of z1 - z2
    between = apart[0] + reach * error * np.cos(angle)
    total = both[0] + reach * (along * np.cos(angle) + across * np.sin(angle))
    sides = (_bounded((total + sign * between) / 2) for sign in (1, -1))
    higher, lower = (icc_of_fisher(side, mirrored=mirrored) for side in sides)
    differences = higher - lower
    p = 2 * float(special.stdtr(freedom, -abs(apart[0]) / error))
    return Difference(gap, float(differences.min()), float(differences.max()), p)


def fisher_z(icc: Array, *, mirrored: bool = False) -> Array:
    """Return -log(1 - ICC) / 2, Fisher's z of the r behind an ICC(C,2); infinite for an ICC of 1.

    `mirrored` as for `jackknife_interval`: z of an ICC below 0 is minus that of its size.
    """
    z: Array = -0.5 * np.log1p(-np.abs(icc) if mirrored else -icc)
    return np.copysign(z, icc) if mirrored else z


def icc_of_fisher(z: Array | float, *, mirrored: bool = False) -> Array:
    """Return the ICC(C,2) of Fisher's z, 1 - exp(-2 z). NaN stays NaN."""
    values = np.asarray(z, dtype=np.float64)
    icc: Array = -np.expm1(-2 * (np.abs(values) if mirrored else values))
    return np.copysign(icc, values) if mirrored else icc


def _bounded_z(values: Array, *, mirrored: bool, single: bool = False) -> Array:
    """Return z of ICCs, or of `single` raters' r; those at or beyond 1 have the largest."""
    with np.errstate(divide="ignore"):
        if single:
            return _bounded(np.arctanh(np.clip(values, -1.0, 1.0)))
        least = -1.0 if mirrored else -np.inf
        return _bounded(fisher_z(np.clip(values, least, 1.0), mirrored=mirrored))


def _bounded(z: Array) -> Array:
    return np.clip(z, -LARGEST_Z, LARGEST_Z)


def _freedom(z: Array) -> float:
    """Return Satterthwaite's degrees of freedom of the jackknife's variance, from 2 to m - 1."""
    about, m = z[1:] - z[1:].mean(), len(z) - 1
    spread = float((about**2).mean())
    kurtosis = float((about**4).mean()) / spread**2 if spread > 0 else 1.0
    return float(np.clip(2 * m / (kurtosis - 1) if kurtosis > 1 else m - 1, 2, m - 1))
