"""Power by simulation: to tell two scorers apart, and to show a jury no worse than a clinician."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.codes import PlanningCode
from calibration.like_for_like import pooled_icc
from calibration.planning.rows import NonInferiorityRow, PlanOptions, PlanRow
from calibration.scores import Array
from calibration.values import NAN, NORMAL_95, Note, note, noted
from data.errors import BadInput

POWER = 0.8
LEAST_FOR_POWER = 4  # responses; of fewer no power is computed
DRAWS = 20_000  # so that a power of 80 % is known to 0.3 points
MOST_RESPONSES = 1_000_000
CLOSE = 5e-4
RATERS = 3  # clinicians' mean, jury, other scorer


@dataclass(frozen=True)
class ComparedScorers:
    """A jury and another scorer compared with the same clinicians: the assumptions.

    Attributes
    ----------
    jury : float
        Its ICC(C,2) with the clinicians' mean, in (-1, 1).
    difference : float
        The jury's ICC(C,2) minus the other scorer's, 0 or more.
    shared : float
        Correlation of the two scorers' errors, in [-1, 1]: of what the clinicians' mean leaves
        unexplained of each (their partial correlation). 0.5 is two juries of similar models;
        near 0 a jury and a metric. The higher it is, the smaller the differences that are shown.

    Raises
    ------
    BadInput
        If one of them is outside its range.
    """

    jury: float
    difference: float = 0.0
    shared: float = 0.5

    def __post_init__(self) -> None:
        if not -1 < self.jury < 1:
            raise BadInput(f"an ICC(C,2) of {self.jury:g}: it is above -1 and below 1 here")
        if not 0 <= self.difference < math.inf:
            raise BadInput(f"a difference of {self.difference:g}: it is 0 or more")
        if not -1 <= self.shared <= 1:
            raise BadInput(f"shared error of {self.shared:g}: it is a correlation, -1 to 1")

    @property
    def correlations(self) -> Array:
        """Return the matrix (3, 3) of clinicians' mean, jury, other scorer."""
        a, b = (icc / (2 - icc) for icc in (self.jury, self.jury - self.difference))
        c = a * b + self.shared * math.sqrt((1 - a * a) * (1 - b * b))
        return np.array([[1, a, b], [a, 1, c], [b, c, 1]])


@dataclass(frozen=True)
class Power:
    """A power by simulation; NaN for too few responses.

    Attributes
    ----------
    power, mc_error : share of simulated studies that show the difference, and its standard error
    sd : of the difference of the two estimated ICCs
    """

    power: float
    mc_error: float
    sd: float


def power(scorers: ComparedScorers, n: int, seed: int = 0, draws: int = DRAWS) -> Power:
    """Return the power to show, at 5 % two-sided, that the jury's ICC is the larger one.

    Clinicians' mean, jury and other scorer are jointly normal; a study is drawn as their
    correlation matrix over n responses (Wishart). It shows the difference if that is more
    than 1.96 of its standard errors above 0, estimated in the same study by the delta method,
    as a bootstrap would. With difference 0 the power is the share of false findings, 2.5 %
    or less on this side.

    Parameters
    ----------
    scorers : ComparedScorers
    n : int
        Responses, one an instance, at least 4.
    seed, draws : of the simulation

    Returns
    -------
    Power

    Raises
    ------
    BadInput
        If n is below 4.

    References
    ----------
    Olkin & Siotani (1976) for the covariance of two correlations with one variable in common;
    Odell & Feiveson (1966) for drawing a Wishart matrix by its triangular factor.
    """
    if n < LEAST_FOR_POWER:
        raise BadInput(f"{n} responses: power is told for {LEAST_FOR_POWER} or more")
    return _power(scorers, n, wishart_factors(n, RATERS, seed, draws))


def detectable(scorers: ComparedScorers, n: int, seed: int = 0, draws: int = DRAWS) -> float:
    """Return the smallest difference that n responses show with 80 % power.

    `contest.difference` is not read. The other scorer is the worse one; where the difference
    is larger than the jury's ICC, its own is below 0.

    Returns
    -------
    float
        NaN where even a difference of 1 is not shown with 80 % power.
    """
    factors = wishart_factors(n, RATERS, seed, draws)

    def is_enough(gap: float) -> bool:
        return _power(ComparedScorers(scorers.jury, gap, scorers.shared), n, factors).power >= POWER

    return least_sufficient(is_enough, 0.0, 1.0) if is_enough(1.0) else math.nan


