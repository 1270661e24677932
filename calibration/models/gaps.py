"""Differences between models: their intervals, what can be detected, and which ranks they leave open."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from calibration.bootstrap import percentile_interval
from calibration.codes import NoteCode as Code
from calibration.icc import Interval
from calibration.models.estimates import MACRO, Figures
from calibration.models.rows import DetectableRow
from calibration.models.win_rate import NAN, ROUNDING, macro_averages, unit_scale
from calibration.remarks import FEW_INSTANCES
from calibration.scores import Array, RubricShape
from calibration.values import Note, note, noted

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


UNSEEN = 0.5  # of one instance: the weight that Jeffreys' interval gives to what was not seen
TAIL = 0.975
SAME = 1e-9  # ends that are nearer are one figure, summed in another order


def unseen_reach(distances: Array, instances: Array) -> float:
    """Return how far a mean may lie towards an end for want of instances that would show it.

    Parameters
    ----------
    distances : shape (benchmarks,), from each benchmark's mean to the end of the scale, 0 or more
    instances : shape (benchmarks,), that each mean rests on

    Returns
    -------
    float
        In units of the distances; 0 where all are 0.

    Notes
    -----
    On each benchmark one further instance is imagined at the end, with a weight of
    Beta(1/2, n + 1/2), as if half of one had been there. The reach is the 97.5 % quantile of the mean over benchmarks
    of weight x distance; for several it is that of the Beta of the same mean and variance. Where all
    n scores are 1, 1 - reach is the lower end of Jeffreys' interval of n successes of n.

    References
    ----------
    Brown, Cai & DasGupta (2001), Statistical Science 16, 101 (Jeffreys' interval). Imagined at the
    end with weight Beta(1, n) it is the bound of Gaffke (2005), which is never too near.
    """
    from scipy import stats  # as slow to load as all else that a table takes

    away = np.maximum(distances, 0.0)
    total = float(away.sum())
    if not total > 0:
        return 0.0
    mean = UNSEEN / (2 * UNSEEN + instances)
    variance = mean * (1 - mean) / (2 * UNSEEN + instances + 1)
    middle = float(away @ mean) / total
    spread = float(away**2 @ variance) / total**2
    size = middle * (1 - middle) / spread - 1
    quantile = float(stats.beta.ppf(TAIL, middle * size, (1 - middle) * size))
    return quantile * total / len(away)


def mean_interval(ends: Interval, means: Array, instances: Array) -> Interval:
    """Return the interval of a mean over benchmarks, on 0 to 1; `unseen_reach` if it has no width.

    Parameters
    ----------
    ends : its percentile interval, which stays where it has any width, or is NaN
    means, instances : shape (benchmarks,), of each benchmark that the mean is of
    """
    return _unseen(ends, means, (0.0, 1.0), instances)


def gap_interval(ends: Interval, gaps: Array, instances: Array) -> Interval:
    """Return the interval of a mean difference, on -1 to 1; `unseen_reach` if it has no width."""
    return _unseen(ends, gaps, (-1.0, 1.0), instances)


def _unseen(
    ends: Interval, values: Array, scale: tuple[float, float], instances: Array
) -> Interval:
    if not has_no_width(ends):
        return ends
    middle = float(values.mean())
    return Interval(
        middle - unseen_reach(values - scale[0], instances),
        middle + unseen_reach(scale[1] - values, instances),
    )


def share_interval(ends: Interval, share: float, instances: float) -> Interval:
    """Return the interval of a win rate; Wilson's with so many instances if it has no width.

    A win rate is a count of means that lie above others, so where a model leads clearly all
    resamples agree on it: that is no certainty. Wilson's is what as many single contests would say.

    References
    ----------
    Wilson (1927), Journal of the American Statistical Association 22, 209.
    """
    if not has_no_width(ends):
        return ends
    from scipy import stats  # as slow to load as all else that a table takes

    square = float(stats.norm.ppf(TAIL)) ** 2 / instances
    middle = (share + square / 2) / (1 + square)
    reach = float(np.sqrt(square * (share * (1 - share) + square / 4))) / (1 + square)
    # Rounding may put an end short of the share, which Wilson's interval holds, or beyond 0 to 1.
    low, high = max(0.0, middle - reach), min(1.0, middle + reach)
    return Interval(min(share, low), max(share, high))


def has_no_width(ends: Interval) -> bool:
    """Return whether an interval is a single figure; not if it is undefined."""
    return bool(ends.high - ends.low <= SAME)


PAPER = 1.96 + 0.84  # 5 % two-sided and 80 % power, rounded as in the paper's script
EXACT = float(stats.norm.ppf(0.975) + stats.norm.ppf(0.8))
LEAST_SHARED = 2


def paper_mde(differences: Array) -> float:
    """Return (1.96 + 0.84) sd / sqrt(n), sd with ddof 0, of paired differences; NaN for none.

    `minimum_detectable_error.py` of som-shahlab/medhelm, which divides scores by 5 first.
    """
    n = len(differences)
    return PAPER * float(np.std(differences)) / float(np.sqrt(n)) if n else NAN


def exact_mde(differences: Array) -> float:
    """Return (z(0.975) + z(0.8)) sd / sqrt(n), sd with ddof 1; NaN for fewer than two.

    The difference that a paired z test, two-sided at 5 %, finds with 80 % power.
    """
    n = len(differences)
    if n < LEAST_SHARED:
        return NAN
    return EXACT * float(np.std(differences, ddof=1)) / float(np.sqrt(n))


def detectable_row(benchmark: str, by: str, points: Array, shape: RubricShape) -> DetectableRow:
    """Return what can be detected between the models of a benchmark.

    Parameters
    ----------
    benchmark, by : names of the row
    points : shape (models, instances)
        Mean scores of a model's responses to an instance, in points of the scale; NaN
        where there is none. Each pair is compared on the instances that both have.
    shape : of the benchmark's rubric, for the ends of the scale
    """
    scored = points[(~np.isnan(points)).any(axis=1)]
    shared = [_common(own, other) for own, other in combinations(scored, 2)]
    pairs = [own for own in shared if own.shape[1] >= LEAST_SHARED]
    rows = (~np.isnan(points)).sum(axis=0) > 1
    if not pairs:
        why = noted(note(Code.NO_TWO_MODELS))
        return DetectableRow(benchmark, by, NAN, NAN, int(rows.sum()), 0, notes=why)
    top = [paper_mde((own[0] - own[1]) / shape.high) for own in pairs] if shape.high > 0 else [NAN]
    scaled = [np.subtract(*unit_scale(own, shape.low, shape.high)) for own in pairs]
    exact = [exact_mde(own) for own in scaled]
    return DetectableRow(
        benchmark,
        by,
        mde=float(np.mean(top)),
        mde_exact=float(np.mean(exact)),
        n_instances=int(rows.sum()),
        n_pairs=len(pairs),
        notes=tuple(_notes(pairs, scaled, exact, len(shared), shape)),
    )


def _common(first: Array, second: Array) -> Array:
    """Return the scores of two models on the instances that both have, shape (2, n)."""
    both = ~np.isnan(first) & ~np.isnan(second)
    return np.stack([first[both], second[both]])


def _notes(
    pairs: list[Array], scaled: list[Array], exact: list[float], every: int, shape: RubricShape
) -> Iterator[Note]:
    small = sum(abs(float(np.mean(d))) < least for d, least in zip(scaled, exact, strict=True))
    yield note(Code.PAIRS_NOT_DETECTED, small=small, pairs=len(pairs))
    fewest, most = (take(own.shape[1] for own in pairs) for take in (min, max))
    if fewest < most:
        yield note(Code.PAIRS_SHARE, fewest=fewest, most=most)
    if left := every - len(pairs):
        yield note(Code.MODEL_PAIRS_LEFT, pairs=left, least=LEAST_SHARED)
    if shape.high <= 0:
        yield note(Code.NO_PAPER_FIGURE)
    if fewest < FEW_INSTANCES:
        yield note(Code.DETECTABLE_A_GUESS, least=FEW_INSTANCES)
