"""Simulated studies of many periods, for tests of how often watching says that a jury has fallen."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache

import numpy as np

from calibration.intervals import jackknife_error, left_out
from calibration.monitoring import PeriodRow, finite_z, period_rows, watch
from calibration.values import MonitoringOptions
from calibration.weighted import scorer_iccs
from kit.scores import scope_of, watching

MARKS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "exact": lambda score: score,
    "likert": lambda score: np.clip(np.round(3.5 + score), 1, 5),
    "ceiling": lambda score: np.clip(np.round(3 * (4.5 + 0.9 * score)) / 3, 1, 5),
    "steep ceiling": lambda score: np.clip(np.round(3 * (5.3 + 0.9 * score)) / 3, 1, 5),
}
"""How a latent score is marked: as it is, on 5 points, or with some 35 % or 65 % at the highest."""


@dataclass(frozen=True)
class Plan:
    """A simulated study: `before` unchanged periods, then `after` at another ICC.

    Of the responses of an instance, half the variance of quality is shared.
    """

    icc: float = 0.6
    then: float = 0.6
    before: int = 0
    after: int = 12
    instances: int = 20
    per: int = 1
    marks: str = "exact"
    report: int = 0

    def rows(self, seed: int) -> tuple[list[PeriodRow], MonitoringOptions]:
        """Return its periods as medjury computes them, and what they are compared with."""
        random = np.random.default_rng(seed)
        a_period = self.instances * self.per
        r = np.repeat(
            [latent(self.marks, one) for one in (self.icc, self.then)],
            [self.before * a_period, self.after * a_period],
        )
        scope = scope_of(_pairs(self, r, random), 1, per=self.per, reps=0)
        days = {
            name: date(2025 + place // a_period // 12, place // a_period % 12 + 1, 1)
            for place, name in enumerate(scope.grid.responses)
        }
        rows = period_rows(scope, scope.jury, days, watching(least=3))
        return rows, self._normal(random)

    def _normal(self, random: np.random.Generator) -> MonitoringOptions:
        if not self.report:
            return watching(target=self.icc)
        r = np.full(self.report, latent(self.marks, self.icc))
        scope = scope_of(_pairs(self, r, random), 1, per=self.per, reps=0)
        weights = left_out(scope.grid.n_clusters)
        whole = scorer_iccs(scope.grid, [scope.jury], "paper", weights)[:, 0]
        return watching(target=float(whole[0]), target_se=jackknife_error(finite_z(whole)))


@lru_cache
def latent(marks: str, icc: float) -> float:
    """Return the correlation of two latent scores whose marks have an ICC(C,2)."""
    shared, *own = np.random.default_rng(0).normal(size=(3, 200_000))
    low, high = 0.0, 0.999
    for _ in range(20):
        r = (low + high) / 2
        pair = [MARKS[marks](math.sqrt(r) * shared + math.sqrt(1 - r) * one) for one in own]
        cov = np.cov(pair)
        low, high = (r, high) if 4 * cov[0, 1] / cov.sum() < icc else (low, r)
    return r


def _pairs(plan: Plan, r: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return the marks of a clinician and a juror, shape (n, 2)."""
    share = 0.5 if plan.per > 1 else 0.0
    instance = np.repeat(random.normal(size=len(r) // plan.per), plan.per)
    quality = math.sqrt(share) * instance + math.sqrt(1 - share) * random.normal(size=len(r))
    noise = random.normal(size=(len(r), 2))
    scores = np.sqrt(r)[:, None] * quality[:, None] + np.sqrt(1 - r)[:, None] * noise
    return MARKS[plan.marks](scores)


def alarms(
    plan: Plan, studies: int, normal: MonitoringOptions | None = None, rate: float = 0.05
) -> np.ndarray:
    """Return in which watched month each study had its alarm, counted from 1; 0 for none."""
    found = []
    for seed in range(studies):
        rows, known = plan.rows(seed)
        watched = watch(rows, replace(normal or known, false_alarms=rate))
        place = watched.periods.index(watched.alarm) + 1 if watched.alarm else 0
        found.append(max(place - len(watched.baseline), 0) if place else 0)
    return np.array(found)
