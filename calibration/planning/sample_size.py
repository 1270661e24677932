"""How many responses an interval of an ICC takes: Bonett's formula, for the width on average."""

import math
from dataclasses import dataclass

from scipy import stats

from calibration.agreement import LEAST_RESPONSES
from calibration.f_interval import spearman_brown
from data.errors import BadInput

ROUNDING = 1e-9  # a response more for the last digit of a float would be one too many


@dataclass(frozen=True)
class Aim:
    """The ICC whose interval is planned.

    Attributes
    ----------
    single : float
        The ICC(C,1) expected: of single ratings. Above -1 / (columns - 1), below 1.
    columns : int
        k, how many columns it is estimated from: clinicians per response, or 2 for a jury
        and the clinicians' mean.
    of : int
        The interval is that of ICC(C,of), reached from ICC(C,1) by Spearman-Brown: 1 for
        single ratings, 2 for ICC(C,2) as in the agreement table. At most `columns`, since
        what is planned is read off the ratings and not off raters that nobody asked.

    Raises
    ------
    BadInput
        If one of them is outside its range.
    """

    single: float
    columns: int = 2
    of: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.of <= self.columns or self.columns < 2:
            raise BadInput(f"an ICC(C,{self.of}) cannot be estimated from {self.columns} columns")
        if not -1 / (self.columns - 1) < self.single < 1:
            raise BadInput(
                f"a single-rater ICC of {self.single:g} is impossible with {self.columns} columns: "
                f"it lies between {-1 / (self.columns - 1):g} and 1"
            )

    @property
    def icc(self) -> float:
        """Return the ICC(C,of) that the interval is of."""
        return spearman_brown(self.single, self.of)


def single_of(icc: float, k: int = 2) -> float:
    """Return the single-rater ICC(C,1) under an ICC(C,k); for k = 2, R / (2 - R)."""
    return spearman_brown(icc, 1 / k)


def spread(aim: Aim) -> float:
    """Return the standard error of the estimated ICC(C,of), times the root of n - 1.

    For single ratings sqrt(2 / (k (k - 1))) (1 - r) (1 + (k - 1) r) (Fisher 1925; Bonett
    2002, equation 3); for a mean of m by the delta method, times m / (1 + (m - 1) r)^2.
    """
    r, k, m = aim.single, aim.columns, aim.of
    of_single = math.sqrt(2 / (k * (k - 1))) * (1 - r) * (1 + (k - 1) * r)
    return of_single * m / (1 + (m - 1) * r) ** 2


def bonett_n(aim: Aim, width: float, confidence: float = 0.95) -> int:
    """Return the responses at which the interval has a width on average.

    n = 4 z^2 spread^2 / w^2 + 1, which for single ratings is
    8 z^2 (1 - r)^2 (1 + (k - 1) r)^2 / (k (k - 1) w^2) + 1, rounded up. About half of all
    such studies obtain a wider interval: see `assurance.zou_n`.

    Parameters
    ----------
    aim : Aim
    width : float
        From the lower to the upper end, above 0.
    confidence : float
        Of the interval, in (0, 1).

    Returns
    -------
    int
        Independent responses, so at most one an instance; at least 3.

    Raises
    ------
    BadInput
        If the width is not above 0.

    References
    ----------
    Bonett (2002), Statistics in Medicine 21, 1331, equation 3.

    Examples
    --------
    >>> bonett_n(Aim(0.31), 0.3), bonett_n(Aim(0.5), 0.2)
    (141, 218)
    """
    check_width(width)
    z = float(stats.norm.ppf((1 + confidence) / 2))
    return whole(4 * (z * spread(aim) / width) ** 2 + 1)


def corrected(n: int, population: int) -> int:
    """Return the responses needed where only `population` instances exist: n M / (M + n - 1).

    Rounded up, at most the population. What is found then holds for these M instances, and
    not for others that might have been collected. (Cochran 1977, section 4.5.)
    """
    if population < 1:
        raise BadInput(f"a population of {population} instances: it is 1 or more")
    return min(population, math.ceil(n * population / (population + n - 1) - ROUNDING))


def check_width(width: float) -> None:
    """Refuse a width that is none."""
    if not 0 < width < math.inf:
        raise BadInput(f"a width of {width:g}: it is the distance of two limits, above 0")


def whole(responses: float) -> int:
    """Return a number of responses rounded up, at least the 3 that an ICC takes."""
    return max(LEAST_RESPONSES, math.ceil(responses - ROUNDING))