def responses_for(scorers: ComparedScorers, seed: int = 0, draws: int = DRAWS) -> int | None:
    """Return the responses that show the difference with 80 % power; None above a million."""

    def is_enough(log_n: float) -> bool:
        return power(scorers, round(math.exp(log_n)), seed, draws).power >= POWER

    if scorers.difference == 0 or not is_enough(math.log(MOST_RESPONSES)):
        return None
    return round(
        math.exp(least_sufficient(is_enough, math.log(LEAST_FOR_POWER), math.log(MOST_RESPONSES)))
    )


def wishart_factors(n: int, raters: int, seed: int, draws: int) -> Array:
    """Return lower triangles (draws, raters, raters) whose squares are Wishart, n - 1 degrees.

    n is above `raters`.
    """
    random = np.random.default_rng(seed)
    factors = np.zeros((draws, raters, raters))
    for place in range(raters):
        factors[:, place, place] = np.sqrt(random.chisquare(n - 1 - place, draws))
        factors[:, place, :place] = random.normal(size=(draws, place))
    return factors


def _power(scorers: ComparedScorers, n: int, factors: Array) -> Power:
    root = _root(scorers.correlations)
    drawn = root @ factors
    moments = drawn @ drawn.transpose(0, 2, 1)
    scale = np.sqrt(np.einsum("bii->bi", moments))
    a = moments[:, 0, 1] / scale[:, 0] / scale[:, 1]
    b = moments[:, 0, 2] / scale[:, 0] / scale[:, 2]
    c = moments[:, 1, 2] / scale[:, 1] / scale[:, 2]
    difference = 2 * a / (1 + a) - 2 * b / (1 + b)
    return simulated(difference, difference > NORMAL_95 * standard_error(a, b, c, n))


def simulated(differences: Array, shown: NDArray[np.bool_]) -> Power:
    """Return the power of simulated studies, from the estimate of each and whether it is shown."""
    share = float(np.mean(shown))
    error = math.sqrt(share * (1 - share) / len(shown))
    return Power(share, error, float(differences.std(ddof=1)))


def standard_error(a: Array, b: Array, c: Array, n: int) -> Array:
    """Return the standard error of 2a/(1+a) - 2b/(1+b) for correlations over n responses.

    a and b are those of two scorers with the clinicians, c that of the scorers.
    """
    both = c * (1 - a**2 - b**2) - a * b * (1 - a**2 - b**2 - c**2) / 2
    of_a, of_b = 2 / (1 + a) ** 2, 2 / (1 + b) ** 2
    square = (of_a * (1 - a**2)) ** 2 + (of_b * (1 - b**2)) ** 2 - 2 * of_a * of_b * both
    return np.sqrt(np.maximum(square, 0.0) / n)


