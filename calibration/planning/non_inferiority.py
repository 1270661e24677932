"""Responses to show that a jury is no worse than a clinician by more than a margin."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.codes import PlanningCode
from calibration.like_for_like import pooled_icc
from calibration.planning.power import (
    CRITICAL,
    DRAWS,
    LEAST,
    MOST_RESPONSES,
    Power,
    least,
    simulated,
    wishart_factors,
)
from calibration.planning.rows import NonInferiorityRow, PlanOptions, PlanRow
from calibration.scores import Array
from calibration.values import NAN, Note, note, noted
from data.errors import BadInput


@dataclass(frozen=True)
class Rivals:
    """A jury and `clinicians` on the same responses, as assumed.

    Attributes
    ----------
    single : single-rater ICC of the clinicians, in (-1 / (clinicians - 1), 1)
    jury : correlation of the jury with each clinician; equal to `single` where it is one like them
    clinicians : on each response, 2 or more

    Raises
    ------
    BadInput
        If one is outside its range, or no such raters can be.
    """

    single: float
    jury: float
    clinicians: int = 2

    def __post_init__(self) -> None:
        if self.clinicians < 2:
            raise BadInput("like for like takes two clinicians a response or more")
        if np.linalg.eigvalsh(self.correlations)[0] < -1e-12:
            raise BadInput(
                f"a jury that correlates {self.jury:g} with clinicians whose ICC is {self.single:g} "
                "cannot be"
            )

    @property
    def least_responses(self) -> int:
        """Return the responses for which power is told: fewer leave a rater no freedom."""
        return self.clinicians + 2

    @property
    def correlations(self) -> Array:
        """Return the correlations of the clinicians and, last, the jury."""
        found = np.full((self.clinicians + 1, self.clinicians + 1), self.single)
        found[-1], found[:, -1] = self.jury, self.jury
        np.fill_diagonal(found, 1.0)
        return found


def non_inferiority_rows(rows: Sequence[PlanRow], options: PlanOptions) -> list[NonInferiorityRow]:
    """Return what the responses of a plan show at its margin, for each ICC it is made for.

    None where the plan has no margin or one clinician a response.
    """
    if options.margin is None or options.per_response < 2:
        return []
    planned = {row.basis: (row, row.n) for row in rows if row.n is not None}
    return [_row(row, n, options.margin, options) for row, n in planned.values()]


def _row(row: PlanRow, n: int, margin: float, options: PlanOptions) -> NonInferiorityRow:
    rivals = Rivals(row.icc_single, row.icc_single, options.per_response)
    found = power(rivals, margin, n, options.seed)
    return NonInferiorityRow(
        basis=row.basis,
        icc_single=row.icc_single,
        per_response=options.per_response,
        margin=margin,
        n=n,
        power=found.power,
        mc_error=found.mc_error,
        sd=found.sd,
        n_for_power=responses_for(rivals, margin, options.assurance, options.seed),
        notes=noted(note(PlanningCode.JURY_LIKE_CLINICIAN), _too_few(rivals, n)),
    )


def _too_few(rivals: Rivals, n: int) -> Note | None:
    few = n < rivals.least_responses
    return note(PlanningCode.FEW_FOR_POWER, least=rivals.least_responses) if few else None


def power(rivals: Rivals, margin: float, n: int, seed: int = 0, draws: int = DRAWS) -> Power:
    """Return the power to show non-inferiority, and the difference's SD.

    All raters are jointly normal; a study is drawn as their covariances over n responses
    (Wishart, by its triangular factor), each rater is standardised, and like for like is
    estimated as the agreement table does it. The study shows non-inferiority if the estimate is
    more than 1.96 standard deviations above -margin. For clinicians who all rate the same
    responses; where each rates a part, the table's z costs little more.

    Parameters
    ----------
    rivals : Rivals
    margin : above 0
    n : responses, one an instance
    seed, draws : of the simulation

    Returns
    -------
    Power
        NaN where n is below `rivals.least_responses`.

    References
    ----------
    Odell & Feiveson (1966), JASA 61, 199, for the triangular factor.
    """
    if n < rivals.least_responses:
        return Power(NAN, NAN, NAN)
    raters = rivals.clinicians + 1
    drawn = np.linalg.cholesky(rivals.correlations + 1e-12 * np.eye(raters))
    moments = drawn @ wishart_factors(n, raters, seed, draws)
    found = _like_for_like(moments @ moments.transpose(0, 2, 1))
    return simulated(found, found > CRITICAL * float(found.std(ddof=1)) - margin)


def responses_for(
    rivals: Rivals, margin: float, wanted: float, seed: int = 0, draws: int = DRAWS
) -> int | None:
    """Return the responses with which a share of studies show it; None above a million."""
    most = math.log(MOST_RESPONSES)

    def enough(log_n: float) -> bool:
        return power(rivals, margin, round(math.exp(log_n)), seed, draws).power >= wanted

    return math.ceil(math.exp(least(enough, math.log(LEAST), most))) if enough(most) else None


def _like_for_like(moments: Array) -> Array:
    """Return the jury's ICC with the others less a clinician's, of covariances (draws, k, k)."""
    scale = np.sqrt(np.einsum("bii->bi", moments))
    z = moments / scale[:, :, None] / scale[:, None, :]
    clinicians = z.shape[1] - 1
    others = (1 - np.eye(clinicians)) / (clinicians - 1)  # a row for each one held out
    own = z[:, :clinicians, :clinicians]
    of_jury = np.einsum("bc,hc->b", z[:, -1, :clinicians], others)
    of_clinician = np.einsum("bhc,hc->b", own, others)
    of_others = np.einsum("hc,bcd,hd->b", others, own, others)
    alone = np.full_like(of_others, clinicians)  # a variance of 1 for each one held out
    jury, clinician = (
        pooled_icc(np.array([alone, of_others, shared]), "paper")
        for shared in (of_jury, of_clinician)
    )
    gap: Array = jury - clinician
    return gap
