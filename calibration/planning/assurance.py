"""How many responses make an interval of an ICC narrow enough with assurance, and how wide it gets."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from calibration.planning.sample_size import Aim, check_width, spread, whole
from calibration.scores import Array
from data.errors import BadInput

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
