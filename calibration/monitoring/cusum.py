"""A one-sided CUSUM: small falls add up until they cannot be chance."""

from dataclasses import dataclass

import numpy as np

from calibration.scores import Array

ALLOWANCE = 0.5  # k, in standard errors: half the fall that is to be found soonest
LIMIT = 4.0  # h, in standard errors: the alarm


@dataclass(frozen=True, eq=False)
class Cusum:
    """What has added up by the end of each period, and where it first reached the limit.

    Attributes
    ----------
    sums : shape (periods,)
        At least 0. A period that cannot be compared leaves the sum before it as it was.
    alarm : int or None
        The first period whose sum reaches the limit.
    """

    sums: Array
    alarm: int | None


def falling_cusum(
    values: Array, errors: Array, target: float, k: float = ALLOWANCE, h: float = LIMIT
) -> Cusum:
    """Add up by how much values lie below a target, in units of their standard errors.

    S_t = max(0, S_(t-1) + (target - value_t) / error_t - k), S_0 = 0; alarm where S_t >= h.

    Parameters
    ----------
    values : shape (periods,), in the order of time; NaN where there is none
    errors : shape (periods,), standard errors above 0; NaN where there is none
    target : float
        What the values are while nothing has changed; NaN compares nothing.
    k, h : float
        Allowance and limit, in standard errors.

    Returns
    -------
    Cusum
        Values above the target never make a sum negative: a good year does not hide a fall.

    References
    ----------
    Page (1954), Biometrika 41, 100. Montgomery (2013), Introduction to Statistical Quality
    Control, section 9.1.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        below = (target - np.asarray(values)) / np.asarray(errors)
    sums, total = np.zeros(len(below)), 0.0
    for place, step in enumerate(below):
        if np.isfinite(step):
            total = max(0.0, total + float(step) - k)
        sums[place] = total
    reached = np.flatnonzero(sums >= h)
    return Cusum(sums, int(reached[0]) if len(reached) else None)
