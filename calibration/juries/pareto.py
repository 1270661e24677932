"""The Pareto front of agreement against cost: the juries than which no cheaper one agrees as well."""

import numpy as np

from calibration.scores import Array, Flags


def on_front(icc: Array, usd: Array) -> Flags:
    """Return which juries are on the front of agreement against money.

    Parameters
    ----------
    icc, usd : shape (M,)
        NaN where there is no ICC or a cost is not known: such a jury is not on the front,
        and keeps no other off it.

    Returns
    -------
    shape (M,)
        True where no other jury has at least this ICC at no higher cost, one of the two
        being better. Juries equal in both stand or fall together.
    """
    known = np.flatnonzero(~np.isnan(icc) & ~np.isnan(usd))
    front = np.zeros(len(icc), dtype=np.bool_)
    order = known[np.lexsort((-icc[known], usd[known]))]
    best, price = -np.inf, np.nan
    for one in order:
        front[one] = icc[one] > best or (icc[one] == best and usd[one] == price)
        if icc[one] > best:
            best, price = icc[one], usd[one]
    return front
