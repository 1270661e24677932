"""Holm's correction of p values for all the comparisons that were tried, shown or not."""

import gc

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
    Holm (1979), Scandinavian Journal of Statistics 6, 65. Computed by
    `statsmodels.stats.multitest.multipletests`.

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
        adjusted[known] = _corrected(every)[: known.sum()]
    return adjusted


def _corrected(p: Array) -> Array:
    """Return Holm's p of values that are all known.

    statsmodels has the collector look at every object of the process at each call, 60 ms and
    more; it is given only those of the call.
    """
    from statsmodels.stats.multitest import multipletests

    gc.freeze()
    try:
        adjusted: Array = multipletests(p, method="holm")[1]
    finally:
        gc.unfreeze()
    return adjusted
