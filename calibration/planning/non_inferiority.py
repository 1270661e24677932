"""Responses to show that a jury is no worse than a clinician by more than a margin."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.codes import NoteCode as Code
from calibration.planning.power import CLOSE, CRITICAL, DRAWS, MOST_RESPONSES
from calibration.planning.rows import Basis, PlanOptions, PlanRow
from calibration.scores import Array
from calibration.values import NAN, Noted, note, noted
from data.errors import BadInput

LEAST = 4  # responses for which power is told


@dataclass(frozen=True)
class NonInferiorityRow(Noted):
    """What n responses show of a jury that is truly as good as a clinician.

    Attributes
    ----------
    basis : of the single-rater ICC `icc_single`, as in the rows of the plan
    margin : in ICC of like for like
    power, mc_error : share of simulated studies that show it, and its error from simulating
    sd : of the estimated difference
    n_for_power : responses for the share that the plan is to assure; None above a million
    """

    basis: Basis
    icc_single: float
    per_response: int
    margin: float
    n: int
    power: float = NAN
    mc_error: float = NAN
    sd: float = NAN
    n_for_power: int | None = None


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
    planned = {row.basis: row for row in rows if row.n is not None}
    return [_row(row, options.margin, options) for row in planned.values()]


def _row(row: PlanRow, margin: float, options: PlanOptions) -> NonInferiorityRow:
    rivals = Rivals(row.icc_single, row.icc_single, options.per_response)
    n = max(row.n or LEAST, LEAST)
    shown, sd = power(rivals, margin, n, options.seed)
    return NonInferiorityRow(
        basis=row.basis,
        icc_single=row.icc_single,
        per_response=options.per_response,
        margin=margin,
        n=n,
        power=shown,
        mc_error=math.sqrt(shown * (1 - shown) / DRAWS),
        sd=sd,
        n_for_power=responses_for(rivals, margin, options.assurance, options.seed),
        notes=noted(note(Code.JURY_LIKE_CLINICIAN)),
    )


def power(
    rivals: Rivals, margin: float, n: int, seed: int = 0, draws: int = DRAWS
) -> tuple[float, float]:
    """Return the share of studies that show non-inferiority, and the difference's SD.

    All raters are jointly normal; a study is drawn as their covariances over n responses
    (Wishart, by its triangular factor), each rater is standardised, and like for like is
    estimated as the agreement table does it. The study shows non-inferiority if the estimate is
    more than 1.96 standard deviations above -margin. For clinicians who all rate the same
    responses; where each rates a part, the table's z costs little more.

    Parameters
    ----------
    rivals : Rivals
    margin : above 0
    n : responses, one an instance, 4 or more
    seed, draws : of the simulation

    References
    ----------
    Odell & Feiveson (1966), JASA 61, 199, for the triangular factor.
    """
    if n < LEAST:
        raise BadInput(f"{n} responses: power is told for {LEAST} or more")
    drawn = np.linalg.cholesky(rivals.correlations + 1e-12 * np.eye(rivals.clinicians + 1))
    moments = drawn @ _factors(n, rivals.clinicians + 1, seed, draws)
    found = _like_for_like(moments @ moments.transpose(0, 2, 1))
    sd = float(found.std(ddof=1))
    return float(np.mean(found > CRITICAL * sd - margin)), sd


def responses_for(
    rivals: Rivals, margin: float, wanted: float, seed: int = 0, draws: int = DRAWS
) -> int | None:
    """Return the responses with which a share of studies show it; None above a million."""
    low, high = math.log(LEAST), math.log(MOST_RESPONSES)

    def enough(log_n: float) -> bool:
        return power(rivals, margin, round(math.exp(log_n)), seed, draws)[0] >= wanted

    if not enough(high):
        return None
    while high - low > CLOSE:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return math.ceil(math.exp(high))


def _factors(n: int, raters: int, seed: int, draws: int) -> Array:
    """Return lower triangles (draws, raters, raters) whose squares are Wishart, n - 1 degrees."""
    random = np.random.default_rng(seed)
    factors = np.zeros((draws, raters, raters))
    for place in range(raters):
        factors[:, place, place] = np.sqrt(random.chisquare(max(n - 1 - place, 1), draws))
        factors[:, place, :place] = random.normal(size=(draws, place))
    return factors


def _like_for_like(moments: Array) -> Array:
    """Return the jury's ICC with the others less a clinician's, of covariances (draws, k, k)."""
    scale = np.sqrt(np.einsum("bii->bi", moments))
    z = moments / scale[:, :, None] / scale[:, None, :]
    clinicians = z.shape[1] - 1
    others = (1 - np.eye(clinicians)) / (clinicians - 1)  # a row for each one held out
    own = z[:, :clinicians, :clinicians]
    of_jury = np.einsum("bc,hc->b", z[:, -1, :clinicians], others)
    of_clinician = np.einsum("bhc,hc->b", own, others)
    spread = clinicians + np.einsum("hc,bcd,hd->b", others, own, others)
    jury, clinician = (_of_two(2 * shared / spread) for shared in (of_jury, of_clinician))
    gap: Array = jury - clinician
    return gap


def _of_two(single: Array) -> Array:
    stepped: Array = 2 * single / (1 + np.abs(single))
    return stepped
