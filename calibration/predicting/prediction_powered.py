"""Prediction-powered means: clinicians' ratings of a sample, corrected by the jury's of all responses."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from calibration.rating_matrix import FLAT
from calibration.scores import Array, Integers
from calibration.values import NAN

LEAST_INSTANCES = 2  # rated ones: of one instance there is no standard error
LEAST_WEIGHED = (
    5  # rated ones: of fewer, lambda fits itself to chance and the interval is too narrow
)


@dataclass(frozen=True, eq=False)
class Sample:
    """Composites of responses, in points, no NaN; an instance has one number in both parts.

    Attributes
    ----------
    clinicians, jury, instances : shape (n,), responses that clinicians rated
    unrated_jury, unrated_instances : shape (N,), all others
    """

    clinicians: Array
    jury: Array
    instances: Integers
    unrated_jury: Array
    unrated_instances: Integers

    @property
    def n_instances(self) -> int:
        """Return the number of instances with a rated response."""
        return len(np.unique(self.instances))

    @property
    def several(self) -> bool:
        """Tell whether any instance has several responses."""
        every = np.concatenate([self.instances, self.unrated_instances])
        return len(np.unique(every)) < len(every)


@dataclass(frozen=True)
class Mean:
    """A mean in points with its standard error and the t distribution's degrees of freedom."""

    mean: float = NAN
    error: float = NAN
    freedom: float = NAN

    def interval(self, level: float) -> tuple[float, float]:
        """Return mean -+ t * error; NaN where the error is undefined."""
        if not math.isfinite(self.error):
            return NAN, NAN
        reach = float(stats.t.ppf((1 + level) / 2, self.freedom)) * self.error
        return self.mean - reach, self.mean + reach


@dataclass(frozen=True)
class PredictionPowered:
    """Clinicians' mean alone, and corrected with the jury.

    Attributes
    ----------
    clinicians, corrected : Mean
    jury : float, mean of the jury on all n + N responses
    weight : float, lambda in [0, 1]: how far the jury is believed
    """

    clinicians: Mean
    corrected: Mean
    jury: float
    weight: float

    @property
    def gain(self) -> float:
        """Return by what factor more ratings would help as much: the ratio of variances."""
        return gain(self.clinicians, self.corrected)


def prediction_powered_mean(sample: Sample) -> PredictionPowered:
    """Return the clinicians' mean composite over all responses, from a sample and the jury.

    corrected = lambda mean(jury, N unrated) + mean(clinicians - lambda jury, n rated), with
    lambda = cov(clinicians, jury) / ((1 + n/N) var(jury)), cut to [0, 1]: cov over the n
    (divided by n), var over all n + N. Where instances have several responses, that lambda
    is not the best one; taken is the one that makes the sum of squares below least.

    With e = clinicians - lambda jury, a rated response has (e - mean e) / n, an unrated one
    lambda (jury - mean) / N; they are summed within each instance, the squares of the sums
    added: error^2. Rated parts are enlarged by sqrt(G / (G - 1)), G rated instances, unrated
    ones alike. With one response an instance it is var(e)/n + lambda^2 var(jury)/N. With
    several, each instance's sum is taken with the lambda of all others, which keeps few
    instances from flattering the error. t has G - 1 degrees of freedom.

    Returns
    -------
    PredictionPowered
        Without unrated responses, with a jury that does not vary, or with G < 5, lambda is 0
        and corrected is the clinicians' mean. All NaN if n = 0; errors NaN if G < 2. Right
        where the rated responses are a random sample of all, whatever the jury is worth. It
        is of the population these responses are drawn from: for exactly these, where most
        are rated, the interval is wider than it need be.

    References
    ----------
    Angelopoulos, Duchi & Zrnic (2023), PPI++, sections 2 and 6; sums within instances:
    Liang & Zeger (1986).
    """
    every = np.concatenate([sample.jury, sample.unrated_jury])
    jury = float(every.mean()) if len(every) else NAN
    if not len(sample.clinicians):
        return PredictionPowered(Mean(), Mean(), jury, NAN)
    weight = _weight(sample, every)
    return PredictionPowered(_mean(sample, 0.0), _mean(sample, weight), jury, weight)


