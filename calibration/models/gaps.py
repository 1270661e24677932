"""Differences between models: their intervals, detectable size, and the ranks they leave open."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from calibration.bootstrap import percentile_interval
from calibration.differences import DETECTABLE
from calibration.icc import Interval
from calibration.models.estimates import MACRO, ResampledFigures
from calibration.models.model_scores import ROUNDING, macro_averages, unit_scale
from calibration.models.rows import DetectableRow
from calibration.notes import Note, note, noted, undefined
from calibration.remarks import FEW_INSTANCES, MOST_LOST
from calibration.scores import Array, RubricShape
from calibration.values import NAN

LEAST_RESAMPLES = 40  # with fewer, none lies outside a 95 % interval
UNSEEN_WEIGHT = 0.5  # of one instance, as in Jeffreys' interval
UPPER = 0.975
LEAST_WIDTH = 1e-9  # ends that are closer differ by rounding only
PAPER = 1.96 + 0.84  # 5 % two-sided and 80 % power, rounded as in the paper's script
EXACT = float(stats.norm.ppf(0.975) + stats.norm.ppf(0.8))
LEAST_SHARED = 2


@dataclass(frozen=True, slots=True)
class Gap:
    """The difference between the macro-averages of two models on the same benchmarks.

    Attributes
    ----------
    by, first, second : the way of scoring, and the two models
    difference, low, high : of the first minus the second, with its percentile 95 % interval
    detectable : true difference that 80 % of such studies tell from 0 by their 95 % interval: 2.8
        standard errors, a figure of design that decides nothing; NaN with fewer than 2 resamples
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
    def excludes_zero(self) -> bool:
        """Whether the whole interval lies on the side of the difference."""
        return bool(self.low > 0 if self.difference > 0 else self.high < 0)

    @property
    def is_trusted(self) -> bool:
        """Whether the interval rests on enough instances and resamples to decide anything."""
        drawn = self.resamples + self.lost
        enough = self.resamples >= LEAST_RESAMPLES and self.lost <= MOST_LOST * drawn
        return self.instances >= FEW_INSTANCES and enough

    @property
    def is_told(self) -> bool:
        """Whether the two models can be told apart by their macro-averages, at 5 %."""
        return self.is_trusted and self.excludes_zero

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
class RankRange:
    """The ranks that a model may have, and the models that it cannot be told apart from."""

    low: int
    high: int
    not_told_apart: tuple[str, ...]


def gaps(figures: ResampledFigures, models: Sequence[str]) -> Iterator[Gap]:
    """Yield the difference of each two models whose means are of the same benchmarks."""
    macro, has_mean = macro_averages(figures.means), ~np.isnan(figures.means)
    for first, second in combinations(range(len(models)), 2):
        if not has_mean[first].any() or (has_mean[first] != has_mean[second]).any():
            continue
        replicates = figures.replicates[:, first, MACRO] - figures.replicates[:, second, MACRO]
        finite, shared = replicates[np.isfinite(replicates)], has_mean[first]
        instances = figures.estimate.instances[[first, second]][:, shared].min(axis=0)
        benchmark_gaps = figures.means[first, shared] - figures.means[second, shared]
        ends = gap_interval(percentile_interval(replicates), benchmark_gaps, instances)
        yield Gap(
            figures.estimate.by,
            models[first],
            models[second],
            difference=float(macro[first] - macro[second]),
            low=ends.low,
            high=ends.high,
            detectable=_detectable_difference(finite),
            instances=int(instances.min()),
            resamples=len(finite),
            lost=len(replicates) - len(finite),
        )


