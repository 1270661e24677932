"""Means of models on benchmarks by each way of scoring, in resamples, and their differences."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pandas as pd

from calibration.bootstrap import Counts, draw_counts, percentile_interval
from calibration.clustered_intervals import wilson
from calibration.icc import UNDEFINED, Interval
from calibration.models.rows import CLINICIANS, CORRECTED, JURY
from calibration.models.scores import (
    ModelScores,
    benchmark_win_rates,
    mean_of_defined,
)
from calibration.notes import Note, note
from calibration.predicting.prediction_powered import (
    UNLIKE,
    RatedSample,
    prediction_powered_mean,
    standardised_difference,
)
from calibration.remarks import FEW_INSTANCES, MOST_LOST
from calibration.scores import Array, Flags, Integers

LEAST_RATED = 5  # instances of a model and benchmark; with fewer the correction is a guess
LEAST_RESAMPLES = 40  # with fewer, none lies outside a 95 % interval
LEAST_WIDTH = 1e-9  # ends that are closer differ by rounding only
WIN, MACRO, CATEGORIES = 0, 1, 2  # where a resample's figures stand
Sums = list[
    tuple[Array, Array]
]  # of each benchmark: sums and numbers of scores, (instances, models)


@dataclass(frozen=True, eq=False)
class Estimate:
    """The means of one way of scoring, and its figures in resamples.

    Attributes
    ----------
    by : "clinicians", "jury", "corrected" or "paper"
    means : shape (models, benchmarks), NaN where there is none
    instances : shape (models, benchmarks), instances with a score; of "corrected" those
        that clinicians rated, which limit its precision
    counted : shape (responses,), True where a response's score enters
    replicates : shape (reps, models, 2 + categories)
        Win rate, macro-average, then the mean of each category. NaN where a mean that the
        study has is undefined in the resample, and in all resamples where it rests on one
        instance, which would make them all equal.
    categories : category -> which benchmarks, in the order of `replicates`
    warning : of "corrected", where the rated responses may not be a random sample, or None
    """

    by: str
    means: Array
    instances: Integers
    counted: pd.Series
    replicates: Array
    categories: Mapping[str, Flags]
    warning: Note | None

    def interval(self, model: int, column: int) -> Interval:
        """Return a figure's percentile interval; where all resamples agree Wilson's, of a mean none.

        A win rate counts means that lie above others, so where a model leads clearly it is the
        same in all resamples, which does not make it certain. Wilson's interval is that of as
        many independent comparisons as there are instances.
        """
        ends = percentile_interval(self.replicates[:, model, column])
        if not ends.high - ends.low <= LEAST_WIDTH:
            return ends
        if column != WIN:
            return UNDEFINED
        rates = benchmark_win_rates(self.means)[model]
        share = float(mean_of_defined(rates))
        ends = wilson(share, float(self.instances[model, ~np.isnan(rates)].sum()))
        return Interval(min(share, ends.low), max(share, ends.high))  # whatever rounding does


def estimate(
    table: ModelScores,
    by: str,
    categories: Mapping[str, str],
    resampling: tuple[int, int],
    tick: Callable[[int], None],
) -> Estimate:
    """Return a model's mean on a benchmark as clinicians, the jury, or both together give it.

    "clinicians", "jury" and "paper" are the means over the responses that have such a score.
    "corrected" is the prediction-powered mean of the model's own responses to the
    benchmark (`prediction_powered.prediction_powered_mean`): the jury's mean on the responses
    that no clinician rated, corrected by the difference of clinicians and jury on those that
    both rated, for each model by itself. Where clinicians rated all of a model's responses it is
    their mean; else it is NaN with fewer than 5 rated instances. In resamples the weight of the
    jury is fixed: its variation affects the mean's variance only in the second order
    (Angelopoulos et al. 2023, section 6).

    Parameters
    ----------
    table, by : the scores, and the way of scoring
    categories : benchmark -> category
    resampling : number of resamples, and seed; instances are drawn within each benchmark, which
        are not drawn: all figures are for these benchmarks
    tick : called with the number of resamples done
    """
    if by == CORRECTED:
        terms, counted = _corrected(table)
    else:
        terms, counted = [_sums(table, table.frame[by])], table.frame[by].notna()
    means: Array = _means(terms, [np.ones((1, size)) for size in table.sizes])[0]
    of = [categories.get(benchmark, "") for benchmark in table.benchmarks]
    members = {name: np.array([own == name for own in of]) for name in sorted(set(of))}
    has_mean, has_win_rate = ~np.isnan(means), ~np.isnan(benchmark_win_rates(means))
    batches = []
    for counts in _instance_counts(table, *resampling):
        drawn = _means(terms, counts)
        figures = [
            mean_of_defined(benchmark_win_rates(drawn), has_win_rate),
            mean_of_defined(drawn, has_mean),
            *(mean_of_defined(drawn, has_mean & is_member) for is_member in members.values()),
        ]
        batches.append(np.stack(figures, axis=-1))
        tick(len(counts[0]))
    replicates = np.concatenate(batches)
    instances = np.stack([(numbers > 0).sum(axis=0) for _, numbers in terms[0]], axis=-1)
    single = (instances == 1) & has_mean
    every = np.ones(len(of), dtype=np.bool_)
    for column, is_member in enumerate([every, every, *members.values()]):
        replicates[:, (single & is_member).any(axis=1), column] = np.nan
    warning = _unlike_benchmarks(table.frame) if by == CORRECTED else None
    return Estimate(by, means, instances, counted, replicates, members, warning)


def _sums(table: ModelScores, values: pd.Series) -> Sums:
    """Return the sums and numbers of one value of each response; NaN counts as no value."""
    by_benchmark = []
    for name, size in zip(table.benchmarks, table.sizes, strict=True):
        own = table.frame[(table.frame["benchmark"] == name) & values.notna()]
        places = own["instance"].to_numpy(), own["model"].to_numpy()
        sums, numbers = np.zeros((2, size, len(table.models)))
        np.add.at(sums, places, values[own.index].to_numpy(dtype=np.float64))
        np.add.at(numbers, places, 1.0)
        by_benchmark.append((sums, numbers))
    return by_benchmark


def _means(terms: Sequence[Sums], counts: Sequence[Counts]) -> Array:
    """Return the means of resamples, the sums of their terms, shape (B, models, benchmarks)."""
    with np.errstate(invalid="ignore"):
        means = [
            np.stack(
                [
                    (n @ sums) / (n @ numbers)
                    for n, (sums, numbers) in zip(counts, term, strict=True)
                ],
                axis=-1,
            )
            for term in terms
        ]
    total: Array = np.sum(means, axis=0)
    return total


def _instance_counts(table: ModelScores, reps: int, seed: int) -> Iterator[Sequence[Counts]]:
    """Yield how often each instance is drawn in B resamples: counts (B, instances) by benchmark."""
    cells = max(sum(table.sizes), len(table.models) ** 2 * len(table.benchmarks))
    seeds = [
        int(np.random.SeedSequence([seed, place]).generate_state(1)[0])
        for place in range(len(table.sizes))
    ]
    streams = [
        draw_counts(size, reps=reps, seed=own, rows=cells)
        for size, own in zip(table.sizes, seeds, strict=True)
    ]
    yield from zip(*streams, strict=True)


def _corrected(table: ModelScores) -> tuple[list[Sums], pd.Series]:
    """Return what corrected means are the sum of, and the responses that enter them."""
    frame = table.frame
    residuals, predicted = pd.Series(np.nan, frame.index), pd.Series(np.nan, frame.index)
    uncorrected = []
    for _, own in frame.groupby(["benchmark", "model"], observed=True):
        place = table.benchmarks.index(own["benchmark"].iloc[0]), int(own["model"].iloc[0])
        is_rated = own[CLINICIANS].notna()
        if is_rated.all():
            residuals[own.index] = own[CLINICIANS]
            uncorrected.append(place)
            continue
        rated = own[is_rated & own[JURY].notna()]
        unrated = own[~is_rated & own[JURY].notna()]
        if rated["instance"].nunique() < LEAST_RATED:
            continue
        columns = [
            *(rated[name].to_numpy() for name in (CLINICIANS, JURY, "instance")),
            *(unrated[name].to_numpy() for name in (JURY, "instance")),
        ]
        weight = prediction_powered_mean(RatedSample(*columns)).weight
        residuals[rated.index] = rated[CLINICIANS] - weight * rated[JURY]
        predicted[unrated.index] = weight * unrated[JURY]
        if not weight:
            uncorrected.append(place)
    terms = [_sums(table, residuals), _sums(table, predicted)]
    for benchmark, model in uncorrected:  # adds 0 / 1 in every resample, never 0 / 0
        sums, numbers = terms[1][benchmark]
        sums[:, model], numbers[:, model] = 0.0, 1.0
    return terms, residuals.notna() | predicted.notna()


def _unlike_benchmarks(frame: pd.DataFrame) -> Note | None:
    """Return a note on the benchmarks where the jury scores rated and unrated responses unlike.

    They are unlike if their means differ by over a quarter of a standard deviation
    (`standardised_difference`) and two standard errors, with each model's own mean subtracted
    and the responses to one instance averaged.
    """
    unlike = []
    for name, own in frame.dropna(subset=[JURY]).groupby("benchmark", observed=True):
        deviations = own[JURY] - own.groupby("model")[JURY].transform("mean")
        is_rated = own[CLINICIANS].notna()
        rated, unrated = (
            deviations[flags].groupby(own["instance"]).mean().to_numpy()
            for flags in (is_rated, ~is_rated)
        )
        size = float(standardised_difference(rated, unrated))
        if abs(size) > UNLIKE and abs(size) > 2 * np.sqrt(1 / len(rated) + 1 / len(unrated)):
            unlike.append((str(name), size))
    if not unlike:
        return None
    words = ", ".join(
        f"{name} ({abs(size):.2f} sd {'better' if size > 0 else 'worse'})" for name, size in unlike
    )
    text = f"rated responses may be no random sample by the jury's scores: {words}"
    return note("not_random", lambda _: text, benchmarks=unlike)


@dataclass(frozen=True, slots=True)
class Gap:
    """The difference between the macro-averages of two models on the same benchmarks.

    Attributes
    ----------
    by, first, second : the way of scoring, and the two models
    difference, low, high : of the first minus the second, with its percentile 95 % interval,
        NaN where all resamples agree
    instances : the fewest that a mean of either rests on
    resamples, lost : how many have a difference, and how many have none
    """

    by: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    instances: int
    resamples: int
    lost: int

    @property
    def is_trusted(self) -> bool:
        """Whether the interval rests on enough instances and resamples to decide anything."""
        drawn = self.resamples + self.lost
        enough = self.resamples >= LEAST_RESAMPLES and self.lost <= MOST_LOST * drawn
        return self.instances >= FEW_INSTANCES and enough

    @property
    def is_ahead(self) -> bool:
        """Whether the first model can be told to have the higher macro-average, at 5 %."""
        return self.is_trusted and self.difference > 0 and self.low > 0


def gaps(found: Estimate, models: Sequence[str]) -> Iterator[Gap]:
    """Yield the difference of each model to each other whose means are of the same benchmarks."""
    macro, has_mean = mean_of_defined(found.means), ~np.isnan(found.means)
    for first, second in permutations(range(len(models)), 2):
        if not has_mean[first].any() or (has_mean[first] != has_mean[second]).any():
            continue
        replicates = found.replicates[:, first, MACRO] - found.replicates[:, second, MACRO]
        ends = percentile_interval(replicates)
        if ends.high - ends.low <= LEAST_WIDTH:
            ends = UNDEFINED
        resamples = int(np.isfinite(replicates).sum())
        instances = int(found.instances[[first, second]][:, has_mean[first]].min())
        yield Gap(
            *(found.by, models[first], models[second]),
            *(float(macro[first] - macro[second]), ends.low, ends.high),
            *(instances, resamples, len(replicates) - resamples),
        )