def gain(clinicians: Mean, corrected: Mean) -> float:
    """Return error^2 of the clinicians alone / error^2 of the corrected mean; NaN of 0 / 0."""
    if not corrected.error > 0:
        return NAN
    return (clinicians.error / corrected.error) ** 2


def stratified(means: Sequence[Mean], sizes: Sequence[int]) -> Mean:
    """Return the mean over strata of given sizes, each sampled by itself.

    sum w mean, error^2 = sum w^2 error^2 with w = size / all sizes. Degrees of freedom after
    Satterthwaite (1946). A stratum with an undefined mean or error makes the whole so.
    """
    shares = np.array(sizes, dtype=np.float64) / sum(sizes)
    parts = (shares * [one.error for one in means]) ** 2
    mean, squared = float(shares @ [one.mean for one in means]), float(parts.sum())
    below = float((parts**2 / [one.freedom for one in means]).sum())
    freedom = squared**2 / below if below else float(sum(one.freedom for one in means))
    return Mean(mean, math.sqrt(squared), freedom)


def standardised_difference(rated: Array, unrated: Array) -> float:
    """Return (mean of rated - mean of unrated) / sqrt of the mean of their variances.

    NaN where either has fewer than two values or none varies. Below 0.25 in size, samples
    are commonly taken as alike (Rubin 2001).
    """
    if min(len(rated), len(unrated)) < 2:
        return NAN
    spread = math.sqrt((rated.var(ddof=1) + unrated.var(ddof=1)) / 2)
    return float((rated.mean() - unrated.mean()) / spread) if spread > FLAT else NAN


def _weight(sample: Sample, every: Array) -> float:
    n, unrated = len(sample.clinicians), len(sample.unrated_jury)
    if not unrated or sample.n_instances < LEAST_WEIGHED or np.ptp(every) <= FLAT:
        return 0.0
    if sample.several:
        clinical, jury = _of_each(sample)
        return float(_cut(np.array(clinical @ jury), np.array(jury @ jury)))
    covariance = np.cov(sample.clinicians, sample.jury, ddof=0)[0, 1]
    return float(_cut(covariance, np.array((1 + n / unrated) * every.var(ddof=1))))


def _cut(above: Array, below: Array) -> Array:
    """Return a ratio cut to [0, 1]; 0 where there is nothing below."""
    ratio = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    cut: Array = np.clip(ratio, 0.0, 1.0)
    return cut


def _mean(sample: Sample, weight: float) -> Mean:
    mean = float((sample.clinicians - weight * sample.jury).mean())
    if weight:
        mean += weight * float(sample.unrated_jury.mean())
    instances = sample.n_instances
    if instances < LEAST_INSTANCES:
        return Mean(mean)
    parts = _held_out(sample) if weight and sample.several else _by_instance(sample, weight)
    return Mean(mean, math.sqrt(float(parts @ parts)), instances - 1)


def _held_out(sample: Sample) -> Array:
    """Return each instance's part in the error, with the lambda of all other instances."""
    clinical, jury = _of_each(sample)
    above, below = clinical * jury, jury * jury
    parts: Array = clinical - _cut(above.sum() - above, below.sum() - below) * jury
    return parts


def _of_each(sample: Sample) -> tuple[Array, Array]:
    """Return what clinicians, and jury, have of each instance's part: clinical - weight jury."""
    clinical = _by_instance(sample, 0.0)
    return clinical, clinical - _by_instance(sample, 1.0)


def _by_instance(sample: Sample, weight: float) -> Array:
    """Return each instance's part in the corrected mean's error, linear in the weight."""
    rated = _parts(sample.clinicians - weight * sample.jury, sample.instances)
    unrated = weight * _parts(sample.unrated_jury, sample.unrated_instances)
    every = np.concatenate([sample.instances, sample.unrated_instances])
    _, place = np.unique(every, return_inverse=True)
    return np.bincount(place, weights=np.concatenate([rated, unrated])).astype(np.float64)


def _parts(values: Array, instances: Integers) -> Array:
    """Return each value's part in the error of their mean: enlarged for few instances."""
    if not len(values):
        return values
    groups = len(np.unique(instances))
    enlarged = math.sqrt(groups / (groups - 1)) if groups > 1 else 1.0
    parts: Array = enlarged * (values - values.mean()) / len(values)
    return parts
