"""The clinicians as a yardstick: whether they agree with one another, each of them, and without each.

A jury can be no worse than a clinician only where clinicians agree: an active control has to work
(ICH E10; Piaggio et al. 2012). Intervals are of the delete-one-instance jackknife, so that neither
seed nor number of resamples moves them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibration import weighted
from calibration.agreement import PanelColumns
from calibration.icc import UNDEFINED, Interval
from calibration.intervals import icc_difference, jackknife_error, jackknife_interval, left_out
from calibration.like_for_like import (
    LEAST_CLINICIANS,
    LikeForLike,
    like_for_like,
)
from calibration.notes import Noted, note, noted
from calibration.rating_matrix import RatingMatrix, without_variance
from calibration.scores import Array
from calibration.values import NAN, Method


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
    error : standard error of the difference over instances, NaN where it is undefined
    resamples, undefined : instances, or groups of them, that were left out in turn; of how many
        the difference is undefined without them
    """

    jury: Interval = UNDEFINED
    clinician: Interval = UNDEFINED
    difference: Interval = UNDEFINED
    corrected: Interval = UNDEFINED
    without: tuple[Without, ...] = ()
    error: float = NAN
    resamples: int = 0
    undefined: int = 0


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
    of_jury, of_clinician = held_iccs(grid, jury, held, method)[:, :2].T
    without: tuple[Without, ...] = ()
    if len(held.defined) >= LEAST_CLINICIANS:
        names = [comparison.clinician for comparison in held.defined]
        without = tuple(_without(grid, jury, name, method) for name in names)
    return Yardstick(
        jackknife_interval(of_jury, mirrored=True),
        jackknife_interval(of_clinician, mirrored=True),
        _ends(of_jury, of_clinician, 0.95),
        _ends(of_jury, of_clinician, level),
        without,
        jackknife_error(of_jury - of_clinician),
        len(of_jury) - 1,
        int((~np.isfinite(of_jury - of_clinician)[1:]).sum()),
    )


def _ends(of_jury: Array, of_clinician: Array, level: float) -> Interval:
    found = icc_difference(of_jury, of_clinician, level, mirrored=True)
    return Interval(found.low, found.high)


def _without(grid: RatingMatrix, jury: PanelColumns, clinician: str, method: Method) -> Without:
    others = np.flatnonzero(np.array(grid.raters, dtype=object) != clinician)
    rest = grid.of_columns(others)
    held = like_for_like(rest, jury, method)
    if not held.defined:
        return Without(clinician, NAN, NAN)
    of_clinician = held_iccs(rest, jury, held, method)[:, 1]
    return Without(clinician, held.difference, jackknife_interval(of_clinician, mirrored=True).low)


def held_iccs(grid: RatingMatrix, jury: PanelColumns, held: LikeForLike, method: Method) -> Array:
    """Return the ICCs of the jury, of a clinician and of each, (1 + m, 2 + clinicians).

    The first row is of all instances, the others without each (or each group) in turn.
    """
    compared = [(one.clinician, one.rows) for one in held.defined]
    return weighted.held_iccs(grid, jury, method, compared, left_out(grid.n_clusters))


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
    iccs = held_iccs(own, everyone, held, method)[:, 2:].T if held.defined else np.empty((0, 1))
    for compared, values in zip(held.defined, iccs, strict=True):
        icc, interval = float(values[0]), jackknife_interval(values, mirrored=True)
        name, against = compared.clinician, interval.high < 0
        unclear = not against and not interval.low > 0
        about = {"clinician": name, "icc": icc, "low": interval.low, "high": interval.high}
        yield ClinicianRow(
            benchmark,
            name,
            icc,
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
