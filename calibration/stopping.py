"""When clinicians may stop: intervals that hold although the data are looked at while they come in.

A look uses up a part of the error that the whole study may make. What each may use follows from how
far the study is, so that looks need not be planned; all of them have to be counted.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import t as student

from calibration.stagewise import stagewise_interval
from calibration.ward_values import Look, PastLook, Stopping, Verdict

CONFIDENCE = 0.95
POINTS = 1201  # at which the density of the statistic is followed from look to look
REACH = 9.0  # standard errors of a look that the points span
HOPELESS = 0.1  # chance to show it with all that is planned, under which it is called out of reach


def spent(fraction: float, alpha: float = 1 - CONFIDENCE) -> float:
    """Return how much of a two-sided error may be used until a fraction of the study is rated.

    Lan, DeMets (1983), Discrete sequential boundaries for clinical trials, Biometrika 70, 659: the
    function that makes boundaries like those of O'Brien and Fleming, on each side 2 - 2 Phi(z / root).
    """
    if fraction <= 0:
        return 0.0
    half = alpha / 2
    return float(2 * 2 * (1 - ndtr(ndtri(1 - half / 2) / np.sqrt(min(fraction, 1.0)))))


def boundaries(fractions: Sequence[float], alpha: float = 1 - CONFIDENCE) -> list[float]:
    """Return at each look the critical value of the statistic, in standard errors.

    Armitage, McPherson, Rowe (1969), JRSS A 132, 235: the density of the statistic among studies that
    have not crossed is followed from look to look by numerical integration.

    Parameters
    ----------
    fractions : how far the study is at each look, rising, in (0, 1]

    Returns
    -------
    list of float
        Infinite at a look that may use up nothing that could be seen.
    """
    found: list[float] = []
    grid, density, before, used = np.zeros(1), np.ones(1), 0.0, 0.0
    for fraction in fractions:
        step = np.sqrt(fraction - before)
        reach = REACH * np.sqrt(fraction)
        points = np.linspace(-reach, reach, POINTS)
        kernel = np.exp(-0.5 * ((points[:, None] - grid[None]) / step) ** 2) / step
        width = grid[1] - grid[0] if len(grid) > 1 else 1.0
        reached = kernel @ density * width / np.sqrt(2 * np.pi)
        allowed = max(spent(fraction, alpha) - used, 0.0) / 2
        tail = np.cumsum(reached[::-1])[::-1] * (points[1] - points[0])
        middle = tail - reached * (points[1] - points[0]) / 2  # mass above each point
        over = np.flatnonzero((middle <= allowed) & (points > 0))
        if allowed < 1e-9 or not len(over):
            cut = reach
        else:
            at = over[0]
            share = (middle[at - 1] - allowed) / max(middle[at - 1] - middle[at], 1e-300)
            cut = float(points[at - 1] + share * (points[at] - points[at - 1]))
        found.append(float("inf") if cut == reach else cut / float(np.sqrt(fraction)))
        grid, density = points, np.where(np.abs(points) < cut, reached, 0.0)
        before, used = fraction, spent(fraction, alpha)
    return found


def judge(looks: Sequence[PastLook], look: Look, alpha: float = 1 - CONFIDENCE) -> Stopping:
    """Return what a look says, given all looks before it.

    The verdict is that of the repeated interval (Jennison, Turnbull 1989, Interim analyses: the
    repeated confidence interval approach, JRSS B 51, 305): estimate plus and minus critical value times
    standard error, which covers at all looks together. Where the study ends by it, the interval is the
    one of `calibration.stagewise`, with exact coverage. Both are taken to Student's t with the
    instances less one.

    Parameters
    ----------
    looks : each earlier look, in any order; those with more rated than now count as now
    look : this one; `error` above 0
    """
    now = min(look.rated, look.planned)
    seen = sorted({min(n, now) for n in (*(one.rated for one in looks), now) if n > 0})
    critical = boundaries([n / look.planned for n in seen], alpha)
    wide, usual = _as_student(critical[-1], look), _as_student(float(ndtri(1 - alpha / 2)), look)
    low, high = look.estimate - wide * look.error, look.estimate + wide * look.error
    chance = _chance(look, alpha)
    verdict = _verdict(look, low, high, chance)
    found = Stopping(
        verdict,
        low,
        high,
        look.estimate - usual * look.error,
        look.estimate + usual * look.error,
        wide,
        _more(look, alpha) if verdict is Verdict.GO_ON else None,
        chance,
    )
    return found if verdict.goes_on else _ordered(found, looks, look, seen, critical, alpha)


def statistic_of(look: Look) -> float:
    """Return how many standard errors the estimate is over the target, as a normal statistic."""
    distance = (look.estimate - look.target) / look.error
    tail = max(float(student.sf(abs(distance), max(look.instances - 1, 1))), 1e-300)
    return float(-np.sign(distance) * ndtri(tail))


def _as_student(critical: float, look: Look) -> float:
    """Return the value of Student's t that is exceeded as often as one of a normal statistic."""
    return float(student.isf(ndtr(-critical), max(look.instances - 1, 1)))


