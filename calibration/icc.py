"""Intraclass correlations from mean squares, with their exact and approximate F intervals."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from calibration.scores import Array
from data.errors import TooFew

NOISE = 1e-20  # a mean square below this share of the largest squared score is rounding


@dataclass(frozen=True)
class Interval:
    """The two ends of an interval; both NaN when it is undefined."""

    low: float
    high: float


UNDEFINED = Interval(math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class MeanSquares:
    """The mean squares of n responses x k raters; every field has the leading axes."""

    rows: Array
    columns: Array
    error: Array


def icc_consistency(scores: Array) -> Array:
    """Return ICC(C,k), also called ICC(3,k), of one table of scores or of a stack of them.

    Parameters
    ----------
    scores : shape (..., n, k)
        n >= 2 responses in rows, k >= 2 raters in columns, no NaN. Leading axes are
        independent tables, such as bootstrap resamples.

    Returns
    -------
    shape (...)
        1 - MS_error / MS_rows. At most 1, without lower bound; NaN or -inf when all
        responses have the same mean.

    Raises
    ------
    TooFew
        If n < 2 or k < 2.

    Notes
    -----
    For k = 2 it equals 4 cov(x, y) / (var x + var y + 2 cov(x, y)), and 2r / (1 + r)
    when both columns are z-scores.

    References
    ----------
    Shrout & Fleiss (1979), ICC(3,k) = McGraw & Wong (1996), ICC(C,k). A constant added
    to one rater changes nothing: this is consistency, not agreement.

    Examples
    --------
    >>> round(float(icc_consistency(np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8],
    ...     [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]))), 4)
    0.9093
    """
    ms = mean_squares(scores)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1.0 - ms.error / ms.rows)


def icc_agreement(scores: Array) -> float:
    """Return ICC(A,1) of one table (n, k): absolute agreement of single raters.

    (MS_rows - MS_error) / (MS_rows + (k - 1) MS_error + k (MS_columns - MS_error) / n); NaN where
    the denominator is 0. Raises TooFew if n < 2 or k < 2.

    References
    ----------
    McGraw & Wong (1996), Psychological Methods 1, 30, table 4; recommended for test and retest by
    Koo & Li (2016), Journal of Chiropractic Medicine 15, 155.
    """
    ms, (n, k) = mean_squares(scores), scores.shape
    rows, columns, error = float(ms.rows), float(ms.columns), float(ms.error)
    return (rows - error) / (rows + (k - 1) * error + k * (columns - error) / n or math.nan)


def mean_squares(scores: Array) -> MeanSquares:
    """Split the variance of tables (..., n, k) into rows, columns and error."""
    scores = np.asarray(scores, dtype=np.float64)
    n, k = scores.shape[-2:]
    if n < 2 or k < 2:
        raise TooFew(f"an ICC needs 2 responses and 2 raters, and got {n} and {k}")
    row = scores.mean(axis=-1, keepdims=True)
    column = scores.mean(axis=-2, keepdims=True)
    rest = scores - row - column + scores.mean(axis=(-2, -1), keepdims=True)
    floor = NOISE * np.square(scores).max(axis=(-2, -1), initial=0.0)
    return MeanSquares(
        rows=_above(floor, k * row.var(axis=(-2, -1), ddof=0) * n / (n - 1)),
        columns=_above(floor, n * column.var(axis=(-2, -1), ddof=0) * k / (k - 1)),
        error=_above(floor, np.square(rest).sum(axis=(-2, -1)) / ((n - 1) * (k - 1))),
    )


def _above(floor: Array, mean_square: Array) -> Array:
    return np.where(mean_square > floor, mean_square, 0.0)


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
    freedom = n - 1, (n - 1) * (k - 1)
    if not math.isfinite(icc) or min(freedom) < 1:
        return UNDEFINED
    upper, inverse = (1 + confidence) / 2, 1 - icc
    low = 1 - inverse * special.fdtri(*freedom, upper)
    high = 1 - inverse / special.fdtri(*freedom[::-1], upper)
    return Interval(float(low), float(high))


def agreement_interval(
    squares: tuple[float, float, float],
    freedom: tuple[int, int, int],
    sizes: tuple[float, float],
    confidence: float = 0.95,
) -> Interval:
    """Return the approximate interval of ICC(A,1), by Satterthwaite's degrees of freedom.

    Parameters
    ----------
    squares, freedom : mean squares of rows, columns and error, and their degrees of freedom
    sizes : ratings of a response, and of a rater: k and n of a complete table
    confidence : float, in (0, 1)

    Returns
    -------
    Interval
        NaN where the mean square of rows is 0 (F is then 0 whatever the error, so that both ends
        would be the estimate itself), without freedom, and where the ICC is 1 or not finite.

    References
    ----------
    McGraw & Wong (1996), Psychological Methods 1, 30, table 7.
    """
    (rows, columns, error), (k, n) = squares, sizes
    if not rows or min(freedom) < 1:
        return UNDEFINED
    single = (rows - error) / (rows + (k - 1) * error + k * (columns - error) / n or math.nan)
    if not math.isfinite(single) or single >= 1:
        return UNDEFINED
    a = k * single / (n * (1 - single))
    b = 1 + a * (n - 1)
    parts = (a * columns) ** 2 / freedom[1] + (b * error) ** 2 / freedom[2]
    combined = (a * columns + b * error) ** 2 / (parts or math.nan)
    upper = (1 + confidence) / 2
    low = special.fdtri(freedom[0], combined, upper)
    high = special.fdtri(combined, freedom[0], upper)
    spread = k * columns + (k * n - k - n) * error
    # With hardly any freedom the quantiles are infinite: divide by them, and never take inf * 0.
    least = n * (rows / low - error) / (spread + n * rows / low)
    most = n * (rows - error / high) / (spread / high + n * rows)
    return Interval(float(least), float(most))


def spearman_brown(single: float, times: float) -> float:
    """Return the reliability of a mean over `times` as many raters: m r / (1 + (m - 1) r).

    Parameters
    ----------
    single : float
        Reliability of one rater, or of the mean that is to be lengthened.
    times : float
        How many times as many raters; 1 / k steps the mean of k raters down to one.

    Returns
    -------
    float
        NaN where the denominator is 0.

    Notes
    -----
    With times = 2 this is the 2r / (1 + r) that turns Pearson's r of two z-scored columns
    into their ICC(C,2).

    References
    ----------
    Spearman (1910) and Brown (1910), British Journal of Psychology 3, 271 and 296.
    """
    below = 1 + (times - 1) * single
    return times * single / below if below else math.nan
