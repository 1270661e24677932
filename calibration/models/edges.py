"""Intervals where all resamples agree: none shows what no instance has shown."""

import numpy as np

from calibration.f_interval import Interval
from calibration.scores import Array

UNSEEN = 0.5  # of one instance: the weight that Jeffreys' interval gives to what was not seen
TAIL = 0.975
SAME = 1e-9  # ends that are nearer are one figure, summed in another order


def unseen_reach(distances: Array, instances: Array) -> float:
    """Return how far a mean may lie towards an end for want of instances that would show it.

    Parameters
    ----------
    distances : shape (benchmarks,), from each benchmark's mean to the end of the scale, 0 or more
    instances : shape (benchmarks,), that each mean rests on

    Returns
    -------
    float
        In units of the distances; 0 where all are 0.

    Notes
    -----
    On each benchmark one further instance is imagined at the end, with a weight of
    Beta(1/2, n + 1/2), as if half of one had been there. The reach is the 97.5 % quantile of the mean over benchmarks
    of weight x distance; for several it is that of the Beta of the same mean and variance. Where all
    n scores are 1, 1 - reach is the lower end of Jeffreys' interval of n successes of n.

    References
    ----------
    Brown, Cai & DasGupta (2001), Statistical Science 16, 101 (Jeffreys' interval). Imagined at the
    end with weight Beta(1, n) it is the bound of Gaffke (2005), which is never too near.
    """
    from scipy import stats  # as slow to load as all else that a table takes

    away = np.maximum(distances, 0.0)
    total = float(away.sum())
    if not total > 0:
        return 0.0
    mean = UNSEEN / (2 * UNSEEN + instances)
    variance = mean * (1 - mean) / (2 * UNSEEN + instances + 1)
    middle = float(away @ mean) / total
    spread = float(away**2 @ variance) / total**2
    size = middle * (1 - middle) / spread - 1
    quantile = float(stats.beta.ppf(TAIL, middle * size, (1 - middle) * size))
    return quantile * total / len(away)


def mean_interval(ends: Interval, means: Array, instances: Array) -> Interval:
    """Return the interval of a mean over benchmarks, on 0 to 1; `unseen_reach` if it has no width.

    Parameters
    ----------
    ends : its percentile interval, which stays where it has any width, or is NaN
    means, instances : shape (benchmarks,), of each benchmark that the mean is of
    """
    return _unseen(ends, means, (0.0, 1.0), instances)


def gap_interval(ends: Interval, gaps: Array, instances: Array) -> Interval:
    """Return the interval of a mean difference, on -1 to 1; `unseen_reach` if it has no width."""
    return _unseen(ends, gaps, (-1.0, 1.0), instances)


def _unseen(
    ends: Interval, values: Array, scale: tuple[float, float], instances: Array
) -> Interval:
    if not has_no_width(ends):
        return ends
    middle = float(values.mean())
    return Interval(
        middle - unseen_reach(values - scale[0], instances),
        middle + unseen_reach(scale[1] - values, instances),
    )


def share_interval(ends: Interval, share: float, instances: float) -> Interval:
    """Return the interval of a win rate; Wilson's with so many instances if it has no width.

    A win rate is a count of means that lie above others, so where a model leads clearly all
    resamples agree on it: that is no certainty. Wilson's is what as many single contests would say.

    References
    ----------
    Wilson (1927), Journal of the American Statistical Association 22, 209.
    """
    if not has_no_width(ends):
        return ends
    from scipy import stats  # as slow to load as all else that a table takes

    square = float(stats.norm.ppf(TAIL)) ** 2 / instances
    middle = (share + square / 2) / (1 + square)
    reach = float(np.sqrt(square * (share * (1 - share) + square / 4))) / (1 + square)
    # Rounding may put an end short of the share, which Wilson's interval holds, or beyond 0 to 1.
    low, high = max(0.0, middle - reach), min(1.0, middle + reach)
    return Interval(min(share, low), max(share, high))


def has_no_width(ends: Interval) -> bool:
    """Return whether an interval is a single figure; not if it is undefined."""
    return bool(ends.high - ends.low <= SAME)