def rank_ranges(win_rates: Mapping[str, float], gaps: Iterable[Gap]) -> dict[str, RankRange]:
    """Return the ranks that each ranked model may have.

    One model is ahead of another where their macro-averages can be told apart and its win rate
    is the higher one too. A model's ranks begin behind all models that are ahead of it, and end
    before all those that it is ahead of.
    """
    before = {
        (better.first, better.second) for gap in gaps for better in _better_first(gap, win_rates)
    }
    ranges = {}
    for model in win_rates:
        ahead = sum((other, model) in before for other in win_rates)
        behind = sum((model, other) in before for other in win_rates)
        not_told_apart = [
            other
            for other in win_rates
            if other != model and not {(other, model), (model, other)} & before
        ]
        ranges[model] = RankRange(1 + ahead, len(win_rates) - behind, tuple(not_told_apart))
    return ranges


def _better_first(gap: Gap, win_rates: Mapping[str, float]) -> Iterator[Gap]:
    """Yield a difference with the better model first, if both figures agree on which that is."""
    if not gap.is_told or not {gap.first, gap.second} <= win_rates.keys():
        return
    better = gap if gap.difference > 0 else gap.of(gap.second)
    if win_rates[better.first] - win_rates[better.second] > ROUNDING:
        yield better


def _detectable_difference(replicates: Array) -> float:
    return DETECTABLE * float(np.std(replicates, ddof=1)) if len(replicates) > 1 else NAN


def unseen_reach(distances: Array, instances: Array) -> float:
    """Return how far a mean may lie towards an end of its scale although no instance shows it.

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
    On each benchmark one more instance at the end is assumed, with a weight of
    Beta(1/2, n + 1/2), as if half an instance had been there. The reach is the 97.5 % quantile
    of the mean over benchmarks of weight x distance; for several benchmarks it is that of the
    Beta of the same mean and variance. Where all n scores are 1, 1 - reach is the lower end of
    Jeffreys' interval of n successes of n.

    References
    ----------
    Brown, Cai & DasGupta (2001), Statistical Science 16, 101 (Jeffreys' interval). With a weight
    of Beta(1, n) it is the bound of Gaffke (2005), which is never too close.
    """
    from scipy import stats  # as slow to load as all else that a table takes

    reaches = np.maximum(distances, 0.0)
    total = float(reaches.sum())
    if not total > 0:
        return 0.0
    mean = UNSEEN_WEIGHT / (2 * UNSEEN_WEIGHT + instances)
    variance = mean * (1 - mean) / (2 * UNSEEN_WEIGHT + instances + 1)
    mean_share = float(reaches @ mean) / total
    variance_share = float(reaches**2 @ variance) / total**2
    concentration = mean_share * (1 - mean_share) / variance_share - 1
    quantile = float(
        stats.beta.ppf(UPPER, mean_share * concentration, (1 - mean_share) * concentration)
    )
    return quantile * total / len(reaches)


def mean_interval(ends: Interval, means: Array, instances: Array) -> Interval:
    """Return the interval of a mean over benchmarks, on 0 to 1; `unseen_reach` if it has no width.

    Parameters
    ----------
    ends : its percentile interval, which is returned where it has any width, or is NaN
    means, instances : shape (benchmarks,), of each benchmark that the mean is of
    """
    return _with_unseen(ends, means, (0.0, 1.0), instances)


def gap_interval(ends: Interval, gaps: Array, instances: Array) -> Interval:
    """Return the interval of a mean difference, on -1 to 1; `unseen_reach` if it has no width."""
    return _with_unseen(ends, gaps, (-1.0, 1.0), instances)


def _with_unseen(
    ends: Interval, values: Array, scale: tuple[float, float], instances: Array
) -> Interval:
    if not has_no_width(ends):
        return ends
    mean = float(values.mean())
    return Interval(
        mean - unseen_reach(values - scale[0], instances),
        mean + unseen_reach(scale[1] - values, instances),
    )


