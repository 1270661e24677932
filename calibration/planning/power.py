"""Power by simulation to tell two scorers apart."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.scores import Array
from calibration.values import NORMAL_95
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
