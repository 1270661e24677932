"""Intraclass correlations from mean squares, with their exact and approximate F intervals."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
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
    within: Array


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


def icc_table(scores: Array, confidence: float = 0.95) -> pd.DataFrame:
    """Return the six ICCs of one table, each with its F interval.

    Parameters
    ----------
    scores : shape (n, k)
        n >= 2 responses in rows, k >= 2 raters in columns, no NaN.
    confidence : float
        Of the interval.

    Returns
    -------
    DataFrame
        One row a form, indexed "ICC(1,1)", "ICC(A,1)", "ICC(C,1)", "ICC(1,k)",
        "ICC(A,k)", "ICC(C,k)"; columns icc, low, high. 1: raters are drawn anew for each
        response; A: absolute agreement of the same raters; C: their consistency; the
        second place says whether one rater or the mean of all k is meant.

    References
    ----------
    Shrout & Fleiss (1979), Psychological Bulletin 86, 420. McGraw & Wong (1996),
    Psychological Methods 1, 30.
    """
    ms, (n, k) = mean_squares(scores), np.asarray(scores).shape
    rows, columns, error, within = (float(v) for v in (ms.rows, ms.columns, ms.error, ms.within))
    one_way, consistent = _ratio(rows - within, rows), _ratio(rows - error, rows)
    absolute = _ratio(rows - error, rows + (columns - error) / n)
    of_mean = [
        (one_way, one_way_interval(one_way, n, k, confidence)),
        (absolute, absolute_interval((rows, columns, error), n, k, confidence)),
        (consistent, f_interval(consistent, n, k, confidence)),
    ]
    forms = [(_of_one(icc, k), _interval_of_one(ends, k)) for icc, ends in of_mean] + of_mean
    names = [f"ICC({form},{of})" for of in "1k" for form in "1AC"]
    numbers = [(icc, ends.low, ends.high) for icc, ends in forms]
    return pd.DataFrame(numbers, index=names, columns=["icc", "low", "high"])


def mean_squares(scores: Array) -> MeanSquares:
    """Split the variance of tables (..., n, k) into rows, columns, error, and within rows."""
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
        within=_above(floor, np.square(scores - row).sum(axis=(-2, -1)) / (n * (k - 1))),
    )


def _above(floor: Array, mean_square: Array) -> Array:
    return np.where(mean_square > floor, mean_square, 0.0)


def _ratio(above: float, below: float) -> float:
    return above / below if below else float("nan")


def _of_one(icc: float, k: int) -> float:
    return spearman_brown(icc, 1.0 / k)


def _interval_of_one(ends: Interval, k: int) -> Interval:
    return Interval(_of_one(ends.low, k), _of_one(ends.high, k))


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
    """Return the exact interval of ICC(1,k).

    As `f_interval`, with n - 1 and n(k - 1) degrees of freedom: raters are drawn anew for each
    response. Parameters and returns as there.

    References
    ----------
    McGraw & Wong (1996), Psychological Methods 1, 30, table 7.
    """
    return _ratio_interval(icc, (n - 1, n * (k - 1)), confidence)


def absolute_interval(
    mean_squares: tuple[float, float, float], n: int, k: int, confidence: float = 0.95
) -> Interval:
    """Return the approximate interval of ICC(A,k) from the mean squares (rows, columns, error).

    Satterthwaite's degrees of freedom for the combination of columns and error, as in
    McGraw & Wong (1996), table 7, for ICC(A,1); then stepped up to k by Spearman-Brown.

    Parameters
    ----------
    mean_squares : of rows, columns and error
    n, k : responses and raters, both at least 2
    confidence : float, in (0, 1)

    Returns
    -------
    Interval
        NaN where the mean square of rows is 0 (F is then 0 whatever the error, so that both ends
        would be the estimate itself), and where ICC(A,1) is 1 or more, or not finite.
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


def _ratio_interval(icc: float, freedom: tuple[int, int], confidence: float) -> Interval:
    if not math.isfinite(icc) or min(freedom) < 1:
        return UNDEFINED
    above, below = freedom
    upper, inverse = (1 + confidence) / 2, 1 - icc
    low = 1 - inverse * special.fdtri(above, below, upper)
    high = 1 - inverse / special.fdtri(below, above, upper)
    return Interval(float(low), float(high))
