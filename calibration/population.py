"""Like for like over clinicians like these: what it may be with other clinicians of their kind."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from calibration.agreement import Panel
from calibration.codes import NoteCode as Code
from calibration.f_interval import UNDEFINED, Interval
from calibration.grid import Grid
from calibration.like_for_like import LikeForLike, like_for_like
from calibration.scores import Array
from calibration.values import Note, note

LEAST_CLINICIANS = 3  # of two, leaving one out leaves nobody to compare with


@dataclass(frozen=True)
class Population:
    """The interval over clinicians like these; undefined with the reason."""

    ends: Interval = UNDEFINED
    reason: Note | None = None


def population_interval(
    grid: Grid, jury: Panel, found: LikeForLike, drawn: Array, confidence: float = 0.95
) -> Population:
    """Return the interval of like for like over random clinicians and random instances.

    The clinicians' part is the delete-one-clinician jackknife with t quantiles of one degree of
    freedom fewer than there are clinicians; the instances' part is the standard deviation of the
    bootstrap with normal quantiles. The half width is the root of the sum of both squares. The
    jackknife holds some of the instances' variance too, so that the interval is too wide where
    all clinicians are alike: about twice that over these clinicians.

    Parameters
    ----------
    grid, jury : as for `like_for_like`
    found : its answer
    drawn : its replicates over instances
    confidence : of the interval

    Returns
    -------
    Population
        Undefined with fewer than 3 clinicians that can be held out, where leaving one out leaves
        nothing to compare, or where no two replicates are finite.

    References
    ----------
    Arvesen (1969), Annals of Mathematical Statistics 40, 2076: the jackknife of U-statistics.
    Zou & Donner (2008), Statistics in Medicine 27, 1693: adding squared half widths.
    """
    clinicians, finite = len(found.defined), drawn[np.isfinite(drawn)]
    if clinicians < LEAST_CLINICIANS:
        few = {"clinicians": clinicians, "least": LEAST_CLINICIANS}
        return Population(reason=note(Code.POPULATION_FEW, **few))
    left = np.array([_without(grid, one.clinician, jury, found) for one in found.defined])
    if not np.isfinite(left).all() or len(finite) < 2:
        return Population(reason=note(Code.POPULATION_UNDEFINED))
    spread = (clinicians - 1) / clinicians * ((left - left.mean()) ** 2).sum()
    upper = (1 + confidence) / 2
    of_clinicians = special.stdtrit(clinicians - 1, upper) ** 2 * spread
    of_instances = special.ndtri(upper) ** 2 * finite.var(ddof=1)
    half = math.sqrt(of_clinicians + of_instances)
    return Population(Interval(found.difference - half, found.difference + half))


def _without(grid: Grid, clinician: str, jury: Panel, found: LikeForLike) -> float:
    """Return like for like as if one clinician had not been in the study."""
    kept = [place for place, name in enumerate(grid.raters) if name != clinician]
    rest = replace(
        grid,
        composites=grid.composites[:, kept],
        raters=tuple(grid.raters[place] for place in kept),
        kinds=tuple(grid.kinds[place] for place in kept),
    )
    return like_for_like(rest, jury, found.method).difference
