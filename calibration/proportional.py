"""Whether a scorer is as far off at the low end as at the high: difference regressed on mean."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from calibration.bootstrap import Counts
from calibration.codes import NoteCode as Code
from calibration.f_interval import UNDEFINED, Interval
from calibration.scores import Array, Integers
from calibration.values import NAN, Note, note

LEAST = 3  # differences: two always lie on a line
FLAT = 1e-12  # variance of the means, in points^2, below which they do not vary
ENDS = (10, 90)  # percentiles of the mean of both at which the fitted difference is told


@dataclass(frozen=True)
class Proportional:
    """How the difference changes with the mean of both.

    Attributes
    ----------
    slope : float, points of difference for each point of the mean; below 0 a scorer who is
        generous to bad responses, or stricter to good ones, more than in between
    interval : Interval, 95 %, for independent normal responses
    sd_ratio : float, SD of the scorer / SD of the clinicians
    at, fitted : Interval, the 10th and 90th percentile of the mean, and the line's
        difference there
    """

    slope: float = NAN
    interval: Interval = UNDEFINED
    sd_ratio: float = NAN
    at: Interval = UNDEFINED
    fitted: Interval = UNDEFINED


def proportional(clinicians: Array, scorer: Array, confidence: float = 0.95) -> Proportional:
    """Regress scorer minus clinicians on the mean of both, by least squares.

    Parameters
    ----------
    clinicians, scorer : shape (n,), in points, no NaN
    confidence : of the interval

    Returns
    -------
    Proportional
        slope = cov(d, m) / var m, which is 2 (var s - var c) / (var s + var c + 2 cov); +- t SE
        with n - 2 degrees of freedom. All NaN with fewer than three responses or means that
        do not vary; no ratio where clinicians do not vary.

    Notes
    -----
    The slope is 0 exactly where both SDs are equal, so it is the test of Pitman (1939) and
    Morgan. It tells a scale that is used differently from one that is not, but noise has a
    part: a scorer with more noise has the larger SD, and so a slope above 0 without any
    proportional error; one with less (a mean of many raters) has a slope below 0.

    References
    ----------
    Bland & Altman (1999), Statistical Methods in Medical Research 8, 135, section 3.2.
    """
    apart, middle = scorer - clinicians, (scorer + clinicians) / 2
    if len(apart) < LEAST or middle.var() <= FLAT:
        return Proportional()
    found = stats.linregress(middle, apart)
    reach = float(stats.t.ppf((1 + confidence) / 2, len(apart) - 2) * found.stderr)
    slope, spread = float(found.slope), float(clinicians.std(ddof=1))
    at = np.percentile(middle, ENDS)
    line = apart.mean() + slope * (at - middle.mean())
    return Proportional(
        slope=slope,
        interval=Interval(slope - reach, slope + reach),
        sd_ratio=float(scorer.std(ddof=1)) / spread if spread**2 > FLAT else NAN,
        at=Interval(*map(float, at)),
        fitted=Interval(*map(float, line)),
    )


@dataclass(frozen=True, eq=False)
class SlopeReplicates:
    """Slopes, resample by resample: counts (B, clusters) to (B, scorers).

    `sums` has shape (5, clusters, scorers): of each cluster's responses the number, d, m, d m
    and m squared.
    """

    sums: Array

    def __call__(self, counts: Counts) -> Array:
        """Return the slopes; NaN where a resample's means do not vary."""
        n, d, m, dm, mm = np.matmul(counts, self.sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = mm / n - (m / n) ** 2
            slopes = (dm / n - d * m / n**2) / np.where(variance > FLAT, variance, np.nan)
        return np.asarray(slopes)


def slope_replicates(
    apart: Array, middle: Array, clusters: Integers, n_clusters: int
) -> SlopeReplicates:
    """Return the resampled slopes of several scorers.

    Parameters
    ----------
    apart, middle : shape (n, scorers), difference and mean of both, NaN where there is none
    clusters : shape (n,), the instance of each response, numbered from 0
    n_clusters : how many instances there are
    """
    given = ~np.isnan(apart)
    d, m = (np.where(given, one, 0.0) for one in (apart, middle))
    m = np.where(given, m - m.sum() / max(int(given.sum()), 1), 0.0)  # near 0: nothing cancels
    parts = np.stack([given.astype(np.float64), d, m, d * m, m * m])
    sums = np.zeros((len(parts), n_clusters, apart.shape[1]))
    for total, part in zip(sums, parts, strict=True):
        np.add.at(total, clusters, part)
    return SlopeReplicates(sums)


def uneven_note(found: Proportional, ends: Interval) -> Note | None:
    """Say how far off a scorer is at both ends where the slope's interval excludes 0."""
    if not (ends.low > 0 or ends.high < 0):
        return None
    return note(
        Code.UNEVEN,
        low=found.fitted.low,
        at_low=found.at.low,
        high=found.fitted.high,
        at_high=found.at.high,
    )
