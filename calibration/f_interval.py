"""Exact intervals of ICCs from the F distribution, for independent responses."""

import math
from dataclasses import dataclass

from scipy import special


@dataclass(frozen=True)
class Interval:
    """The two ends of an interval; both NaN when it is undefined."""

    low: float
    high: float


UNDEFINED = Interval(math.nan, math.nan)


def f_interval(icc: float, n: int, k: int = 2, confidence: float = 0.95) -> Interval:
    """Return the exact interval of ICC(C,k), also called ICC(3,k).

    F = MS_rows / MS_error = 1 / (1 - ICC); with q the upper quantile of F with n - 1 and
    (n - 1)(k - 1) degrees of freedom, and q' with the two exchanged,
    low = 1 - q / F and high = 1 - 1 / (F q').

    Parameters
    ----------
    icc : float
        ICC(C,k) as measured.
    n : int
        Responses, taken to be independent. Several responses to one instance are not:
        use the bootstrap over instances then.
    k : int
        Columns, here the clinicians and the scorer.
    confidence : float

    Returns
    -------
    Interval
        Not cut at 0. NaN when the ICC is not finite or n < 2.

    Examples
    --------
    >>> ends = f_interval(0.474, 56)
    >>> round(ends.low, 3), round(ends.high, 3)
    (0.103, 0.692)
    """
    return _ratio_interval(icc, (n - 1, (n - 1) * (k - 1)), confidence)


def one_way_interval(icc: float, n: int, k: int, confidence: float = 0.95) -> Interval:
    """Return the exact interval of ICC(1,k): as `f_interval` with n(k - 1) below."""
    return _ratio_interval(icc, (n - 1, n * (k - 1)), confidence)


def absolute_interval(
    mean_squares: tuple[float, float, float], n: int, k: int, confidence: float = 0.95
) -> Interval:
    """Return the approximate interval of ICC(A,k) from the mean squares (rows, columns, error).

    Satterthwaite's degrees of freedom for the combination of columns and error, as in
    McGraw & Wong (1996), table 7, for ICC(A,1); then stepped up to k by Spearman-Brown.
    NaN where the mean square of rows is 0: F is then 0 whatever the error, so that both ends
    would be the estimate itself.
    """
    rows, columns, error = mean_squares
    if not rows:
        return UNDEFINED
    single = (rows - error) / (rows + (k - 1) * error + k * (columns - error) / n or math.nan)
    if not math.isfinite(single) or single >= 1:
        return UNDEFINED
    a = k * single / (n * (1 - single))
    b = 1 + k * single * (n - 1) / (n * (1 - single))
    parts = (a * columns) ** 2 / (k - 1) + (b * error) ** 2 / ((n - 1) * (k - 1))
    freedom = (a * columns + b * error) ** 2 / (parts or math.nan)
    upper = (1 + confidence) / 2
    low = special.fdtri(n - 1, freedom, upper)
    high = special.fdtri(freedom, n - 1, upper)
    spread = k * columns + (k * n - k - n) * error
    # With hardly any freedom the quantiles are infinite: divide by them, and never take inf * 0.
    least = n * (rows / low - error) / (spread + n * rows / low)
    most = n * (rows - error / high) / (spread / high + n * rows)
    return Interval(spearman_brown(float(least), k), spearman_brown(float(most), k))


def spearman_brown(single: float, times: float) -> float:
    """Return the reliability of a mean over `times` as many raters: m r / (1 + (m - 1) r).

    With times = 2 this is the 2r / (1 + r) that turns Pearson's r of two z-scored columns
    into their ICC(C,2). NaN where the denominator is 0.
    """
    below = 1 + (times - 1) * single
    return times * single / below if below else math.nan


def _ratio_interval(icc: float, freedom: tuple[int, int], confidence: float) -> Interval:
    if not math.isfinite(icc) or min(freedom) < 1:
        return UNDEFINED
    above, below = freedom
    upper, inverse = (1 + confidence) / 2, 1 - icc
    low = 1 - inverse * special.fdtri(above, below, upper)
    high = 1 - inverse / special.fdtri(below, above, upper)
    return Interval(float(low), float(high))