def _root(correlations: Array) -> Array:
    """Return a square root of a correlation matrix, which may be singular (all error shared)."""
    values, vectors = np.linalg.eigh(correlations)
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def least_sufficient(is_enough: Callable[[float], bool], low: float, high: float) -> float:
    """Return the least sufficient value between two by bisection; `high` must be sufficient."""
    while high - low > CLOSE:
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class JuryAndClinicians:
    """A jury and clinicians who rate the same responses: the assumptions.

    Attributes
    ----------
    single : single-rater ICC of the clinicians, in (-1 / (clinicians - 1), 1)
    jury : correlation of the jury with each clinician; equal to `single` if it is like them
    clinicians : who rate each response, 2 or more

    Raises
    ------
    BadInput
        If one is outside its range, or no raters can have these correlations.
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
        """Return the fewest responses for which a power can be simulated."""
        return self.clinicians + 2

    @property
    def correlations(self) -> Array:
        """Return the correlations of the clinicians and, last, the jury."""
        matrix = np.full((self.clinicians + 1, self.clinicians + 1), self.single)
        matrix[-1], matrix[:, -1] = self.jury, self.jury
        np.fill_diagonal(matrix, 1.0)
        return matrix


def non_inferiority_rows(rows: Sequence[PlanRow], options: PlanOptions) -> list[NonInferiorityRow]:
    """Return the power of a plan's responses to show non-inferiority, for each ICC planned with.

    Empty where the plan has no margin, or one clinician a response.
    """
    if options.margin is None or options.per_response < 2:
        return []
    planned = {row.basis: (row, row.n) for row in rows if row.n is not None}
    return [_non_inferiority_row(row, n, options.margin, options) for row, n in planned.values()]


def _non_inferiority_row(
    row: PlanRow, n: int, margin: float, options: PlanOptions
) -> NonInferiorityRow:
    assumption = JuryAndClinicians(row.icc_single, row.icc_single, options.per_response)
    estimate = non_inferiority_power(assumption, margin, n, options.seed)
    return NonInferiorityRow(
        basis=row.basis,
        icc_single=row.icc_single,
        per_response=options.per_response,
        margin=margin,
        n=n,
        power=estimate.power,
        mc_error=estimate.mc_error,
        sd=estimate.sd,
        n_for_power=non_inferiority_responses(assumption, margin, options.assurance, options.seed),
        notes=noted(note(PlanningCode.JURY_LIKE_CLINICIAN), _few_responses_note(assumption, n)),
    )


def _few_responses_note(assumption: JuryAndClinicians, n: int) -> Note | None:
    few = n < assumption.least_responses
    return note(PlanningCode.FEW_FOR_POWER, least=assumption.least_responses) if few else None


def non_inferiority_power(
    assumption: JuryAndClinicians, margin: float, n: int, seed: int = 0, draws: int = DRAWS
) -> Power:
    """Return the power to show non-inferiority, and the difference's SD.

    All raters are jointly normal; a study is drawn as their covariances over n responses
    (Wishart, by its triangular factor), each rater is standardised, and like for like is
    estimated as the agreement table does it. The study shows non-inferiority if the estimate is
    more than 1.96 standard deviations above -margin. For clinicians who all rate the same
    responses; where each rates a part, the table's z costs little more.

    Parameters
    ----------
    assumption : JuryAndClinicians
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
    if n < assumption.least_responses:
        return Power(NAN, NAN, NAN)
    raters = assumption.clinicians + 1
    drawn = np.linalg.cholesky(assumption.correlations + 1e-12 * np.eye(raters))
    moments = drawn @ wishart_factors(n, raters, seed, draws)
    differences = _like_for_like_differences(moments @ moments.transpose(0, 2, 1))
    return simulated(differences, differences > NORMAL_95 * float(differences.std(ddof=1)) - margin)


def non_inferiority_responses(
    assumption: JuryAndClinicians,
    margin: float,
    share: float,
    seed: int = 0,
    draws: int = DRAWS,
) -> int | None:
    """Return the responses with which a share of studies show it; None above a million.

    Parameters are as for `non_inferiority_power`; `share` is in (0, 1).
    """
    most = math.log(MOST_RESPONSES)

    def is_enough(log_n: float) -> bool:
        return (
            non_inferiority_power(assumption, margin, round(math.exp(log_n)), seed, draws).power
            >= share
        )

    return (
        math.ceil(math.exp(least_sufficient(is_enough, math.log(LEAST_FOR_POWER), most)))
        if is_enough(most)
        else None
    )


def _like_for_like_differences(moments: Array) -> Array:
    """Return the jury's ICC minus a left-out clinician's with the others, from covariances.

    Shape (draws, k, k), the jury last, to (draws,).
    """
    scale = np.sqrt(np.einsum("bii->bi", moments))
    z = moments / scale[:, :, None] / scale[:, None, :]
    clinicians = z.shape[1] - 1
    others = (1 - np.eye(clinicians)) / (clinicians - 1)  # a row for each one held out
    clinicians_z = z[:, :clinicians, :clinicians]
    of_jury = np.einsum("bc,hc->b", z[:, -1, :clinicians], others)
    of_clinician = np.einsum("bhc,hc->b", clinicians_z, others)
    of_others = np.einsum("hc,bcd,hd->b", others, clinicians_z, others)
    own_variance = np.full_like(of_others, clinicians)  # a variance of 1 for each one held out
    jury, clinician = (
        pooled_icc(np.array([own_variance, of_others, shared]), "paper")
        for shared in (of_jury, of_clinician)
    )
    differences: Array = jury - clinician
    return differences
