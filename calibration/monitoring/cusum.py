"""A CUSUM of falls in agreement, its limit by the rate of false alarms, and Fisher's z of an ICC.

The limit is a quantile of the largest of many correlated normal sums. It has no closed form when
the target has an error of its own, so it is simulated, with a fixed seed.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from calibration.bootstrap import CELLS, LEAST_CLUSTERS, Statistic
from calibration.scores import Array, Integers
from calibration.values import NAN

SHORTEST = 2  # periods: one alone is never a fall
YEARS = 3  # limits are simulated for so many; later years have the last one
STUDIES, SIMULATED = 20_000, 260_000  # at most so many studies, and periods of a year in them all
MOST_FACTOR = 1.6
POWER = 0.8


@dataclass(frozen=True, eq=False)
class Cusum:
    """The CUSUM at the end of each period.

    Attributes
    ----------
    sums : shape (..., periods)
        -inf before the second period.
    windows : shape (..., periods)
        Number of the latest periods over which the sum is largest; 0 before the second period.
    """

    sums: Array
    windows: Integers


def falling_cusum(
    falls: Array, weights: Array, factor: Array, target_variance: Array, year: int
) -> Cusum:
    """Return the CUSUM of falls below a target, over the window of periods that shows them most.

    For the last w periods with weights a, fall d = sum(a * falls) / sum(a), and
    S_t = max over w of d / sqrt(target_variance_t + factor_t / sum(a)) / window_factor(w, year).

    Parameters
    ----------
    falls : shape (..., periods)
        Target minus value, in the order of time. Leading axes are independent series.
    weights : shape (periods,)
        Above 0; a period's variance is factor / weight.
    factor, target_variance : shape (periods,)
        As known at the end of each period; target_variance is 0 for a known target.
    year : int
        Periods of a year, and the longest window; the shortest has 2 periods.

    Notes
    -----
    With equal weights and a known target it is, except for the shortest windows, Page's sum
    without allowance over at most a year, divided by its standard deviation after a year.

    References
    ----------
    Page (1954), Biometrika 41, 100. Lai (1995), Journal of the Royal Statistical Society B 57,
    613, for limits on windows. O'Brien & Fleming (1979), Biometrics 35, 549, for a limit on
    the sum that is the same at each look; Haybittle (1971), British Journal of Radiology 44,
    793, for a maximum of the limit at early looks.
    """
    total = np.cumsum(falls * weights, axis=-1)
    total_weight = np.cumsum(weights)
    sums = np.full(total.shape, -np.inf)
    windows = np.zeros(total.shape, dtype=np.int64)
    for length in range(SHORTEST, min(year, len(total_weight)) + 1):
        ends = slice(length - 1, None)
        window_weight = _window_sums(total_weight, length)
        error = np.sqrt(target_variance[ends] + factor[ends] / window_weight)
        candidate = (
            _window_sums(total, length) / window_weight / error / window_factor(length, year)
        )
        is_larger = candidate > sums[..., ends]
        windows[..., ends][is_larger] = length
        sums[..., ends] = np.maximum(sums[..., ends], candidate)
    return Cusum(sums, windows)


def window_factor(window: int, year: int) -> float:
    """Return how many times larger a fall over a window must be, in its errors, than over a year.

    sqrt(year / window), with which lasting falls are found soonest, and at most 1.6, so that a
    large fall is found although it is short.
    """
    return min(math.sqrt(year / window), MOST_FACTOR)


def _window_sums(cumulated: Array, length: int) -> Array:
    """Return the sums over the last `length` places, from cumulative sums."""
    sums = cumulated[..., length - 1 :].copy()
    sums[..., 1:] -= cumulated[..., :-length]
    return sums


@lru_cache(maxsize=64)
def limits(target_periods: float, year: int, rate: float, years: int = YEARS) -> tuple[float, ...]:
    """Return the CUSUM's limit in each year of watching, at which an alarm is raised.

    Parameters
    ----------
    target_periods : float
        The target is as exact as the mean of so many periods; infinite for a known one.
    year : int
        Periods of a year.
    rate : float
        In each year, the share of unchanged juries without an earlier alarm that have one.
    years : int
        How many limits to return.

    Returns
    -------
    tuple of `years` floats
        From normal periods with equal errors, the target's error being the same in all. With
        20,000 simulated studies (5,000 by week) a rate of 5 % is right to some 0.2 (0.3)
        percentage points.
    """
    target, periods = _errors(target_periods, year, years)
    ones = np.ones(year * years)
    sums = falling_cusum(target - periods, ones, ones, ones / target_periods, year).sums
    without_alarm, year_limits = np.ones(len(sums), dtype=np.bool_), []
    for begin in range(0, years * year, year):
        largest = sums[:, begin : begin + year].max(axis=1)
        year_limits.append(float(np.quantile(largest[without_alarm], 1 - rate)))
        without_alarm &= largest < year_limits[-1]
    return tuple(year_limits)


@lru_cache(maxsize=64)
def detectable_fall(target_periods: float, year: int, rate: float) -> float:
    """Return the fall, in errors of a period, found within the first year in 80 % of studies.

    The fall begins with the first watched period; see `limits` for the parameters.
    """
    (limit,) = limits(target_periods, year, rate, 1)
    target, periods = _errors(target_periods, year, 1)
    total = np.cumsum(periods, axis=1)
    needed = np.full(len(target), np.inf)
    for length in range(SHORTEST, year + 1):
        falls = target - _window_sums(total, length) / length
        error = np.sqrt(1 / target_periods + 1 / length)
        lacking = limit * window_factor(length, year) * error - falls
        needed = np.minimum(needed, lacking.min(axis=1))
    return float(np.quantile(needed, POWER))


def _errors(target_periods: float, year: int, years: int) -> tuple[Array, Array]:
    """Return errors of the target (studies, 1) and of the periods, in errors of a period."""
    random = np.random.default_rng(0)
    studies = min(STUDIES, SIMULATED // year)
    target = random.normal(size=(studies, 1)) / np.sqrt(target_periods)
    return target, np.hstack([random.normal(size=(studies, year)) for _ in range(years)])


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
    """Return the standard error of Fisher's z behind a 95 % interval of an ICC(C,2).

    It is half the interval's width on z divided by 1.96, but not less than that of n independent
    responses, which is also returned where the interval is undefined.
    """
    ends = fisher_z(np.array([low, high], dtype=np.float64))
    half_width = float(ends[1] - ends[0]) / 2 / special.ndtri(0.975)
    return float(np.fmax(half_width, independent_se(n)))


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
        one instance: no random numbers. NaN with fewer than 2 instances, or where the ICC
        without one of them has no z.

    References
    ----------
    Efron & Tibshirani (1993), An Introduction to the Bootstrap, section 11.2.
    """
    if clusters < LEAST_CLUSTERS:
        return NAN
    batch_size = max(1, CELLS // clusters)
    blocks = [
        np.arange(start, min(start + batch_size, clusters))
        for start in range(0, clusters, batch_size)
    ]
    left_out_z = np.concatenate(
        [fisher_z(statistic(_leave_one_out_counts(batch, clusters))) for batch in blocks]
    )
    deviations = left_out_z - left_out_z.mean()
    return float(np.sqrt((clusters - 1) / clusters * np.square(deviations).sum()))


def _leave_one_out_counts(batch: Integers, clusters: int) -> Array:
    """Return counts, a row for each of some clusters, with that one left out."""
    counts = np.ones((len(batch), clusters))
    counts[np.arange(len(batch)), batch] = 0.0
    return counts
