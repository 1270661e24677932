"""Split-conformal intervals: how far off the clinicians a mapped jury composite may be."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibration.codes import NoteCode as Code
from calibration.predicting.isotonic import LEAST_FIT, IsotonicMap, isotonic_map
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN, Note, note

FOLDS = 5
ROUNDING = 1e-9  # 1 / (1 - 0.9) is a little more than 10


@dataclass(frozen=True, eq=False)
class Rated:
    """Responses that both jury and clinicians rated, in points, no NaN.

    Attributes
    ----------
    jury, clinicians : shape (n,), composites
    instances : shape (n,), a number for each response's instance
    """

    jury: Array
    clinicians: Array
    instances: Integers

    def of(self, rows: Flags | Integers) -> "Rated":
        """Return some of the responses."""
        return Rated(self.jury[rows], self.clinicians[rows], self.instances[rows])


@dataclass(frozen=True, eq=False)
class Conformal:
    """A map fitted on one half of the instances, and its error measured on the other.

    Attributes
    ----------
    map : None where there were too few responses to fit it on
    radius : float, q in points; NaN where undefined
    n_fit, n_calibration : responses the map, and q, rest on
    reason : why map or radius is undefined, or None
    """

    map: IsotonicMap | None
    radius: float
    n_fit: int
    n_calibration: int
    reason: Note | None = None

    def interval(self, jury: Array) -> tuple[Array, Array]:
        """Return map(jury) - q and map(jury) + q, not cut at the ends of any scale."""
        middle = self.map(jury) if self.map else np.full(jury.shape, np.nan)
        return middle - self.radius, middle + self.radius


def split_conformal(rated: Rated, level: float, seed: int) -> Conformal:
    """Fit the map on a random half of the instances and measure its error on the other.

    With m residuals |clinicians - map(jury)| of the calibration half, q is the
    ceil((m + 1) level)-th smallest. For a response of an instance that is exchangeable with
    these, map(jury) +- q then holds the clinicians' composite with probability >= level,
    whatever the distributions and however bad the map.

    Parameters
    ----------
    rated : Rated
        An instance goes to one half with all its responses: of n instances n // 2 to the
        fit. Responses of one instance are not exchangeable with those of others, so each
        calibration instance gives the residual of one of its responses, drawn at random:
        the promise is for a random response of a new instance.
    level : in (0, 1)
    seed : of the halves and of the responses drawn

    Returns
    -------
    Conformal
        Without map where the fit has fewer than 3 responses; radius NaN where
        m < `least_calibration(level)`.

    References
    ----------
    Lei, G'Sell, Rinaldo, Tibshirani & Wasserman (2018), section 2.2; one response an
    instance: Dunn, Wasserman & Ramdas (2023), section 3 (subsampling once).
    """
    random = np.random.default_rng(seed)
    fitting = half_of_instances(rated.instances, random)
    calibration = rated.of(~fitting)
    calibration = calibration.of(one_of_each(calibration.instances, random))
    n_fit, m = int(fitting.sum()), len(calibration.jury)
    if n_fit < LEAST_FIT:
        few = note(Code.FEW_TO_FIT, responses=n_fit, least=LEAST_FIT)
        return Conformal(None, NAN, n_fit, m, few)
    found = isotonic_map(rated.jury[fitting], rated.clinicians[fitting])
    residuals = np.abs(calibration.clinicians - found(calibration.jury))
    reason = None if m >= least_calibration(level) else _few_calibration(m, level)
    return Conformal(found, conformal_radius(residuals, level), n_fit, m, reason)


def conformal_radius(residuals: Array, level: float) -> float:
    """Return the ceil((m + 1) level)-th smallest of m residuals; NaN if that is none of them."""
    rank = _rank(len(residuals), level)
    return float(np.sort(residuals)[rank - 1]) if rank <= len(residuals) else NAN


def least_calibration(level: float) -> int:
    """Return the least m that has a radius: ceil(1 / (1 - level)) - 1, 9 for 0.9."""
    return math.ceil(1 / (1 - level) - ROUNDING / (1 - level)) - 1


def within_scale(ends: tuple[Array, Array], scale: tuple[float, float]) -> tuple[Array, Array]:
    """Return what of intervals lies on a scale.

    No composite is off its scale, so the part cut off never held the truth: the interval
    covers as often as before. NaN stays NaN.
    """
    low, high = np.maximum(ends[0], scale[0]), np.minimum(ends[1], scale[1])
    return low, high


def half_of_instances(instances: Integers, random: np.random.Generator) -> Flags:
    """Return the responses of a random half of the instances, n // 2 of n."""
    names, place = np.unique(instances, return_inverse=True)
    chosen = np.zeros(len(names), dtype=np.bool_)
    chosen[random.permutation(len(names))[: len(names) // 2]] = True
    flags: Flags = chosen[place]
    return flags


def one_of_each(instances: Integers, random: np.random.Generator) -> Integers:
    """Return the rows of one random response of each instance, in the order of the rows."""
    order = random.permutation(len(instances))
    _, first = np.unique(instances[order], return_index=True)
    return np.sort(order[first]).astype(np.int64)


@dataclass(frozen=True)
class HeldOut:
    """Of `checked` rated responses, how many their intervals `covered`."""

    covered: int
    checked: int

    @property
    def share(self) -> float:
        """Return the share covered; NaN if none was checked."""
        return self.covered / self.checked if self.checked else NAN


def held_out_coverage(rated: Rated, level: float, seed: int) -> HeldOut:
    """Check the whole procedure on rated responses that it has not seen.

    The instances are dealt into 5 folds; map and radius are made of four, and the responses
    of the fifth are checked. Each response counts once. Made of 4/5 of the instances, the
    intervals checked are a little less steady than those of the whole. A fold whose other
    four are too few for a radius is not checked.
    """
    found = list(_folds(rated, level, seed))
    return HeldOut(sum(one.covered for one in found), sum(one.checked for one in found))


def _folds(rated: Rated, level: float, seed: int) -> Iterator[HeldOut]:
    names, place = np.unique(rated.instances, return_inverse=True)
    fold = np.random.default_rng([seed, FOLDS]).permutation(len(names)) % FOLDS
    for number in range(FOLDS):
        held = fold[place] == number
        made = split_conformal(rated.of(~held), level, seed)
        if made.reason or not held.any():
            continue
        low, high = made.interval(rated.jury[held])
        true = rated.clinicians[held]
        inside = (true >= low - ROUNDING) & (true <= high + ROUNDING)
        yield HeldOut(int(inside.sum()), int(held.sum()))


def _rank(m: int, level: float) -> int:
    return math.ceil((m + 1) * (level - ROUNDING))


def _few_calibration(m: int, level: float) -> Note:
    least = least_calibration(level)
    return note(Code.FEW_TO_CALIBRATE, responses=m, least=least, level=level)