def _ordered(
    found: Stopping,
    looks: Sequence[PastLook],
    look: Look,
    seen: Sequence[int],
    critical: Sequence[float],
    alpha: float,
) -> Stopping:
    """Return what a look says with the interval of exact coverage, if the study ends at this look.

    It has none if an earlier look had ended it, or the record does not have what that saw. At the very
    boundary both intervals end at the target; where integration errs by less than its accuracy, the
    repeated one's end stays.
    """
    bounds = dict(zip(seen, critical, strict=True))
    for one in looks:
        if one.rated > seen[-1]:
            return found  # ratings went, or all that was planned was rated before
        if not 0 < one.rated < seen[-1]:
            continue
        if one.statistic is None or abs(one.statistic) > bounds[one.rated]:
            return found
    fractions, statistic = [n / look.planned for n in seen], statistic_of(look)
    root = float(np.sqrt(fractions[-1]))
    drifts = stagewise_interval(fractions, critical[:-1], statistic, alpha)
    ends = [
        look.estimate - _as_student(statistic - drift * root, look) * look.error for drift in drifts
    ]
    same = [
        (a > look.target) == (b > look.target)
        for a, b in zip(ends, (found.low, found.high), strict=True)
    ]
    return replace(
        found,
        low=ends[0] if same[0] else found.low,
        high=ends[1] if same[1] else found.high,
        ordered=True,
    )


def _verdict(look: Look, low: float, high: float, chance: float) -> Verdict:
    if low > look.target:
        return Verdict.SHOWN
    if high < look.target:
        return Verdict.REFUTED
    if look.rated >= look.planned:
        return Verdict.ENDED
    return Verdict.OUT_OF_REACH if chance < HOPELESS else Verdict.GO_ON


def _chance(look: Look, alpha: float) -> float:
    """Return the chance to show it at the end, if the figure is as estimated: what is still to come varies."""
    left = 1 - min(look.rated / look.planned, 1.0)
    statistic = (look.estimate - look.target) / look.error  # of the information now
    now = 1 - left
    if left <= 0:
        return float(statistic > ndtri(1 - alpha / 2))
    drift = statistic * np.sqrt(now) + statistic / np.sqrt(now) * left
    return float(ndtr((drift - ndtri(1 - alpha / 2)) / np.sqrt(left)))


def _more(look: Look, alpha: float) -> int | None:
    """Return the responses to add until the estimate, if it stays, is shown; at most what is planned."""
    distance = look.estimate - look.target
    if distance <= 0:
        return look.planned - look.rated
    unit = look.error * np.sqrt(look.rated)  # the error of one response
    for n in range(look.rated + 1, look.planned + 1, max(look.planned // 100, 1)):
        critical = boundaries([look.rated / look.planned, n / look.planned], alpha)[-1]
        if distance > critical * unit / np.sqrt(n):
            return n - look.rated
    return look.planned - look.rated
