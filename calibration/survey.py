"""Statistics of a survey of a taxonomy: cards placed as intended, agreement, ratings, change by round."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from calibration.clustered_intervals import clustered_proportion, wilson
from calibration.icc import UNDEFINED, Interval
from calibration.scores import Array, Integers

LEVEL = (2.5, 97.5)


@dataclass(frozen=True, slots=True)
class Share:
    """`hits` of `trials` with a 95 % interval; the share is NaN without a trial."""

    hits: int
    trials: int
    interval: Interval

    @property
    def value(self) -> float:
        """The share, from 0 to 1."""
        return self.hits / self.trials if self.trials else math.nan


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient of agreement with its interval over cards."""

    value: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class MeanRating:
    """Mean, SD and 95 % t interval of n ratings from 1 to 5; NaN where undefined."""

    mean: float
    sd: float
    interval: Interval
    n: int


@dataclass(frozen=True, slots=True)
class ShareDifference:
    """The second share minus the first, with a 95 % interval."""

    value: float
    interval: Interval


def placed_as_intended(placed: Integers, intended: Integers) -> list[Share]:
    """Return, for each card, how many clinicians placed it as intended, with Wilson's interval.

    Parameters
    ----------
    placed : shape (clinicians, cards)
        The category's number; below 0 where a clinician did not place the card.
    intended : shape (cards,)
    """
    made = placed >= 0
    hits = (placed == intended) & made
    numbers = zip(hits.sum(axis=0).tolist(), made.sum(axis=0).tolist(), strict=True)
    return [Share(k, n, wilson(k / n, n) if n else UNDEFINED) for k, n in numbers]


def overall_share(placed: Integers, intended: Integers) -> Share:
    """Return the share of all placements as intended; clinicians, not placements, were sampled.

    Wilson's interval with the effective number of placements by clinicians as clusters, see
    `clustered_proportion`. Parameters as of `placed_as_intended`.
    """
    made = (placed >= 0).astype(np.float64)
    hits = ((placed == intended) & (placed >= 0)).astype(np.float64)
    clusters = np.repeat(np.arange(len(placed)), placed.shape[1])
    interval = clustered_proportion(hits.ravel(), made.ravel(), clusters)
    return Share(int(hits.sum()), int(made.sum()), interval)


def category_counts(placed: Integers, categories: int) -> Array:
    """Return how many clinicians placed each card in each category, shape (cards, categories)."""
    counts = np.zeros((placed.shape[1], categories))
    for category in range(categories):
        counts[:, category] = (placed == category).sum(axis=0)
    return counts


def fleiss_kappa(counts: Array) -> float:
    """Return Fleiss' kappa among clinicians.

    Parameters
    ----------
    counts : shape (cards, categories)
        How many clinicians placed a card in a category. Cards with fewer than two take no part.

    Returns
    -------
    float
        (P - Pe) / (1 - Pe), at most 1. With a different number of clinicians by card P is the mean
        over cards, as with equal numbers. NaN where no card has two, or all stand in one category.

    References
    ----------
    Fleiss (1971), Psychological Bulletin 76, 378.
    """
    used = counts[counts.sum(axis=1) >= 2]
    if not len(used):
        return math.nan
    totals = used.sum(axis=1)
    agreed = ((used * (used - 1)).sum(axis=1) / (totals * (totals - 1))).mean()
    chance = float(np.square(used.sum(axis=0) / totals.sum()).sum())
    return float((agreed - chance) / (1 - chance)) if chance < 1 else math.nan


def alpha_nominal(counts: Array) -> float:
    """Return Krippendorff's alpha for categories without an order.

    Parameters, and what takes part, as `fleiss_kappa`. NaN where nothing varies.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability, part C.
    """
    used = counts[counts.sum(axis=1) >= 2]
    totals = used.sum(axis=0)
    n = float(totals.sum())
    expected = n * n - float(np.square(totals).sum())
    if not expected > 0:
        return math.nan
    own = used.sum(axis=1, keepdims=True)
    same = float((used * (used - 1) / (own - 1)).sum())
    return 1 - (n - 1) * (n - same) / expected


def with_interval(statistic: str, counts: Array, reps: int, seed: int) -> Coefficient:
    """Return "kappa" or "alpha" with its percentile interval; cards are resampled.

    Undefined resamples are left out; the interval is NaN where over half of them are.
    """
    function = fleiss_kappa if statistic == "kappa" else alpha_nominal
    value = function(counts)
    random = np.random.default_rng(seed)
    draws = random.integers(0, len(counts), (reps, len(counts)))
    values = np.array([function(counts[draw]) for draw in draws])
    kept = values[~np.isnan(values)]
    if math.isnan(value) or 2 * len(kept) <= reps:
        return Coefficient(value, UNDEFINED)
    low, high = np.percentile(kept, LEVEL)
    return Coefficient(value, Interval(float(low), float(high)))


def confusion(placed: Integers, intended: Integers, categories: int) -> Integers:
    """Return placements by intended (row) and placed (column) category, shape (q, q)."""
    table = np.zeros((categories, categories), dtype=np.int64)
    for row in placed:
        made = row >= 0
        np.add.at(table, (intended[made], row[made]), 1)
    return table


def mean_rating(ratings: Sequence[int]) -> MeanRating:
    """Return the mean of clinicians' ratings from 1 to 5; without variance the interval is NaN."""
    values = np.asarray(ratings, dtype=np.float64)
    n = len(values)
    mean = float(values.mean()) if n else math.nan
    sd = float(values.std(ddof=1)) if n > 1 else math.nan
    if not sd > 0:
        return MeanRating(mean, sd, UNDEFINED, n)
    half = float(stats.t.ppf(0.975, n - 1)) * sd / math.sqrt(n)
    return MeanRating(mean, sd, Interval(mean - half, mean + half), n)


def share_difference(first: Share, second: Share) -> ShareDifference:
    """Return the second share minus the first, the two taken as independent.

    The interval is made of the two shares' own (Newcombe's method 10), so clusters count in it. Where
    the same clinicians answer both rounds it is wider than it need be.

    References
    ----------
    Newcombe (1998), Statistics in Medicine 17, 873.
    """
    value = second.value - first.value
    one, two = first.interval, second.interval
    if any(math.isnan(end) for end in (value, one.low, one.high, two.low, two.high)):
        return ShareDifference(value, UNDEFINED)
    down = math.hypot(second.value - two.low, one.high - first.value)
    up = math.hypot(two.high - second.value, first.value - one.low)
    return ShareDifference(value, Interval(max(-1.0, value - down), min(1.0, value + up)))
