"""Intervals of ICCs: the delete-one-instance jackknife on Fisher's z, with t quantiles of its own freedom.

No seed and no number of resamples moves them. docs/evidence.md compares how often they cover with
the exact F interval and the bootstrap.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from calibration.icc import UNDEFINED, Interval
from calibration.scores import Array

MOST_GROUPS = 200  # more instances are left out some at a time: the interval hardly changes
LARGEST = 1 - 1e-12  # of a correlation on Fisher's scale


def left_out(instances: int) -> Array:
    """Return the weights of all instances, then without each, or each group of them, in turn.

    Returns
    -------
    shape (1 + m, instances), m at most 200
        1 for an instance that is there, 0 for one that is left out. Groups are of instances in
        random order, always the same, and as even as can be.
    """
    groups = min(instances, MOST_GROUPS)
    mixed = np.random.default_rng(0).permutation(instances)
    weights = np.ones((1 + groups, instances))
    weights[1 + np.arange(instances) % groups, mixed] = 0.0
    return weights


@dataclass(frozen=True, slots=True)
class _Jackknife:
    """An ICC of two columns with the jackknife of its Fisher's z, z being of their correlation r."""

    icc: float
    z: float
    about: Array
    error: float
    t: float
    mirrored: bool

    @property
    def ends(self) -> Interval:
        """Return the two ends, back on the scale of the ICC."""
        r = np.tanh([self.z - self.t * self.error, self.z + self.t * self.error])
        r = np.clip(r, -LARGEST, LARGEST)
        low, high = 2 * r / (1 + (np.abs(r) if self.mirrored else r))
        return Interval(float(low), float(high))


def jackknife_interval(
    values: Array, confidence: float = 0.95, *, mirrored: bool = False
) -> Interval:
    """Return the interval of an ICC of two columns, ICC(C,2) or one stepped up from a single rater's.

    Parameters
    ----------
    values : shape (1 + m,)
        The ICC, then without each instance (or group of instances) in turn: a statistic of the
        weights that `left_out` returns.
    confidence : of the interval
    mirrored : whether an ICC below 0 is mirrored, as `like_for_like.pooled_icc` has it

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
    found = _jackknife(values, confidence, mirrored)
    return found.ends if found else UNDEFINED


def jackknife_error(values: Array) -> float:
    """Return the jackknife's standard error of a statistic on its own scale.

    `values` as for `jackknife_interval`; NaN where any is not finite, or m is below 2.
    """
    m = len(values) - 1
    if m < 2 or not np.isfinite(values).all():
        return math.nan
    return math.sqrt((m - 1) * float(values[1:].var()))


def difference_interval(
    first: Array, second: Array, confidence: float = 0.95, *, mirrored: bool = False
) -> Interval:
    """Return the interval of the difference of two ICCs, the first minus the second.

    Parameters
    ----------
    first, second : as for `jackknife_interval`, without the same instances in turn

    Returns
    -------
    Interval
        The two jackknife intervals put together, with the correlation of their z. NaN where
        either is undefined.

    References
    ----------
    Zou (2007), Psychological Methods 12, 399: square-and-add.
    """
    one, other = (_jackknife(values, confidence, mirrored) for values in (first, second))
    if one is None or other is None:
        return UNDEFINED
    size = math.sqrt(float(one.about @ one.about) * float(other.about @ other.about))
    correlation = float(one.about @ other.about) / size if size > 0 else 0.0
    a, b = one.ends, other.ends

    def half(x: float, y: float) -> float:
        return math.sqrt(max(x**2 + y**2 - 2 * correlation * x * y, 0.0))

    difference = one.icc - other.icc
    return Interval(
        difference - half(one.icc - a.low, b.high - other.icc),
        difference + half(a.high - one.icc, other.icc - b.low),
    )


def _jackknife(values: Array, confidence: float, mirrored: bool) -> _Jackknife | None:
    m = len(values) - 1
    if m < 2 or not np.isfinite(values).all():
        return None
    r = values / (2 - (np.abs(values) if mirrored else values))
    z = np.arctanh(np.clip(r, -LARGEST, LARGEST))
    about = z[1:] - z[1:].mean()
    spread = float((about**2).mean())
    kurtosis = float((about**4).mean()) / spread**2 if spread > 0 else 1.0
    freedom = float(np.clip(2 * m / (kurtosis - 1) if kurtosis > 1 else m - 1, 2, m - 1))
    t = float(special.stdtrit(freedom, (1 + confidence) / 2))
    return _Jackknife(float(values[0]), float(z[0]), about, jackknife_error(z), t, mirrored)
