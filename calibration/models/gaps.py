"""How far models are apart, which of them can be told apart, and which ranks that leaves open."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from calibration.bootstrap import percentile_interval
from calibration.models.edges import gap_interval
from calibration.models.figures import MACRO, Figures
from calibration.models.macro_average import macro_averages
from calibration.models.win_rate import NAN, ROUNDING
from calibration.remarks import FEW_INSTANCES
from calibration.scores import Array

DETECTABLE = 2.8  # standard errors: 1.96 for 5 % two-sided and 0.84 for 80 % power
LEAST_RESAMPLES = 40  # with fewer, none lies beyond a 95 % interval
MOST_LOST = 0.01  # share of resamples without the figure above which its interval decides nothing


@dataclass(frozen=True, slots=True)
class Gap:
    """The difference between the macro-averages of two models on the same benchmarks.

    Attributes
    ----------
    by, first, second : the way of scoring, and the two models
    difference, low, high : of the first less the second, with its percentile 95 % interval
    detectable : what 80 % power would find at 5 %; NaN where the resamples do not say
    instances : the fewest that a mean of either rests on
    resamples, lost : how many have a difference, and how many have none
    """

    by: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    detectable: float
    instances: int
    resamples: int
    lost: int

    @property
    def exceeds_detectable(self) -> bool:
        """Whether the difference is greater than what can be detected."""
        return bool(abs(self.difference) > self.detectable)

    @property
    def excludes_zero(self) -> bool:
        """Whether the whole interval lies on the side of the difference."""
        return bool(self.low > 0 if self.difference > 0 else self.high < 0)

    @property
    def is_trusted(self) -> bool:
        """Whether the interval rests on enough instances and resamples to decide anything."""
        every = self.resamples + self.lost
        enough = self.resamples >= LEAST_RESAMPLES and self.lost <= MOST_LOST * every
        return self.instances >= FEW_INSTANCES and enough

    @property
    def is_told(self) -> bool:
        """Whether the two models can be told apart by their macro-averages."""
        return self.is_trusted and self.exceeds_detectable and self.excludes_zero

    def of(self, model: str) -> "Gap":
        """Return the difference with one of its models as the first."""
        if model == self.first:
            return self
        return Gap(
            *(self.by, self.second, self.first),
            *(-self.difference, -self.high, -self.low, self.detectable),
            *(self.instances, self.resamples, self.lost),
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """The ranks that a model may have, and the models that it cannot be told apart from."""

    low: int
    high: int
    not_told_apart: tuple[str, ...]


def gaps(figures: Figures, models: Sequence[str]) -> Iterator[Gap]:
    """Yield the difference of each two models whose means are of the same benchmarks."""
    macro, given = macro_averages(figures.means), ~np.isnan(figures.means)
    for first, second in combinations(range(len(models)), 2):
        if not given[first].any() or (given[first] != given[second]).any():
            continue
        drawn = figures.drawn[:, first, MACRO] - figures.drawn[:, second, MACRO]
        finite, own = drawn[np.isfinite(drawn)], given[first]
        instances = figures.of.instances[[first, second]][:, own].min(axis=0)
        apart = figures.means[first, own] - figures.means[second, own]
        ends = gap_interval(percentile_interval(drawn), apart, instances)
        yield Gap(
            figures.of.by,
            models[first],
            models[second],
            difference=float(macro[first] - macro[second]),
            low=ends.low,
            high=ends.high,
            detectable=_detectable(finite),
            instances=int(instances.min()),
            resamples=len(finite),
            lost=len(drawn) - len(finite),
        )


def standings(win_rates: Mapping[str, float], gaps: Iterable[Gap]) -> dict[str, Standing]:
    """Return the standing of each ranked model.

    One model stands before another where their macro-averages tell them apart and its win
    rate is the higher one too. A rank then leaves out those who stand before, and those who
    stand behind.
    """
    before = {(one.first, one.second) for gap in gaps for one in _ordered(gap, win_rates)}
    every = {}
    for model in win_rates:
        ahead = sum((other, model) in before for other in win_rates)
        behind = sum((model, other) in before for other in win_rates)
        alike = [
            other
            for other in win_rates
            if other != model and not {(other, model), (model, other)} & before
        ]
        every[model] = Standing(1 + ahead, len(win_rates) - behind, tuple(alike))
    return every


def _ordered(gap: Gap, win_rates: Mapping[str, float]) -> Iterator[Gap]:
    """Yield a difference with the better model first, if both figures agree on which that is."""
    if not gap.is_told or not {gap.first, gap.second} <= win_rates.keys():
        return
    better = gap if gap.difference > 0 else gap.of(gap.second)
    if win_rates[better.first] - win_rates[better.second] > ROUNDING:
        yield better


def _detectable(drawn: Array) -> float:
    return DETECTABLE * float(np.std(drawn, ddof=1)) if len(drawn) > 1 else NAN
