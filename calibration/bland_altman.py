"""How many points of the scale a scorer stands from the clinicians: Bland and Altman."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from calibration.bootstrap import Counts
from calibration.f_interval import UNDEFINED, Interval
from calibration.scores import Array, Integers

NORMAL_95 = 1.96  # as in the source: limits between which 95 % of normal differences lie
LEAST_DIFFERENCES = 2  # one difference has no spread


@dataclass(frozen=True)
class BlandAltman:
    """Differences in points of the scale: their mean, their spread and where 95 % of them lie.

    Attributes
    ----------
    bias : float, the mean difference
    bias_interval : Interval, 95 %, for independent differences
    limits : Interval, the two limits of agreement
    low_limit, high_limit : Interval, 95 % of either limit, for independent differences
    """

    bias: float
    bias_interval: Interval
    limits: Interval
    low_limit: Interval
    high_limit: Interval


def bland_altman(differences: Array, confidence: float = 0.95) -> BlandAltman:
    """Return the bias and the limits of agreement of two columns from their differences.

    Parameters
    ----------
    differences : shape (n,), no NaN
        Scorer minus clinicians, in points of the scale.
    confidence : float
        Of the intervals; the limits themselves are always those of 95 %.

    Returns
    -------
    BlandAltman
        bias = mean d; bias +- t sd / sqrt n; limits bias +- 1.96 sd (ddof 1), each
        +- t sd sqrt(1 / n + 1.96^2 / (2 (n - 1))), with n - 1 degrees of freedom. All NaN
        without a difference; of one difference only the bias is defined. Intervals of no
        width where all differences are equal.

    Notes
    -----
    The intervals take the differences as independent; `bias_replicates` does not. The limits
    take them as normal, and may reach beyond what two raters on the scale can be apart.

    References
    ----------
    Bland & Altman (1986), Lancet 327, 307; (1999), Statistical Methods in Medical Research
    8, 135, section 2.
    """
    n = len(differences)
    if n < LEAST_DIFFERENCES:
        bias = float(differences[0]) if n else float("nan")
        return BlandAltman(bias, UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED)
    bias, sd = float(differences.mean()), float(differences.std(ddof=1))
    t = float(special.stdtrit(n - 1, (1 + confidence) / 2))
    reach = NORMAL_95 * sd
    doubt = t * sd * float(np.sqrt(1 / n + NORMAL_95**2 / (2 * (n - 1))))
    return BlandAltman(
        bias=bias,
        bias_interval=_around(bias, t * sd / float(np.sqrt(n))),
        limits=_around(bias, reach),
        low_limit=_around(bias - reach, doubt),
        high_limit=_around(bias + reach, doubt),
    )


def _around(middle: float, reach: float) -> Interval:
    return Interval(middle - reach, middle + reach)


@dataclass(frozen=True, eq=False)
class BiasReplicates:
    """Mean differences, resample by resample: counts (B, clusters) to (B, scorers).

    Attributes
    ----------
    number, total : shape (clusters, scorers)
        How many differences a cluster holds, and their sum.
    """

    number: Array
    total: Array

    def __call__(self, counts: Counts) -> Array:
        """Return the biases; NaN where a resample holds no difference of a scorer."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((counts @ self.total) / (counts @ self.number))


def bias_replicates(differences: Array, clusters: Integers, n_clusters: int) -> BiasReplicates:
    """Return the resampled biases of several scorers.

    Parameters
    ----------
    differences : shape (n, scorers), NaN where there is none
    clusters : shape (n,)
        The instance of each response, numbered from 0.
    n_clusters : how many instances there are
    """
    given = ~np.isnan(differences)
    number = np.zeros((n_clusters, differences.shape[1]))
    total = np.zeros_like(number)
    np.add.at(number, clusters, given.astype(np.float64))
    np.add.at(total, clusters, np.where(given, differences, 0.0))
    return BiasReplicates(number, total)
