"""The difference of two ICCs with the same judge: its interval and its p, which never contradict."""

from dataclasses import dataclass

import numpy as np

from calibration.scores import Array
from calibration.values import NAN

ROUNDING = 1e-9  # ICCs that are closer are the same ICC, computed in another order
LEAST_INSTANCES = 3  # with two left-out values a variance is all there is
ANGLES = 720  # of the ellipse: its ends are told to 1 in 50,000 of its width
POWER = 2.8  # standard errors: 1.96 for 5 % two-sided and 0.84 for 80 % power


@dataclass(frozen=True)
class IccDifference:
    """The first ICC minus the second, with its interval and two-sided p; NaN where undefined.

    `low` and `high` exclude 0 exactly where p is at most 1 - confidence. `detectable` is the
    difference that a test at 5 % would find with 80 % power.
    """

    difference: float
    low: float = NAN
    high: float = NAN
    p: float = NAN
    detectable: float = NAN


def icc_difference(
    iccs: tuple[float, float], without: tuple[Array, Array], confidence: float = 0.95
) -> IccDifference:
    """Return how far two ICCs are apart, from both without each instance in turn.

    Parameters
    ----------
    iccs : two ICC(C,2), or (C,k), with one judge on the same responses, each below 1
    without : two of shape (instances,)
        The ICCs without each instance in turn (`left_out.iccs_without`), z anew.
    confidence : in (0, 1)

    Returns
    -------
    IccDifference
        All 0 with p 1 for scorers who say the same. Without interval and p with fewer than 3
        instances, where an ICC is 1, or without some instance undefined or 1, and where no
        instance changes the difference.

    Notes
    -----
    z = -log(1 - ICC) / 2 is Fisher's z of the correlation behind an ICC of two columns, and
    half the logarithm of the F behind it: its variance hardly depends on the ICC. The
    delete-one-instance jackknife gives the covariance matrix of (z1, z2). p is that of
    t = (z1 - z2) / SE with instances - 1 degrees of freedom. The interval is of all differences
    (1 - exp(-2 z1)) - (1 - exp(-2 z2)) on the ellipse of the z within that quantile of t: it
    touches z1 = z2, where the difference is 0, exactly where p reaches 1 - confidence.

    References
    ----------
    Fisher (1925), Statistical Methods for Research Workers, section 35. Jackknife: Tukey (1958),
    Annals of Mathematical Statistics 29, 614; leaving out whole clusters: Lipsitz, Dear & Zhao
    (1994), Biometrics 50, 842. The interval is a profile of the delta method's ellipse.
    """
    gap = iccs[0] - iccs[1]
    first, second = without
    if not np.isfinite(gap):
        return IccDifference(NAN)
    if abs(gap) < ROUNDING and np.all(np.abs(first - second) < ROUNDING):
        return IccDifference(0.0, 0.0, 0.0, 1.0, 0.0)
    if abs(gap) < ROUNDING:
        gap = 0.0
    m = len(first)
    with np.errstate(divide="ignore", invalid="ignore"):
        z, left = fisher_z(np.array(iccs)), fisher_z(np.stack(without))
    if m < LEAST_INSTANCES or not (np.isfinite(z).all() and np.isfinite(left).all()):
        return IccDifference(gap)
    apart, both = (z[0] - z[1]) * (gap != 0), z[0] + z[1]
    covariance = (m - 1) * np.cov(np.stack([left[0] - left[1], left[0] + left[1]]), ddof=0)
    error = float(np.sqrt(covariance[0, 0]))
    if error <= ROUNDING:
        return IccDifference(gap)
    return _tested(gap, (apart, both), covariance, m - 1, confidence)


def fisher_z(icc: Array) -> Array:
    """Return -log(1 - ICC) / 2; infinite for an ICC of 1."""
    z: Array = -0.5 * np.log1p(-icc)
    return z


def _tested(
    gap: float, centre: tuple[float, float], covariance: Array, freedom: int, confidence: float
) -> IccDifference:
    """Return the interval over the ellipse about (z1 - z2, z1 + z2), and p."""
    from scipy import stats  # as slow to load as all else that a table takes

    error = float(np.sqrt(covariance[0, 0]))
    along = covariance[0, 1] / error
    across = np.sqrt(max(covariance[1, 1] - along**2, 0.0))
    reach = float(stats.t.ppf((1 + confidence) / 2, freedom))
    angle = np.linspace(0, 2 * np.pi, ANGLES + 1)  # 0 and half of it are the ends of z1 - z2
    apart = centre[0] + reach * error * np.cos(angle)
    both = centre[1] + reach * (along * np.cos(angle) + across * np.sin(angle))
    differences = 2 * np.exp(-both) * np.sinh(apart)
    return IccDifference(
        difference=gap,
        low=float(differences.min()),
        high=float(differences.max()),
        p=2 * float(stats.t.sf(abs(centre[0]) / error, freedom)),
        detectable=2 * float(np.exp(-centre[1]) * np.sinh(POWER * error)),
    )
