"""Prediction-powered means: clinicians' ratings of a sample, and the jury's of all responses."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from calibration.rating_matrix import FLAT
from calibration.scores import Array, Integers
from calibration.values import NAN

LEAST_INSTANCES = 2  # rated ones: of one instance there is no standard error
LEAST_WEIGHED = 5  # rated ones: with fewer, lambda overfits and the interval is too narrow
UNLIKE = 0.25  # standard deviations; samples that differ by less are taken as alike (Rubin 2001)


@dataclass(frozen=True, eq=False)
class RatedSample:
    """Composites of responses that clinicians rated, and of all others, in points without NaN.

    Attributes
    ----------
    clinicians, jury, instances : shape (n,), responses that clinicians rated
    unrated_jury, unrated_instances : shape (N,), all others; instances are numbered as above
    """

    clinicians: Array
    jury: Array
    instances: Integers
    unrated_jury: Array
    unrated_instances: Integers

    @property
    def n_instances(self) -> int:
        """The number of instances with a rated response."""
        return len(np.unique(self.instances))

    @property
    def has_repeated_instances(self) -> bool:
        """Whether any instance has several responses."""
        instances = np.concatenate([self.instances, self.unrated_instances])
        return len(np.unique(instances)) < len(instances)


@dataclass(frozen=True)
class MeanEstimate:
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

    `jury` is its mean on all n + N responses, `weight` lambda in [0, 1]: the weight of the jury.
    """

    clinicians: MeanEstimate
    corrected: MeanEstimate
    jury: float
    weight: float

    @property
    def gain(self) -> float:
        """Return the ratio of variances: as many times more ratings would help as much; NaN of 0 / 0."""
        if not self.corrected.error > 0:
            return NAN
        return (self.clinicians.error / self.corrected.error) ** 2


def prediction_powered_mean(sample: RatedSample) -> PredictionPowered:
    """Return the clinicians' mean composite over all responses, from a sample and the jury.

    corrected = lambda mean(jury, N unrated) + mean(clinicians - lambda jury, n rated), with
    lambda = cov(clinicians, jury) / ((1 + n/N) var(jury)), cut to [0, 1]: cov over the n
    (divided by n), var over all n + N. Where instances have several responses, lambda is instead
    the one with the smallest sum of squares below.

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
        and corrected is the clinicians' mean. All NaN if n = 0; errors NaN if G < 2. The
        interval is right where the rated responses are a random sample of all, however well
        the jury agrees. It is for the population these responses are drawn from; for exactly
        these responses it is wider than necessary where most are rated.

    References
    ----------
    Angelopoulos, Duchi & Zrnic (2023), PPI++, sections 2 and 6; sums within instances:
    Liang & Zeger (1986).
    """
    jury_scores = np.concatenate([sample.jury, sample.unrated_jury])
    jury = float(jury_scores.mean()) if len(jury_scores) else NAN
    if not len(sample.clinicians):
        return PredictionPowered(MeanEstimate(), MeanEstimate(), jury, NAN)
    weight = _weight(sample, jury_scores)
    return PredictionPowered(_mean(sample, 0.0), _mean(sample, weight), jury, weight)


def stratified(means: Sequence[MeanEstimate], sizes: Sequence[int]) -> MeanEstimate:
    """Return the mean over strata of given sizes, each sampled by itself.

    sum w mean, error^2 = sum w^2 error^2 with w = size / sum of sizes. Degrees of freedom after
    Satterthwaite (1946). NaN where a stratum's mean or error is.
    """
    shares = np.array(sizes, dtype=np.float64) / sum(sizes)
    parts = (shares * [stratum.error for stratum in means]) ** 2
    mean, squared = float(shares @ [stratum.mean for stratum in means]), float(parts.sum())
    denominator = float((parts**2 / [stratum.freedom for stratum in means]).sum())
    freedom = (
        squared**2 / denominator
        if denominator
        else float(sum(stratum.freedom for stratum in means))
    )
    return MeanEstimate(mean, math.sqrt(squared), freedom)


def standardised_difference(rated: Array, unrated: Array) -> float:
    """Return (mean of rated - mean of unrated) / sqrt of the mean of their variances.

    NaN where either has fewer than two values or none varies. Below 0.25 in size, samples
    are commonly taken as alike (Rubin 2001).
    """
    if min(len(rated), len(unrated)) < 2:
        return NAN
    spread = math.sqrt((rated.var(ddof=1) + unrated.var(ddof=1)) / 2)
    return float((rated.mean() - unrated.mean()) / spread) if spread > FLAT else NAN


def _weight(sample: RatedSample, jury_scores: Array) -> float:
    n, n_unrated = len(sample.clinicians), len(sample.unrated_jury)
    if not n_unrated or sample.n_instances < LEAST_WEIGHED or np.ptp(jury_scores) <= FLAT:
        return 0.0
    if sample.has_repeated_instances:
        clinical, jury = _linear_parts(sample)
        return float(_ratio_within_unit(np.array(clinical @ jury), np.array(jury @ jury)))
    covariance = np.cov(sample.clinicians, sample.jury, ddof=0)[0, 1]
    return float(
        _ratio_within_unit(covariance, np.array((1 + n / n_unrated) * jury_scores.var(ddof=1)))
    )


def _ratio_within_unit(numerator: Array, denominator: Array) -> Array:
    """Return a ratio clipped to [0, 1]; 0 where the denominator is not above 0."""
    ratio = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
    clipped: Array = np.clip(ratio, 0.0, 1.0)
    return clipped


def _mean(sample: RatedSample, weight: float) -> MeanEstimate:
    mean = float((sample.clinicians - weight * sample.jury).mean())
    if weight:
        mean += weight * float(sample.unrated_jury.mean())
    instances = sample.n_instances
    if instances < LEAST_INSTANCES:
        return MeanEstimate(mean)
    parts = _by_instance(sample, weight)
    if weight and sample.has_repeated_instances:  # with the lambda from all other instances
        clinical, jury = _linear_parts(sample)
        products, squares = clinical * jury, jury * jury
        others = _ratio_within_unit(products.sum() - products, squares.sum() - squares)
        parts = clinical - others * jury
    return MeanEstimate(mean, math.sqrt(float(parts @ parts)), instances - 1)


def _linear_parts(sample: RatedSample) -> tuple[Array, Array]:
    """Return what clinicians and jury add to each instance's error: clinical - weight * jury."""
    clinical = _by_instance(sample, 0.0)
    return clinical, clinical - _by_instance(sample, 1.0)


def _by_instance(sample: RatedSample, weight: float) -> Array:
    """Return each instance's part in the error of the corrected mean, for a weight."""
    rated = _error_parts(sample.clinicians - weight * sample.jury, sample.instances)
    unrated = weight * _error_parts(sample.unrated_jury, sample.unrated_instances)
    instances = np.concatenate([sample.instances, sample.unrated_instances])
    _, place = np.unique(instances, return_inverse=True)
    return np.bincount(place, weights=np.concatenate([rated, unrated])).astype(np.float64)


def _error_parts(values: Array, instances: Integers) -> Array:
    """Return each value's part in the error of their mean, enlarged for few instances."""
    if not len(values):
        return values
    groups = len(np.unique(instances))
    enlarged = math.sqrt(groups / (groups - 1)) if groups > 1 else 1.0
    parts: Array = enlarged * (values - values.mean()) / len(values)
    return parts
