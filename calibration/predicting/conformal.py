"""Map jury scores to the clinicians' scale, with cross-conformal prediction intervals."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import isotonic_regression

from calibration.notes import Note, note, undefined
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN
from data.errors import TooFew

LEAST_FIT = 3  # responses: as few as an ICC takes
DIGITS = 9  # means of the same scores, added in another order, are one composite
FOLDS = 5  # of the check on held-out responses
MOST_PARTS = 10  # that instances are dealt into; of fewer instances each is a part
CELLS = 2**21  # responses x jury composites held at a time
ROUNDING = 1e-9  # 1 / (1 - 0.9) is a little more than 10


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


def isotonic_map(jury: Array, clinicians: Array) -> IsotonicMap:
    """Fit the non-decreasing map that is nearest to the clinicians by least squares.

    Parameters
    ----------
    jury, clinicians : shape (n,)
        Composites of the same n >= 3 responses, in points, no NaN. Responses with one jury
        composite are one knot, at their mean, with their number as its weight.

    Returns
    -------
    IsotonicMap
        value[i] = max over a <= i of min over b >= i of the mean of knots a to b. It is level
        where a higher jury composite does not come with a higher clinicians' one, and level
        throughout for a jury that ranks the responses in reverse.

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
    knots, means = (
        np.bincount(place, weights=composites) / weights for composites in (jury, clinicians)
    )
    values = isotonic_regression(means, weights=weights).x
    return IsotonicMap(knots, np.asarray(values, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class RatedResponses:
    """Responses that both jury and clinicians rated, in points, no NaN.

    Attributes
    ----------
    jury, clinicians : shape (n,), composites
    instances : shape (n,), a number for each response's instance
    """

    jury: Array
    clinicians: Array
    instances: Integers

    def of(self, rows: Flags | Integers) -> "RatedResponses":
        """Return some of the responses."""
        return RatedResponses(self.jury[rows], self.clinicians[rows], self.instances[rows])


@dataclass(frozen=True, eq=False)
class ConformalMap:
    """A map fitted on all rated responses, and maps without each part of them, for the intervals.

    Attributes
    ----------
    map : None where there were too few responses to fit it on
    maps : fitted without each part of the instances in turn; empty where undefined
    part, errors, weights : shape (n,)
        The part that a response is in, |clinicians - map without that part|, and its share of
        the weight 1 / (instances + 1) that all responses to an instance have together.
    n_fit, n_calibration : responses the map was fitted on, and instances behind the intervals
    radius : half the mean width of the intervals at the rated responses, in points
    reason : why map or intervals are undefined, or None
    """

    map: IsotonicMap | None
    maps: tuple[IsotonicMap, ...]
    part: Integers
    errors: Array
    weights: Array
    level: float
    n_fit: int
    n_calibration: int
    radius: float = NAN
    reason: Note | None = None

    def interval(self, jury: Array) -> tuple[Array, Array]:
        """Return the two ends for jury composites (N,), not cut at the ends of any scale."""
        values, place = np.unique(jury, return_inverse=True)
        ends, error = np.full((2, len(values)), np.nan), self.errors[:, None]
        batch = max(1, CELLS // max(1, len(self.errors)))
        for start in range(0, len(values) if self.maps else 0, batch):
            rows = slice(start, start + batch)
            middle = np.stack([fitted(values[rows]) for fitted in self.maps])[self.part]
            ends[0, rows] = -weighted_quantile(error - middle, self.weights, self.level)
            ends[1, rows] = weighted_quantile(error + middle, self.weights, self.level)
        return ends[0, place], ends[1, place]


def cross_conformal(rated: RatedResponses, level: float, seed: int) -> ConformalMap:
    """Fit the map on all rated responses, and estimate its error on parts left out of the fit.

    The instances are dealt into 10 parts; fewer instances are each a part. For every response i,
    the map without its part gives the error e_i and, for a new jury composite x, the two values
    map_i(x) - e_i and map_i(x) + e_i. The interval is from the lower quantile of the first to
    the upper quantile of the second (CV+).

    The m instances count the same, whatever their number of responses: each response to an
    instance has an equal share of 1 / (m + 1), and as much is at infinity. There is no map where
    fewer than 3 responses are rated, and no interval where any part leaves fewer than 3, or
    m < `least_calibration(level)`.

    For a random response of a new instance that is exchangeable with these, the interval holds
    the clinicians' composite with a probability of about `level`, in simulations too, as far as
    the map changes little when a part is left out. For any distribution and any map the
    guarantee is 2 level - 1 where each instance is a part of its own, and at most 1 / 11 less
    with 10 parts.

    References
    ----------
    CV+ and its guarantee: Barber, Candes, Ramdas & Tibshirani (2021), Annals of Statistics 49,
    486, theorems 1 and 4. Weights of several responses to an instance: Lee, Barber & Willett
    (2023), arXiv 2306.06342, hierarchical jackknife+.
    """
    names, place = np.unique(rated.instances, return_inverse=True)
    n, m = len(place), len(names)
    full_map = isotonic_map(rated.jury, rated.clinicians) if n >= LEAST_FIT else None
    parts = np.random.default_rng(seed).permutation(m) % max(1, min(MOST_PARTS, m))
    part = parts[place].astype(np.int64)
    reason, least = None, least_calibration(level)
    if (left := n - int(np.bincount(part).max(initial=0))) < LEAST_FIT:
        reason = undefined(
            "few_to_fit",
            "the map has {responses} rated responses to be fitted on, {least} are needed",
            responses=left,
            least=LEAST_FIT,
        )
    elif m < least:
        reason = note(
            "few_to_calibrate",
            f"no interval: {{responses:rated instance}}, {{least}} are needed for {100 * level:g} %",
            responses=m,
            least=least,
            level=level,
        )
    if reason:
        none = np.empty(0)
        return ConformalMap(full_map, (), part, none, none, level, n, m, reason=reason)
    maps = tuple(
        isotonic_map(rated.jury[part != number], rated.clinicians[part != number])
        for number in range(int(parts.max()) + 1)
    )
    held_out = np.stack([fitted(rated.jury) for fitted in maps])[part, np.arange(n)]
    weights = 1 / (np.bincount(place)[place] * (m + 1))
    conformal = ConformalMap(
        full_map,
        maps,
        part,
        np.abs(rated.clinicians - held_out),
        weights,
        level,
        n_fit=n,
        n_calibration=m,
    )
    low, high = conformal.interval(rated.jury)
    return replace(conformal, radius=float((high - low).mean()) / 2)


def weighted_quantile(values: Array, weights: Array, level: float) -> Array:
    """Return the least value of each column at which weights add up to a level.

    Parameters
    ----------
    values : shape (n, N)
    weights : shape (n,), which add up to less than 1: the rest is at infinity
    level : in (0, 1)

    Returns
    -------
    shape (N,), infinite where the weights do not reach the level
    """
    order = np.argsort(values, axis=0)
    reached = np.cumsum(weights[order], axis=0) >= level - ROUNDING
    first = np.take_along_axis(order, reached.argmax(axis=0)[None], axis=0)
    quantiles: Array = np.take_along_axis(values, first, axis=0)[0]
    return np.where(reached[-1], quantiles, np.inf)


def least_calibration(level: float) -> int:
    """Return the least m that has an interval: ceil(1 / (1 - level)) - 1, 9 for 0.9."""
    return math.ceil(1 / (1 - level) - ROUNDING / (1 - level)) - 1


def held_out_coverage(rated: RatedResponses, level: float, seed: int) -> tuple[float, int]:
    """Return the share of rated responses inside intervals computed without them, and of how many.

    The instances are dealt into 5 folds: maps and errors come from four, and the responses of
    the fifth are checked. Each response counts once. Since the intervals rest on 4/5 of the
    instances, they vary a little more than those of the whole. A fold whose other four are too
    few for an interval is not checked; the share of none is NaN.
    """
    names, place = np.unique(rated.instances, return_inverse=True)
    fold = np.random.default_rng([seed, FOLDS]).permutation(len(names)) % FOLDS
    covered = checked = 0
    for number in range(FOLDS):
        in_fold = fold[place] == number
        conformal = cross_conformal(rated.of(~in_fold), level, seed)
        if conformal.reason or not in_fold.any():
            continue
        low, high = conformal.interval(rated.jury[in_fold])
        clinicians = rated.clinicians[in_fold]
        inside = (clinicians >= low - ROUNDING) & (clinicians <= high + ROUNDING)
        covered, checked = covered + int(inside.sum()), checked + int(in_fold.sum())
    return (covered / checked if checked else NAN), checked
