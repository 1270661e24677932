"""The clinicians as a yardstick: whether they agree with one another, each of them, and without each.

A jury can be no worse than a clinician only where clinicians agree: an active control has to work
(ICH E10; Piaggio et al. 2012). Intervals are of the delete-one-instance jackknife, so that neither
seed nor number of resamples moves them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special

from calibration.agreement import PanelColumns
from calibration.icc import UNDEFINED, Interval
from calibration.like_for_like import (
    LEAST_CLINICIANS,
    HeldReplicates,
    LikeForLike,
    held_replicates,
    like_for_like,
)
from calibration.notes import Noted, note, noted
from calibration.rating_matrix import RatingMatrix, without_variance
from calibration.resampled_moments import ResampleBatch, ResponseBlock, joint_statistic, prepare
from calibration.scores import Array
from calibration.values import NAN, Method

MOST_GROUPS = 200  # more instances are left out some at a time: the interval hardly changes
LARGEST = 1 - 1e-12  # of an ICC on Fisher's scale


@dataclass(frozen=True)
class ClinicianRow(Noted):
    """One clinician against the mean of the others, on the responses that both scored.

    Attributes
    ----------
    benchmark, rater : the clinician's handle
    icc, low, high : the ICC of like for like, from -1 to 1, with its 95 % interval; NaN: undefined
    n_responses : that it rests on
    against_others : whether the whole interval lies below 0
    constant : whether all composites of the clinician are equal
    fast : whether they came faster than responses can be read; None: not known
    """

    benchmark: str
    rater: str
    icc: float = NAN
    low: float = NAN
    high: float = NAN
    n_responses: int = 0
    against_others: bool = False
    constant: bool = False
    fast: bool | None = None


@dataclass(frozen=True, slots=True)
class Without:
    """Like for like as if one clinician had not been in the study; NaN: undefined.

    Attributes
    ----------
    clinician : who is left out
    difference : the jury's ICC minus a clinician's
    clinician_low : lower 95 % end of a clinician's ICC with the others
    """

    clinician: str
    difference: float
    clinician_low: float


@dataclass(frozen=True, slots=True)
class Yardstick:
    """How far the jury and a clinician agree with the other clinicians, and without each of them.

    Attributes
    ----------
    jury, clinician : 95 % intervals of the two ICCs whose difference is like for like
    difference : its own 95 % interval
    corrected : that at the level that was asked for
    without : one a clinician, where there are three or more
    """

    jury: Interval = UNDEFINED
    clinician: Interval = UNDEFINED
    difference: Interval = UNDEFINED
    corrected: Interval = UNDEFINED
    without: tuple[Without, ...] = ()


@dataclass(frozen=True, slots=True)
class _Jackknife:
    """An ICC of two raters with the jackknife of its Fisher's z, z being of a single rater's ICC."""

    icc: float
    z: float
    about: Array
    error: float
    t: float

    @property
    def ends(self) -> Interval:
        """Return the two ends, back on the scale of the ICC."""
        low, high = (
            2 * single / (1 + abs(single))
            for single in np.tanh([self.z - self.t * self.error, self.z + self.t * self.error])
        )
        return Interval(float(low), float(high))


def jackknife_interval(icc: float, deleted: Array, confidence: float = 0.95) -> Interval:
    """Return the delete-one jackknife interval of an ICC of two raters, on Fisher's z scale.

    Parameters
    ----------
    icc : from -1 to 1, mirrored below 0 as `like_for_like.pooled_icc` has it
    deleted : shape (m,), the ICC without each instance (or group of instances) in turn
    confidence : of the interval

    Returns
    -------
    Interval
        z -+ t s, taken back, of z = atanh(r) with r = ICC / (2 - |ICC|) the consistency of a single
        rater; s is the jackknife's standard error and t the quantile with Satterthwaite's degrees
        of freedom, from the fourth moment of the values left out, at least 2 and at most m - 1.
        NaN where the ICC or any of `deleted` is.

    References
    ----------
    Efron & Stein (1981), Annals of Statistics 9, 586. Satterthwaite (1946), Biometrics
    Bulletin 2, 110.
    """
    found = _jackknife(icc, deleted, confidence)
    return found.ends if found else UNDEFINED


def _jackknife(icc: float, deleted: Array, confidence: float) -> _Jackknife | None:
    m = len(deleted)
    if m < 2 or not (math.isfinite(icc) and np.isfinite(deleted).all()):
        return None
    iccs = np.array([icc, *deleted])
    z = np.arctanh(np.clip(iccs / (2 - np.abs(iccs)), -LARGEST, LARGEST))
    about = z[1:] - z[1:].mean()
    spread = float((about**2).mean())
    kurtosis = float((about**4).mean()) / spread**2 if spread > 0 else 1.0
    freedom = float(np.clip(2 * m / (kurtosis - 1) if kurtosis > 1 else m - 1, 2, m - 1))
    t = float(special.stdtrit(freedom, (1 + confidence) / 2))
    return _Jackknife(icc, float(z[0]), about, math.sqrt((m - 1) * spread), t)


def difference_interval(
    iccs: tuple[float, float], deleted: tuple[Array, Array], confidence: float = 0.95
) -> Interval:
    """Return the interval of the difference of two ICCs, the first minus the second.

    Parameters
    ----------
    iccs, deleted : of each, as for `jackknife_interval`, without the same instances in turn

    Returns
    -------
    Interval
        The two jackknife intervals put together, with the correlation of their z. NaN where
        either is undefined.

    References
    ----------
    Zou (2007), Psychological Methods 12, 399: square-and-add.
    """
    first, second = (
        _jackknife(icc, values, confidence) for icc, values in zip(iccs, deleted, strict=True)
    )
    if first is None or second is None:
        return UNDEFINED
    size = math.sqrt(float(first.about @ first.about) * float(second.about @ second.about))
    correlation = float(first.about @ second.about) / size if size > 0 else 0.0
    a, b = first.ends, second.ends

    def half(one: float, other: float) -> float:
        return math.sqrt(max(one**2 + other**2 - 2 * correlation * one * other, 0.0))

    difference = first.icc - second.icc
    return Interval(
        difference - half(first.icc - a.low, b.high - second.icc),
        difference + half(a.high - first.icc, second.icc - b.low),
    )


def yardstick(
    grid: RatingMatrix,
    jury: PanelColumns,
    held: LikeForLike,
    method: Method,
    level: float = 0.95,
) -> Yardstick:
    """Return the intervals that a verdict rests on beside that of the difference itself.

    Parameters
    ----------
    grid, jury, method : as for `like_for_like`
    held : its answer
    level : of the corrected interval
    """
    if not held.defined:
        return Yardstick()
    values = _values(grid, jury, held, method)[:, :2].T
    iccs, deleted = (float(values[0, 0]), float(values[1, 0])), (values[0, 1:], values[1, 1:])
    of_jury, of_clinician = map(jackknife_interval, iccs, deleted)
    of_difference = difference_interval(iccs, deleted)
    corrected = difference_interval(iccs, deleted, level)
    without: tuple[Without, ...] = ()
    if len(held.defined) >= LEAST_CLINICIANS:
        names = [comparison.clinician for comparison in held.defined]
        without = tuple(_without(grid, jury, name, method) for name in names)
    return Yardstick(of_jury, of_clinician, of_difference, corrected, without)


def _without(grid: RatingMatrix, jury: PanelColumns, clinician: str, method: Method) -> Without:
    others = np.flatnonzero(np.array(grid.raters, dtype=object) != clinician)
    rest = grid.of_columns(others)
    held = like_for_like(rest, jury, method)
    if not held.defined:
        return Without(clinician, NAN, NAN)
    clinicians = _values(rest, jury, held, method)[:, 1]
    return Without(
        clinician, held.difference, jackknife_interval(clinicians[0], clinicians[1:]).low
    )


@dataclass(frozen=True, eq=False)
class _Iccs:
    """The ICCs of like for like one by one, as a statistic: jury, a clinician, each clinician."""

    of: HeldReplicates

    def sums(self, part: ResponseBlock) -> Array:
        return self.of.sums(part)

    def value(self, sums: Array, stack: ResampleBatch) -> Array:
        return self.of.iccs(sums, stack)


def _values(grid: RatingMatrix, jury: PanelColumns, held: LikeForLike, method: Method) -> Array:
    """Return the ICCs of the jury, of a clinician and of each, (1 + m, 2 + clinicians).

    The first row is of all instances, the others without each (or each group) in turn.
    """
    prepared = prepare(grid, method)
    statistic = joint_statistic(prepared, [_Iccs(held_replicates(grid, jury, held, method))])
    groups = min(grid.n_clusters, MOST_GROUPS)
    mixed = np.random.default_rng(0).permutation(grid.n_clusters)
    counts = np.ones((1 + groups, grid.n_clusters))
    counts[1 + np.arange(grid.n_clusters) % groups, mixed] = 0.0
    return statistic(counts)


def clinician_rows(benchmark: str, grid: RatingMatrix, method: Method) -> Iterator[ClinicianRow]:
    """Yield a row for each clinician of an analysed set, whatever jurors scored.

    Parameters
    ----------
    benchmark : what the rows are of
    grid : of the analysed set
    method : "paper" or "published"
    """
    own = grid.of_columns(grid.of_kind("clinician"))
    everyone = PanelColumns(own.raters, 1)
    held = like_for_like(own, everyone, method)
    values = _values(own, everyone, held, method)[:, 2:].T if held.defined else np.empty((0, 1))
    for compared, (icc, *deleted) in zip(held.defined, values, strict=True):
        interval = jackknife_interval(float(icc), np.array(deleted))
        name, against = compared.clinician, interval.high < 0
        unclear = not against and not interval.low > 0
        about = {"clinician": name, "icc": float(icc), "low": interval.low, "high": interval.high}
        yield ClinicianRow(
            benchmark,
            name,
            float(icc),
            interval.low,
            interval.high,
            len(compared.rows),
            against,
            notes=noted(
                note(
                    "clinician_against",
                    (
                        "{clinician} ranks responses against the other clinicians (ICC {icc:z.2f}, {low:z.2f} "
                        "to {high:z.2f})"
                    ),
                    **about,
                )
                if against
                else None,
                note(
                    "clinician_unclear",
                    "agreement of {clinician} with the other clinicians is not shown (ICC {icc:z.2f})",
                    **about,
                )
                if unclear
                else None,
            ),
        )
    flat = dict(zip(own.raters, without_variance(own.composites).tolist(), strict=True))
    for compared in held.undefined:
        name, scored = compared.clinician, len(compared.rows)
        constant = flat[name] and int((~np.isnan(own.composites[:, own.columns([name])])).sum()) > 1
        yield ClinicianRow(
            benchmark, name, n_responses=scored, constant=constant, notes=noted(compared.reason)
        )
