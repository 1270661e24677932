"""Holm's correction of p values for all the comparisons that were tried, shown or not."""

import numpy as np

from calibration.scores import Array
from data.errors import BadInput


def holm(p: Array, tried: int = 0) -> Array:
    """Return p values adjusted so that any false alarm among all comparisons stays at its level.

    Parameters
    ----------
    p : shape (m,)
        In [0, 1]; NaN for a comparison without a p value, which is not counted.
    tried : int
        Further comparisons that were once made and whose p is not known, 0 or more.
        They enter as p = 1. Whatever their p really was, Holm's step-down of all of them
        would give none of the p here a larger adjusted value.

    Returns
    -------
    shape (m,)
        In [p, 1], in the order given; NaN where p is.

    Raises
    ------
    BadInput
        If `tried` is below 0 or a p is outside [0, 1].

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6, 65. The same numbers as those of
    `statsmodels.stats.multitest.multipletests`, which collects all garbage at each call.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04])).tolist()
    [0.02, 0.04]
    >>> holm(np.array([0.01, 0.04]), tried=2).tolist()
    [0.04, 0.12]
    """
    values = np.asarray(p, dtype=np.float64)
    known = ~np.isnan(values)
    if tried < 0:
        raise BadInput(f"tried={tried}: it is 0 or more")
    if ((values[known] < 0) | (values[known] > 1)).any():
        raise BadInput("a p value is outside 0 to 1")
    adjusted = np.full_like(values, np.nan)
    if known.any():
        every = np.concatenate([values[known], np.ones(tried)])
        adjusted[known] = _stepped_down(every)[: known.sum()]
    return adjusted


def _stepped_down(p: Array) -> Array:
    """Return the smallest p times their number, the next times one less, none below the one before."""
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1)
    adjusted = np.empty_like(p)
    adjusted[order] = steps
    return adjusted
