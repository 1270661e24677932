"""Responses that make an ICC's interval narrow enough, on average and with assurance."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from calibration.agreement import LEAST_RESPONSES
from calibration.icc import spearman_brown
from calibration.scores import Array
from data.errors import BadInput

ROUNDING = 1e-9  # a response more for the last digit of a float would be one too many


@dataclass(frozen=True)
class Aim:
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
        single ratings, 2 for ICC(C,2) as in the agreement table. At most `columns`, since
        what is planned is read off the ratings and not off raters that nobody asked.

    Raises
    ------
    BadInput
        If one of them is outside its range.
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


def single_of(icc: float, k: int = 2) -> float:
    """Return the single-rater ICC(C,1) under an ICC(C,k); for k = 2, R / (2 - R)."""
    return spearman_brown(icc, 1 / k)


def spread(aim: Aim) -> float:
    """Return the standard error of the estimated ICC(C,of), times the root of n - 1.

    For single ratings sqrt(2 / (k (k - 1))) (1 - r) (1 + (k - 1) r) (Fisher 1925; Bonett
    2002, equation 3); for a mean of m by the delta method, times m / (1 + (m - 1) r)^2.
    """
    r, k, m = aim.single, aim.columns, aim.of
    of_single = math.sqrt(2 / (k * (k - 1))) * (1 - r) * (1 + (k - 1) * r)
    return of_single * m / (1 + (m - 1) * r) ** 2


def bonett_n(aim: Aim, width: float, confidence: float = 0.95) -> int:
    """Return the responses at which the interval has a width on average.

    n = 4 z^2 spread^2 / w^2 + 1, which for single ratings is
    8 z^2 (1 - r)^2 (1 + (k - 1) r)^2 / (k (k - 1) w^2) + 1, rounded up. About half of all
    such studies obtain a wider interval: see `zou_n`.

    Parameters
    ----------
    aim : Aim
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
    >>> bonett_n(Aim(0.31), 0.3), bonett_n(Aim(0.5), 0.2)
    (141, 218)
    """
    check_width(width)
    z = float(stats.norm.ppf((1 + confidence) / 2))
    return whole(4 * (z * spread(aim) / width) ** 2 + 1)


def corrected(n: int, population: int) -> int:
    """Return the responses needed where only `population` instances exist: n M / (M + n - 1).

    Rounded up, at most the population. What is found then holds for these M instances, and
    not for others that might have been collected. (Cochran 1977, section 4.5.)
    """
    if population < 1:
        raise BadInput(f"a population of {population} instances: it is 1 or more")
    return min(population, math.ceil(n * population / (population + n - 1) - ROUNDING))


def check_width(width: float) -> None:
    """Refuse a width that is none."""
    if not 0 < width < math.inf:
        raise BadInput(f"a width of {width:g}: it is the distance of two limits, above 0")


def whole(responses: float) -> int:
    """Return a number of responses rounded up, at least the 3 that an ICC takes."""
    return max(LEAST_RESPONSES, math.ceil(responses - ROUNDING))


LEAST_FOR_WIDTH = 4  # of fewer responses the F interval has no mean width
STUDIES = 4000  # evenly spaced quantiles of what a study can find
STEP = 1e-6


def zou_n(aim: Aim, width: float, assurance: float = 0.8, confidence: float = 0.95) -> int:
    """Return the responses at which a share `assurance` of studies obtain the width or less.

    The half width z s / sqrt(n - 1), with s the `spread`, is itself estimated, with standard
    error z |s'| s / (n - 1). The n returned solves, rounded up,
    z s / sqrt(n - 1) + z_assurance z |s'| s / (n - 1) = w / 2,
    where s' is the slope of the spread in the ICC that the interval is of.

    Parameters
    ----------
    aim : Aim
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
    >>> zou_n(Aim(0.31), 0.3), zou_n(Aim(0.75), 0.35)
    (153, 37)
    """
    check_width(width)
    _check_assurance(assurance)
    z = float(stats.norm.ppf((1 + confidence) / 2))
    first = z * spread(aim)
    second = float(stats.norm.ppf(assurance)) * first * abs(_slope(aim))
    # The root of second x^2 + first x - w/2 in x = 1 / sqrt(n - 1), in a form without cancellation.
    return whole(1 + ((first + math.sqrt(first**2 + 2 * second * width)) / width) ** 2)


@dataclass(frozen=True)
class Width:
    """How wide an interval gets: on average, and what the share `assurance` stays within."""

    mean: float
    assured: float


def f_width(aim: Aim, n: int, assurance: float = 0.8, confidence: float = 0.95) -> Width:
    """Return how wide the exact F interval of the agreement table will be with n responses.

    If the ICC is what was assumed, 1 - the estimated ICC(C,k) is (1 - ICC(C,k)) F with
    (n - 1)(k - 1) and n - 1 degrees of freedom: the widths follow without simulation.

    Parameters
    ----------
    aim : Aim
    n : int
        Responses, one an instance.
    assurance, confidence : float
        As for `zou_n`.

    Returns
    -------
    Width
        Both NaN with fewer than 4 responses.

    References
    ----------
    McGraw & Wong (1996), table 7, for the interval.
    """
    if n < LEAST_FOR_WIDTH:
        return Width(math.nan, math.nan)
    widths = _widths(aim, n, confidence)
    return Width(float(widths.mean()), float(np.quantile(widths, assurance)))


def exact_n(aim: Aim, width: float, assurance: float = 0.8, confidence: float = 0.95) -> int:
    """Return the least responses whose exact F interval keeps the width with assurance.

    Zou's formula takes the interval for a normal one, and leaves it too wide where the ICC is
    high: above 0.75 in less than 80 % of studies, at 0.9 in 60 to 70 %. This is `f_width`
    solved for n. Parameters and errors as for `zou_n`; at least 4.

    Examples
    --------
    >>> exact_n(Aim(0.75), 0.35), zou_n(Aim(0.75), 0.35)
    (39, 37)
    """
    check_width(width)
    _check_assurance(assurance)

    def wide(n: int) -> bool:
        return f_width(aim, n, assurance, confidence).assured > width

    low, high = LEAST_FOR_WIDTH - 1, LEAST_FOR_WIDTH
    while wide(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wide(middle) else (low, middle)
    return high


def _check_assurance(assurance: float) -> None:
    if not 0.5 <= assurance < 1:
        raise BadInput(f"an assurance of {assurance:g}: it is a share from 0.5 to below 1")


def _widths(aim: Aim, n: int, confidence: float) -> Array:
    """Return the widths of equally likely studies."""
    k = aim.columns
    above, below, upper = n - 1, (n - 1) * (k - 1), (1 + confidence) / 2
    panel = k * aim.single / (1 + (k - 1) * aim.single)
    likely = (np.arange(STUDIES) + 0.5) / STUDIES
    error = (1 - panel) * stats.f.ppf(likely, below, above)
    low = 1 - error * stats.f.ppf(upper, above, below)
    high = 1 - error / stats.f.ppf(upper, below, above)
    return np.asarray(_stepped(high, aim.of / k) - _stepped(low, aim.of / k))


def _stepped(icc: Array, times: float) -> Array:
    return np.asarray(times * icc / (1 + (times - 1) * icc))


def _slope(aim: Aim) -> float:
    """Return how fast the spread changes with the ICC that the interval is of."""
    reach = STEP * min(1 - aim.single, aim.single + 1 / (aim.columns - 1))
    ends = [Aim(aim.single + side * reach, aim.columns, aim.of) for side in (-1, 1)]
    return (spread(ends[1]) - spread(ends[0])) / (ends[1].icc - ends[0].icc)