def share_interval(ends: Interval, share: float, instances: float) -> Interval:
    """Return the interval of a win rate; Wilson's for a number of instances if it has no width.

    A win rate counts means that lie above others, so where a model leads clearly it is the same
    in all resamples, which does not make it certain. Wilson's interval is that of as many
    independent comparisons.

    References
    ----------
    Wilson (1927), Journal of the American Statistical Association 22, 209.
    """
    if not has_no_width(ends):
        return ends
    from scipy import stats  # as slow to load as all else that a table takes

    square = float(stats.norm.ppf(UPPER)) ** 2 / instances
    centre = (share + square / 2) / (1 + square)
    reach = float(np.sqrt(square * (share * (1 - share) + square / 4))) / (1 + square)
    # By rounding an end may miss the share, which Wilson's interval contains, or exceed 0 to 1.
    low, high = max(0.0, centre - reach), min(1.0, centre + reach)
    return Interval(min(share, low), max(share, high))


def has_no_width(ends: Interval) -> bool:
    """Return whether both ends of an interval are equal; False if it is undefined."""
    return bool(ends.high - ends.low <= LEAST_WIDTH)


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
    """Return the minimum detectable effect between the models of a benchmark.

    Parameters
    ----------
    benchmark, by : of the row
    points : shape (models, instances)
        Mean scores of a model's responses to an instance, in points of the scale; NaN
        where there is none. Each pair is compared on the instances that both have.
    shape : of the benchmark's rubric, for the ends of the scale
    """
    scored = points[(~np.isnan(points)).any(axis=1)]
    pair_scores = [_common_scores(scores, other) for scores, other in combinations(scored, 2)]
    usable = [scores for scores in pair_scores if scores.shape[1] >= LEAST_SHARED]
    is_shared = (~np.isnan(points)).sum(axis=0) > 1
    if not usable:
        notes = noted(undefined("no_two_models", "no two models share two scored instances"))
        return DetectableRow(benchmark, by, NAN, NAN, int(is_shared.sum()), 0, notes=notes)
    paper_effects = (
        [paper_mde((scores[0] - scores[1]) / shape.high) for scores in usable]
        if shape.high > 0
        else [NAN]
    )
    differences = [np.subtract(*unit_scale(scores, shape.low, shape.high)) for scores in usable]
    exact_effects = [exact_mde(scores) for scores in differences]
    return DetectableRow(
        benchmark,
        by,
        mde=float(np.mean(paper_effects)),
        mde_exact=float(np.mean(exact_effects)),
        n_instances=int(is_shared.sum()),
        n_pairs=len(usable),
        notes=tuple(_detectable_notes(usable, differences, exact_effects, len(pair_scores), shape)),
    )


def _common_scores(first: Array, second: Array) -> Array:
    """Return the scores of two models on the instances that both have, shape (2, n)."""
    both = ~np.isnan(first) & ~np.isnan(second)
    return np.stack([first[both], second[both]])


def _detectable_notes(
    pairs: list[Array],
    differences: list[Array],
    effects: list[float],
    n_pairs: int,
    shape: RubricShape,
) -> Iterator[Note]:
    n_undetected = sum(
        abs(float(np.mean(difference))) < least
        for difference, least in zip(differences, effects, strict=True)
    )
    yield note(
        "pairs_not_detected",
        "{small} of {pairs:pair} of models are seen to differ by less",
        small=n_undetected,
        pairs=len(pairs),
    )
    fewest, most = (extreme(scores.shape[1] for scores in pairs) for extreme in (min, max))
    if fewest < most:
        yield note(
            "pairs_share", "a pair shares {fewest} to {most} instances", fewest=fewest, most=most
        )
    if n_left_out := n_pairs - len(pairs):
        yield note(
            "model_pairs_left",
            "{pairs:pair} left out for sharing fewer than {least}",
            pairs=n_left_out,
            least=LEAST_SHARED,
        )
    if shape.high <= 0:
        yield note(
            "no_paper_figure",
            "no figure by the paper's formula, which divides by the top of the scale",
        )
    if fewest < FEW_INSTANCES:
        yield note(
            "detectable_a_guess",
            "with fewer than {least} instances the sd, and so the figure, is a rough estimate",
            least=FEW_INSTANCES,
        )
