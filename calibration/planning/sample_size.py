"""Responses that make an ICC's interval narrow enough, on average and with assurance."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from calibration.agreement import LEAST_RESPONSES
from calibration.icc import spearman_brown
from calibration.scores import Array
from data.errors import BadInput

ROUNDING = 1e-9  # a rounding error must not add a response
LEAST_FOR_WIDTH = 4  # of fewer responses the F interval has no mean width
STUDIES = 4000  # evenly spaced quantiles of a study's estimate
STEP = 1e-6


@dataclass(frozen=True)
class TargetIcc:
    """The ICC whose interval is planned.

    Attributes
    ----------
    single : float
        The ICC(C,1) expected: of single ratings. Above -1 / (columns - 1), below 1.
    columns : int
        k, how many columns it is estimated from: clinicians per response, or 2 for a jury
        and the clinicians' mean.
    of : int
        The interval is that of ICC(C,of), reached from ICC(C,1) by Spearman-Brown: 1 for
        single ratings, 2 for ICC(C,2) as in the agreement table. At most `columns`: no
        interval is planned for more raters than rate.

    Raises
    ------
    BadInput
        If any is outside its range.
    """

    single: float
    columns: int = 2
    of: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.of <= self.columns or self.columns < 2:
            raise BadInput(f"an ICC(C,{self.of}) cannot be estimated from {self.columns} columns")
        if not -1 / (self.columns - 1) < self.single < 1:
            raise BadInput(
                f"a single-rater ICC of {self.single:g} is impossible with {self.columns} columns: "
                f"it lies between {-1 / (self.columns - 1):g} and 1"
            )

    @property
    def icc(self) -> float:
        """Return the ICC(C,of) that the interval is of."""
        return spearman_brown(self.single, self.of)


def single_rater_icc(icc: float, k: int = 2) -> float:
    """Return the single-rater ICC(C,1) under an ICC(C,k); for k = 2, R / (2 - R)."""
    return spearman_brown(icc, 1 / k)


def icc_spread(target: TargetIcc) -> float:
    """Return the standard error of the estimated ICC(C,of), times the root of n - 1.

    For single ratings sqrt(2 / (k (k - 1))) (1 - r) (1 + (k - 1) r) (Fisher 1925; Bonett
    2002, equation 3); for a mean of m by the delta method, times m / (1 + (m - 1) r)^2.
    """
    r, k, m = target.single, target.columns, target.of
    of_single = math.sqrt(2 / (k * (k - 1))) * (1 - r) * (1 + (k - 1) * r)
    return of_single * m / (1 + (m - 1) * r) ** 2


def bonett_n(target: TargetIcc, width: float, confidence: float = 0.95) -> int:
    """Return the responses with which the interval has a given width on average.

    n = 4 z^2 spread^2 / w^2 + 1, which for single ratings is
    8 z^2 (1 - r)^2 (1 + (k - 1) r)^2 / (k (k - 1) w^2) + 1, rounded up. About half of all
    such studies obtain a wider interval: see `zou_n`.

    Parameters
    ----------
    target : TargetIcc
    width : float
        From the lower to the upper end, above 0.
    confidence : float
        Of the interval, in (0, 1).

    Returns
    -------
    int
        Independent responses, so at most one an instance; at least 3.

    Raises
    ------
    BadInput
        If the width is not above 0.

    References
    ----------
    Bonett (2002), Statistics in Medicine 21, 1331, equation 3.

    Examples
    --------
    >>> bonett_n(TargetIcc(0.31), 0.3), bonett_n(TargetIcc(0.5), 0.2)
    (141, 218)
    """
    check_width(width)
    z = float(stats.norm.ppf((1 + confidence) / 2))
    return round_up(4 * (z * icc_spread(target) / width) ** 2 + 1)


def finite_population_n(n: int, population: int) -> int:
    """Return the responses needed where only `population` instances exist: n M / (M + n - 1).

    Rounded up, at most the population. What is found then holds for these M instances, and
    not for others that might have been collected. (Cochran 1977, section 4.5.)
    """
    if population < 1:
        raise BadInput(f"a population of {population} instances: it is 1 or more")
    return min(population, math.ceil(n * population / (population + n - 1) - ROUNDING))


def check_width(width: float) -> None:
    """Raise BadInput for a width that is not above 0 and finite."""
    if not 0 < width < math.inf:
        raise BadInput(f"a width of {width:g}: it is the distance of two limits, above 0")


def round_up(responses: float) -> int:
    """Return a number of responses rounded up, at least the 3 that an ICC takes."""
    return max(LEAST_RESPONSES, math.ceil(responses - ROUNDING))


def zou_n(target: TargetIcc, width: float, assurance: float = 0.8, confidence: float = 0.95) -> int:
    """Return the responses at which a share `assurance` of studies obtain the width or less.

    The half width z s / sqrt(n - 1), with s the `icc_spread`, is itself estimated, with standard
    error z |s'| s / (n - 1). The n returned solves, rounded up,
    z s / sqrt(n - 1) + z_assurance z |s'| s / (n - 1) = w / 2,
    where s' is the slope of the spread in the ICC that the interval is of.

    Parameters
    ----------
    target : TargetIcc
    width : float, from the lower to the upper end, above 0
    assurance : float, in [0.5, 1); with 0.5 it is Bonett's n
    confidence : float, of the interval, in (0, 1)

    Returns
    -------
    int, independent responses, so at most one an instance; at least 3

    Raises
    ------
    BadInput
        If the width is not above 0 or the assurance out of its range.

    References
    ----------
    Zou (2012), Statistics in Medicine 31, 3972, equation 5.

    Examples
    --------
    >>> zou_n(TargetIcc(0.31), 0.3), zou_n(TargetIcc(0.75), 0.35)
    (153, 37)
    """
    check_width(width)
    _check_assurance(assurance)
    z = float(stats.norm.ppf((1 + confidence) / 2))
    first = z * icc_spread(target)
    second = float(stats.norm.ppf(assurance)) * first * abs(_slope(target))
    # The root of second x^2 + first x - w/2 in x = 1 / sqrt(n - 1), in a form without cancellation.
    return round_up(1 + ((first + math.sqrt(first**2 + 2 * second * width)) / width) ** 2)


@dataclass(frozen=True)
class IntervalWidth:
    """The width of an interval on average, and the one that a share `assurance` of studies keep."""

    mean: float
    assured: float


def f_width(
    target: TargetIcc, n: int, assurance: float = 0.8, confidence: float = 0.95
) -> IntervalWidth:
    """Return the width that the exact F interval of the agreement table has with n responses.

    If the ICC is what was assumed, 1 - the estimated ICC(C,k) is (1 - ICC(C,k)) F with
    (n - 1)(k - 1) and n - 1 degrees of freedom: the widths follow without simulation.

    Parameters
    ----------
    target : TargetIcc
    n : int
        Responses, one an instance.
    assurance, confidence : float
        As for `zou_n`.

    Returns
    -------
    IntervalWidth
        Both NaN with fewer than 4 responses.

    References
    ----------
    McGraw & Wong (1996), table 7, for the interval.
    """
    if n < LEAST_FOR_WIDTH:
        return IntervalWidth(math.nan, math.nan)
    widths = _widths(target, n, confidence)
    return IntervalWidth(float(widths.mean()), float(np.quantile(widths, assurance)))


def exact_n(
    target: TargetIcc, width: float, assurance: float = 0.8, confidence: float = 0.95
) -> int:
    """Return the least responses whose exact F interval keeps the width with assurance.

    Zou's formula assumes a normal interval, so its n is too small where the ICC is high: above
    0.75 less than the assured 80 % of studies obtain the width, at 0.9 only 60 to 70 %. This is
    `f_width` solved for n. Parameters and errors are as for `zou_n`; at least 4.

    Examples
    --------
    >>> exact_n(TargetIcc(0.75), 0.35), zou_n(TargetIcc(0.75), 0.35)
    (39, 37)
    """
    check_width(width)
    _check_assurance(assurance)

    def is_too_wide(n: int) -> bool:
        return f_width(target, n, assurance, confidence).assured > width

    low, high = LEAST_FOR_WIDTH - 1, LEAST_FOR_WIDTH
    while is_too_wide(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_too_wide(middle) else (low, middle)
    return high


def _check_assurance(assurance: float) -> None:
    if not 0.5 <= assurance < 1:
        raise BadInput(f"an assurance of {assurance:g}: it is a share from 0.5 to below 1")


def _widths(target: TargetIcc, n: int, confidence: float) -> Array:
    """Return the widths of the interval in equally likely studies, shape (STUDIES,)."""
    k = target.columns
    above, below, upper = n - 1, (n - 1) * (k - 1), (1 + confidence) / 2
    panel = k * target.single / (1 + (k - 1) * target.single)
    likely = (np.arange(STUDIES) + 0.5) / STUDIES
    error = (1 - panel) * stats.f.ppf(likely, below, above)
    low = 1 - error * stats.f.ppf(upper, above, below)
    high = 1 - error / stats.f.ppf(upper, below, above)
    return np.asarray(_stepped(high, target.of / k) - _stepped(low, target.of / k))


def _stepped(icc: Array, times: float) -> Array:
    return np.asarray(times * icc / (1 + (times - 1) * icc))


def _slope(target: TargetIcc) -> float:
    """Return the derivative of the spread by the ICC that the interval is of."""
    reach = STEP * min(1 - target.single, target.single + 1 / (target.columns - 1))
    ends = [TargetIcc(target.single + side * reach, target.columns, target.of) for side in (-1, 1)]
    return (icc_spread(ends[1]) - icc_spread(ends[0])) / (ends[1].icc - ends[0].icc)
