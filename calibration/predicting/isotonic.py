"""The jury's composite on the clinicians' scale: a map that only ever rises."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from calibration.scores import Array, Flags
from data.errors import TooFew

LEAST_FIT = 3  # responses: as few as an ICC takes
DIGITS = 9  # means of the same scores, added in another order, are one composite


@dataclass(frozen=True, eq=False)
class IsotonicMap:
    """A map from jury composites to clinicians' composites, both in points.

    Attributes
    ----------
    knots : shape (k,), increasing jury composites it was fitted on
    values : shape (k,), never decreasing, within the range of the clinicians' composites
    """

    knots: Array
    values: Array

    def __call__(self, jury: Array) -> Array:
        """Return the clinicians' composite for jury composites of any shape; NaN stays NaN.

        A straight line between two knots; beyond the first and the last, their values.
        """
        mapped: Array = np.interp(jury, self.knots, self.values)
        return mapped

    def outside(self, jury: Array) -> Flags:
        """Return which jury composites lie beyond all that the map was fitted on."""
        slack = 10**-DIGITS
        beyond: Flags = (jury < self.knots[0] - slack) | (jury > self.knots[-1] + slack)
        return beyond

    @property
    def flat(self) -> bool:
        """Tell whether every response is given the same value: the jury told it nothing."""
        return bool(np.ptp(self.values) <= 10**-DIGITS)


def isotonic_map(jury: Array, clinicians: Array) -> IsotonicMap:
    """Fit the map that never falls and is nearest to the clinicians by least squares.

    Parameters
    ----------
    jury, clinicians : shape (n,)
        Composites of the same n >= 3 responses, in points, no NaN. Responses with one jury
        composite are one knot, at their mean, with their number as its weight.

    Returns
    -------
    IsotonicMap
        value[i] = max over a <= i of min over b >= i of the mean of knots a to b. Where a
        higher jury composite does not go with a higher clinicians' one it is level; with a
        jury that ranks against the clinicians it is level throughout.

    Raises
    ------
    TooFew
        If n < 3.

    References
    ----------
    Barlow, Bartholomew, Bremner & Brunk (1972), Statistical Inference under Order
    Restrictions, chapter 1. The computation is `scipy.optimize.isotonic_regression`.
    """
    if len(jury) < LEAST_FIT:
        raise TooFew(f"{len(jury)} rated responses to fit the map on, and {LEAST_FIT} are needed")
    _, place = np.unique(np.round(jury, DIGITS), return_inverse=True)
    weights = np.bincount(place).astype(np.float64)
    knots, means = (np.bincount(place, weights=one) / weights for one in (jury, clinicians))
    values = isotonic_regression(means, weights=weights).x
    return IsotonicMap(knots, np.asarray(values, dtype=np.float64))
