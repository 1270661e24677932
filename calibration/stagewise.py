"""The interval of a study that stopped: outcomes ordered by the look at which they stopped, then by size.

An interval that holds at every look is wider than it need be at the one at which the study ends. This
one asks how likely an outcome at least as high as the one seen is at each drift, and has exactly the
coverage that it claims, if the study stopped because a boundary was crossed or all was rated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from calibration.scores import Array

POINTS = 801  # between the boundaries of a look, at which the density of what goes on is known
FARTHEST = (
    40.0  # standard errors of the first look, from the estimate, within which the ends are sought
)


@dataclass(frozen=True)
class _Look:
    """What goes on after a look: the sums between its boundaries, and their density without drift."""

    fraction: float
    cut: float
    sums: Array
    mass: Array


@lru_cache(maxsize=32)
def _looks(fractions: tuple[float, ...], critical: tuple[float, ...]) -> tuple[_Look, ...]:
    """Return what goes on after each look, by the recursion of Armitage, McPherson and Rowe (1969)."""
    found: list[_Look] = []
    sums, mass, before = np.zeros(1), np.ones(1), 0.0
    for fraction, at in zip(fractions, critical, strict=True):
        if not np.isfinite(at):
            continue  # nothing can stop there
        cut, step = at * np.sqrt(fraction), np.sqrt(fraction - before)
        points = np.linspace(-cut, cut, POINTS)
        steps = (points[:, None] - sums[None]) / step
        density = np.exp(-0.5 * steps**2) @ mass / (step * np.sqrt(2 * np.pi))
        width = np.full(POINTS, points[1] - points[0])
        width[[0, -1]] /= 2
        sums, mass, before = points, density * width, fraction
        found.append(_Look(fraction, float(cut), sums, mass))
    return tuple(found)


def at_least(
    drift: float, fractions: Sequence[float], critical: Sequence[float], statistic: float
) -> float:
    """Return the probability of an outcome at least as high as the one seen, which rises with the drift.

    Tsiatis, Rosner, Mehta (1984), Exact confidence intervals following a group sequential test,
    Biometrics 40, 797; Jennison, Turnbull (2000), Group sequential methods, chapter 8. Higher is: an
    upper boundary crossed at an earlier look; at the same look, a higher statistic.

    Parameters
    ----------
    drift : expected statistic when all is rated; the sum at a fraction t is normal, (drift t, t)
    fractions : how far the study was at each look, rising, in (0, 1]; the last is where it stopped
    critical : of the statistic at each look but the last, above 0, infinite where none could stop
    statistic : at the last look, in standard errors
    """
    earlier = _looks(tuple(fractions[:-1]), tuple(critical))
    last = statistic * float(np.sqrt(fractions[-1]))
    stops = [(look.fraction, look.cut) for look in earlier] + [(fractions[-1], last)]
    higher, before = 0.0, _Look(0.0, 0.0, np.zeros(1), np.ones(1))
    for place, (fraction, cut) in enumerate(stops):
        left = fraction - before.fraction
        tilted = before.mass * np.exp(drift * before.sums - drift**2 * before.fraction / 2)
        over = ndtr((before.sums + drift * left - cut) / np.sqrt(left))
        higher += float(tilted @ over)
        before = earlier[place] if place < len(earlier) else before
    return higher


def stagewise_interval(
    fractions: Sequence[float], critical: Sequence[float], statistic: float, alpha: float
) -> tuple[float, float]:
    """Return the drifts at which an outcome as high, and one as low, has a probability of half of alpha.

    Parameters are those of `at_least`.

    Returns
    -------
    tuple of float
        Low and high. They hold the share 1 - alpha of the outcomes at every drift.
    """
    middle, far = statistic / np.sqrt(fractions[-1]), FARTHEST / np.sqrt(fractions[0])

    def end(share: float) -> float:
        def miss(drift: float) -> float:
            return at_least(drift, fractions, critical, statistic) - share

        return float(brentq(miss, middle - far, middle + far, xtol=1e-6))

    return end(alpha / 2), end(1 - alpha / 2)
