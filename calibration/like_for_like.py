"""Leave-one-clinician-out comparison: the jury and each clinician against the other clinicians' mean.

Its rows are called "like for like": both are compared with the same reference.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from calibration.agreement import LEAST_RESPONSES, PanelColumns
from calibration.icc import UNDEFINED, Interval
from calibration.notes import Note, note, undefined
from calibration.rating_matrix import (
    RatingMatrix,
    mean_of_given,
    without_variance,
    z_within_raters,
)
from calibration.scores import Array, Integers
from calibration.shared_notes import SAME_SCORE, TOO_FEW_RESPONSES
from calibration.values import NAN, Method
from calibration.weighted import held_iccs

LEAST_CLINICIANS = 3  # of two, leaving one out leaves nobody to compare with


@dataclass(frozen=True, eq=False)
class HeldOutClinician:
    """One clinician left out, and the rows that jury, clinician and others all scored."""

    clinician: str
    rows: Integers
    reason: Note | None = None


@dataclass(frozen=True, eq=False)
class LikeForLike:
    """Every clinician left out in turn; `undefined` those without a comparison.

    `iccs` are the pooled ICC of the jury, and that of a clinician, with the others; else NaN.
    """

    defined: tuple[HeldOutClinician, ...]
    undefined: tuple[HeldOutClinician, ...]
    iccs: tuple[float, float] = (NAN, NAN)

    @property
    def difference(self) -> float:
        """Return the jury's ICC minus a clinician's, NaN if no clinician could be compared."""
        jury, clinician = self.iccs
        return jury - clinician

    @property
    def rows(self) -> Integers:
        """Return the rows of the grid that some comparison uses."""
        rows = [held.rows for held in self.defined]
        return np.unique(np.concatenate(rows)) if rows else np.array([], dtype=np.int64)


def like_for_like(grid: RatingMatrix, jury: PanelColumns, method: Method) -> LikeForLike:
    """Leave each clinician out in turn: ICC(jury, others) minus ICC(clinician, others).

    "Others" is the mean of the remaining clinicians of a response. Both are over the same
    responses: those that the clinician, another clinician and the jury all scored. Sums of
    squares about each comparison's own means are pooled over the clinicians left out, so that one
    with few responses counts for little instead of deciding the mean, see `weighted.pooled_icc`. The
    difference is above 0 when the jury agrees with clinicians more than a clinician does; it is
    at least -2 and at most 2.
    """
    values = z_within_raters(grid.composites) if method == "paper" else grid.composites
    panel = mean_of_given(values[:, grid.columns(jury.members)])
    scored = np.where(jury.present(grid), panel, np.nan)
    clinicians, flat = grid.of_kind("clinician"), without_variance(grid.composites)
    others = _others(values[:, clinicians])
    held = [
        HeldOutClinician(grid.raters[own], np.empty(0, np.int64), undefined("flat", "no variance"))
        if flat[own] and (~np.isnan(grid.composites[:, own])).sum() > 1
        else _hold_out(grid.raters[own], values[:, own], scored, others[:, place])
        for place, own in enumerate(clinicians)
    ]
    compared = LikeForLike(
        defined=tuple(one for one in held if not one.reason),
        undefined=tuple(one for one in held if one.reason),
    )
    if not compared.defined:
        return compared
    reason, responses = None, len(compared.rows)
    of_each = [(one.clinician, one.rows) for one in compared.defined]
    figures = held_iccs(grid, jury, method, of_each, np.ones((1, grid.n_clusters)))[0]
    if responses < LEAST_RESPONSES:
        reason = undefined(*TOO_FEW_RESPONSES, responses=responses, least=LEAST_RESPONSES)
    elif not np.isfinite(figures[:2]).all():
        alike = all(without_variance(scored[one.rows, None])[0] for one in compared.defined)
        reason = undefined(*SAME_SCORE, who="the jury" if alike else "the clinicians")
    if reason:
        lost = (replace(one, reason=reason) for one in compared.defined)
        return LikeForLike((), (*compared.undefined, *lost))
    return replace(compared, iccs=(float(figures[0]), float(figures[1])))


def _others(values: Array) -> Array:
    """Return the mean of the others of a response beside each; NaN where there is no other."""
    is_known = ~np.isnan(values)
    some = np.where(is_known, values, 0.0)
    number = is_known.sum(axis=1, keepdims=True) - is_known
    total = some.sum(axis=1, keepdims=True) - some
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def _hold_out(name: str, own: Array, jury: Array, others: Array) -> HeldOutClinician:
    rows = np.flatnonzero(~(np.isnan(own) | np.isnan(jury) | np.isnan(others)))
    if len(rows) < 2:
        few = undefined(*TOO_FEW_RESPONSES, responses=len(rows), least=2)
        return HeldOutClinician(name, rows, few)
    return HeldOutClinician(name, rows)


@dataclass(frozen=True)
class Population:
    """The interval over clinicians like these; undefined with the reason."""

    ends: Interval = UNDEFINED
    reason: Note | None = None


def population_interval(
    held: LikeForLike, without: Sequence[float], error: float, confidence: float = 0.95
) -> Population:
    """Return the interval of like for like over random clinicians and random instances.

    The clinicians' part is the delete-one-clinician jackknife with t quantiles of one degree of
    freedom fewer than there are clinicians; the instances' part is the standard error of the
    jackknife over instances with normal quantiles. The half width is the root of the sum of both
    squares. The jackknife over clinicians holds some of the instances' variance too, so that the
    interval is too wide where all clinicians are alike: about twice that over these clinicians.

    Parameters
    ----------
    held : the answer of `like_for_like`
    without : its difference as if each clinician that is compared had not been in the study
    error : its standard error over instances
    confidence : of the interval

    Returns
    -------
    Population
        Undefined with fewer than 3 clinicians that can be held out, where leaving one out leaves
        nothing to compare, or where `error` is NaN.

    References
    ----------
    Arvesen (1969), Annals of Mathematical Statistics 40, 2076: the jackknife of U-statistics.
    Zou & Donner (2008), Statistics in Medicine 27, 1693: adding squared half widths.
    """
    clinicians = len(held.defined)
    if clinicians < LEAST_CLINICIANS:
        few = {"clinicians": clinicians, "least": LEAST_CLINICIANS}
        return Population(
            reason=note(
                "population_few",
                (
                    "no interval over clinicians like these: {clinicians:clinician} can be held out, and "
                    "{least} are needed"
                ),
                **few,
            )
        )
    left_out = np.array(without)
    if not (np.isfinite(left_out).all() and math.isfinite(error)):
        return Population(
            reason=note(
                "population_undefined",
                (
                    "no interval over clinicians like these: without one of them there is nothing to "
                    "compare"
                ),
            )
        )
    spread = (clinicians - 1) / clinicians * ((left_out - left_out.mean()) ** 2).sum()
    upper = (1 + confidence) / 2
    of_clinicians = special.stdtrit(clinicians - 1, upper) ** 2 * spread
    of_instances = (special.ndtri(upper) * error) ** 2
    half = math.sqrt(of_clinicians + of_instances)
    return Population(Interval(held.difference - half, held.difference + half))
