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
from calibration.codes import NoteCode as Code
from calibration.icc import UNDEFINED, Interval
from calibration.like_for_like import (
    LEAST_CLINICIANS,
    HeldReplicates,
    LikeForLike,
    held_replicates,
    like_for_like,
)
from calibration.rating_matrix import RatingMatrix, without_variance
from calibration.resampled_moments import ResampleBatch, ResponseBlock, joint_statistic, prepare
from calibration.scores import Array
from calibration.values import NAN, Method, Noted, note, noted

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
    without : one a clinician, where there are three or more
    """

    jury: Interval = UNDEFINED
    clinician: Interval = UNDEFINED
    without: tuple[Without, ...] = ()


def jackknife_interval(value: float, deleted: Array, confidence: float = 0.95) -> Interval:
    """Return the delete-one jackknife interval of an ICC, on Fisher's z scale.

    Parameters
    ----------
    value : the ICC, from -1 to 1
    deleted : shape (m,), the ICC without each instance (or group of instances) in turn
    confidence : of the interval

    Returns
    -------
    Interval
        tanh(z -+ t s), s being the jackknife's standard error of z = atanh(value) and t the
        quantile with Satterthwaite's degrees of freedom, from the fourth moment of the values
        left out and at least 2, at most m - 1. NaN where value or any of `deleted` is.

    References
    ----------
    Efron & Stein (1981), Annals of Statistics 9, 586. Satterthwaite (1946), Biometrics
    Bulletin 2, 110.
    """
    m = len(deleted)
    if m < 2 or not (math.isfinite(value) and np.isfinite(deleted).all()):
        return UNDEFINED
    z = np.arctanh(np.clip([value, *deleted], -LARGEST, LARGEST))
    about = z[1:] - z[1:].mean()
    error = math.sqrt((m - 1) / m * float(about @ about))
    spread = float((about**2).mean())
    kurtosis = float((about**4).mean()) / spread**2 if spread > 0 else 1.0
    freedom = float(np.clip(2 * m / (kurtosis - 1) if kurtosis > 1 else m - 1, 2, m - 1))
    half = float(special.stdtrit(freedom, (1 + confidence) / 2)) * error
    low, high = np.tanh([z[0] - half, z[0] + half])
    return Interval(float(low), float(high))


def yardstick(
    grid: RatingMatrix, jury: PanelColumns, held: LikeForLike, method: Method
) -> Yardstick:
    """Return the intervals that a verdict rests on beside that of the difference itself.

    Parameters
    ----------
    grid, jury, method : as for `like_for_like`
    held : its answer
    """
    if not held.defined:
        return Yardstick()
    of_jury, of_clinician = _intervals(grid, jury, held, method)[1][:2]
    without: tuple[Without, ...] = ()
    if len(held.defined) >= LEAST_CLINICIANS:
        names = [comparison.clinician for comparison in held.defined]
        without = tuple(_without(grid, jury, name, method) for name in names)
    return Yardstick(of_jury, of_clinician, without)


def _without(grid: RatingMatrix, jury: PanelColumns, clinician: str, method: Method) -> Without:
    others = np.flatnonzero(np.array(grid.raters, dtype=object) != clinician)
    rest = grid.of_columns(others)
    held = like_for_like(rest, jury, method)
    if not held.defined:
        return Without(clinician, NAN, NAN)
    return Without(clinician, held.difference, _intervals(rest, jury, held, method)[1][1].low)


@dataclass(frozen=True, eq=False)
class _Iccs:
    """The ICCs of like for like one by one, as a statistic: jury, a clinician, each clinician."""

    of: HeldReplicates

    def sums(self, part: ResponseBlock) -> Array:
        return self.of.sums(part)

    def value(self, sums: Array, stack: ResampleBatch) -> Array:
        return self.of.iccs(sums, stack)


def _intervals(
    grid: RatingMatrix, jury: PanelColumns, held: LikeForLike, method: Method
) -> tuple[Array, list[Interval]]:
    """Return the ICCs of the jury, of a clinician and of each clinician, with their intervals."""
    prepared = prepare(grid, method)
    statistic = joint_statistic(prepared, [_Iccs(held_replicates(grid, jury, held, method))])
    groups = min(grid.n_clusters, MOST_GROUPS)
    mixed = np.random.default_rng(0).permutation(grid.n_clusters)
    counts = np.ones((1 + groups, grid.n_clusters))
    counts[1 + np.arange(grid.n_clusters) % groups, mixed] = 0.0
    values = statistic(counts)
    return values[0], [jackknife_interval(column[0], column[1:]) for column in values.T]


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
    values, ends = _intervals(own, everyone, held, method) if held.defined else (np.empty(0), [])
    for compared, icc, interval in zip(held.defined, values[2:], ends[2:], strict=True):
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
                note(Code.CLINICIAN_AGAINST, **about) if against else None,
                note(Code.CLINICIAN_UNCLEAR, **about) if unclear else None,
            ),
        )
    flat = dict(zip(own.raters, without_variance(own.composites).tolist(), strict=True))
    for compared in held.undefined:
        name, scored = compared.clinician, len(compared.rows)
        constant = flat[name] and int((~np.isnan(own.composites[:, own.columns([name])])).sum()) > 1
        yield ClinicianRow(
            benchmark, name, n_responses=scored, constant=constant, notes=noted(compared.reason)
        )
