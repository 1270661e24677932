"""Rank correlations of two columns: Spearman's rho and Kendall's tau-b."""

from dataclasses import dataclass

import numpy as np

from calibration.rating_matrix import FLAT
from calibration.scores import Array, Integers
from calibration.values import NAN


@dataclass(frozen=True)
class Ranks:
    """Two rank correlations of one pair of columns; both NaN where undefined."""

    spearman: float
    kendall: float


UNRANKED = Ranks(float("nan"), float("nan"))


def rank_correlations(x: Array, y: Array) -> Ranks:
    """Return Spearman's rho and Kendall's tau-b of two columns.

    Parameters
    ----------
    x, y : shape (n,), no NaN

    Returns
    -------
    Ranks
        rho: Pearson's r of the ranks, ties given their mean rank. tau-b: (concordant -
        discordant pairs) / sqrt(pairs not tied in x * pairs not tied in y). Both from -1 to
        1; NaN with fewer than two responses or where a column is all ties.

    Notes
    -----
    Means of equal scores that differ by rounding alone, below 1e-9 of the largest value, are
    ties: tau-b would otherwise count such a pair by the order of a sum.

    References
    ----------
    Spearman (1904), American Journal of Psychology 15, 72. Kendall (1945), Biometrika 33,
    239, for ties. The computation is scipy's.
    """
    from scipy import stats  # slow to load, and the agreement table has no tau

    rho = spearman(x, y)
    if np.isnan(rho):
        return UNRANKED
    a, b = _dense_ranks(x), _dense_ranks(y)
    tau = stats.kendalltau(a, b, method="asymptotic").statistic
    return Ranks(rho, float(tau))


def spearman(x: Array, y: Array) -> float:
    """Return Spearman's rho of two columns without NaN, as `rank_correlations` does."""
    if len(x) < 2:
        return NAN
    a, b = _dense_ranks(x), _dense_ranks(y)
    if not a.any() or not b.any():
        return NAN
    ranks = np.column_stack([_mean_ranks(a), _mean_ranks(b)])
    return float(np.asarray(np.corrcoef(ranks, rowvar=False))[1, 0])


def _mean_ranks(dense: Integers) -> Array:
    """Return ranks from 1, ties with the mean of theirs, of dense ranks from 0."""
    counts = np.bincount(dense)
    means: Array = np.cumsum(counts) - (counts - 1) / 2
    return means[dense]


def _dense_ranks(column: Array) -> Integers:
    """Return the rank of each value among the distinct values, from 0; all 0 where all are ties."""
    order = np.argsort(column, kind="stable")
    steps = np.diff(column[order]) > FLAT * np.abs(column).max()
    ranks = np.zeros(len(column), dtype=np.int64)
    ranks[order[1:]] = np.cumsum(steps)
    return ranks
