"""Mean scores of models on benchmarks by each way of scoring, and in resamples."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from calibration.bootstrap import Counts, draw_counts
from calibration.models.model_scores import (
    ROUNDING,
    ModelLayout,
    ModelScores,
    benchmark_win_rates,
    win_rates,
)
from calibration.models.rows import CORRECTED
from calibration.notes import Figures, Note, note
from calibration.predicting.prediction_powered import (
    UNLIKE,
    RatedSample,
    prediction_powered_mean,
    standardised_difference,
)
from calibration.scores import Array, Flags, Integers

LEAST_RATED = 5  # instances of a model and benchmark; with fewer the correction is a guess
WIN, MACRO, CATEGORIES = 0, 1, 2  # where a resample's figures stand


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Sums and numbers of scores by instance, from which the means of any resample follow.

    Attributes
    ----------
    sums, numbers : an array for each benchmark, shape (instances, models)
    """

    sums: tuple[Array, ...]
    numbers: tuple[Array, ...]

    def means(self) -> Array:
        """Return the mean over responses, shape (models, benchmarks); NaN without a score."""
        means: Array = self.resampled_means([np.ones((1, len(sums))) for sums in self.sums])[0]
        return means

    def resampled_means(self, counts: Sequence[Counts]) -> Array:
        """Return the means of resamples, counts (B, instances) of each benchmark.

        Shape (B, models, benchmarks); NaN where a resample holds no score.
        """
        with np.errstate(invalid="ignore"):
            means_by_benchmark = [
                (resampled @ sums) / (resampled @ numbers)
                for resampled, sums, numbers in zip(counts, self.sums, self.numbers, strict=True)
            ]
        return np.stack(means_by_benchmark, axis=-1)


def score_sums(table: ModelScores, values: pd.Series) -> ScoreSums:
    """Return the sums and numbers of one value of each response; NaN counts as no value."""
    sums, numbers = [], []
    for name, size in zip(table.layout.benchmarks, table.layout.sizes, strict=True):
        scores = values[table.frame["benchmark"] == name].dropna()
        places = table.frame.loc[scores.index, ["instance", "model"]].to_numpy(dtype=np.int64)
        shape = (size, len(table.layout.models))
        sums.append(_sum_by_place(places, scores.to_numpy(dtype=np.float64), shape))
        numbers.append(_sum_by_place(places, np.ones(len(scores)), shape))
    return ScoreSums(tuple(sums), tuple(numbers))


def instance_counts(layout: ModelLayout, reps: int, seed: int) -> Iterator[list[Counts]]:
    """Yield how often each instance is drawn in B resamples: counts (B, instances) by benchmark.

    Instances are drawn within each benchmark by itself. Benchmarks are not drawn: all figures
    are for these benchmarks.
    """
    models = len(layout.models)
    cells = max(sum(layout.sizes), models * models * len(layout.benchmarks))
    streams = [
        draw_counts(size, reps=reps, seed=_benchmark_seed(seed, number), rows=cells)
        for number, size in enumerate(layout.sizes)
    ]
    for counts in zip(*streams, strict=True):
        yield list(counts)


def statistic_replicates(
    statistic: Callable[[Array], Array],
    means: Callable[[Sequence[Counts]], Array],
    resamples: Iterator[list[Counts]],
    tick: Callable[[int], None],
) -> Array:
    """Return a statistic of the means in every resample, shape (reps, ...).

    `means` gives the means from counts, `tick` is called with the number of resamples done.
    """
    batches = []
    for counts in resamples:
        batches.append(statistic(means(counts)))
        tick(len(counts[0]))
    return np.concatenate(batches)


def _sum_by_place(places: Integers, values: Array, shape: tuple[int, int]) -> Array:
    sums = np.zeros(shape)
    np.add.at(sums, tuple(places.T), values)
    return sums


def _benchmark_seed(seed: int, place: int) -> int:
    return int(np.random.SeedSequence([seed, place]).generate_state(1)[0])


@dataclass(frozen=True, eq=False)
class ModelMeans:
    """Means of models on benchmarks by one way of scoring; each is the sum of its terms.

    Attributes
    ----------
    by : "clinicians", "jury", "corrected" or "paper"
    terms : tuple of ScoreSums
    counted : shape (responses,), True where a response's score enters
    instances : shape (models, benchmarks), instances with a score; of "corrected" those
        that clinicians rated, which limit its precision
    warning : of "corrected", where the rated responses may not be a random sample, or None
    """

    by: str
    terms: tuple[ScoreSums, ...]
    counted: pd.Series
    instances: Integers
    warning: Note | None = None

    def means(self) -> Array:
        """Return the means, shape (models, benchmarks); NaN where there is none."""
        means: Array = self.resampled_means(
            [np.ones((1, len(sums))) for sums in self.terms[0].sums]
        )[0]
        return means

    def resampled_means(self, counts: Sequence[Counts]) -> Array:
        """Return the means of resamples, shape (B, models, benchmarks)."""
        total: Array = np.sum([term.resampled_means(counts) for term in self.terms], axis=0)
        return total


def model_means(table: ModelScores, by: str) -> ModelMeans:
    """Return a model's mean on a benchmark as clinicians, the jury, or both together give it.

    "clinicians", "jury" and "paper" are the means over the responses that have such a score.
    "corrected" is the prediction-powered mean of the model's own responses to the
    benchmark (`prediction_powered.prediction_powered_mean`): the jury's mean on the responses
    that no clinician rated, corrected by the difference of clinicians and jury on those that
    both rated, for each model by itself. Where clinicians rated all of a model's responses it is
    their mean; else it is NaN with fewer than 5 rated instances. In resamples the weight of the
    jury is fixed: its variation affects the mean's variance only in the second order
    (Angelopoulos et al. 2023, section 6).
    """
    if by == CORRECTED:
        return _corrected_means(table)
    values = table.frame[by]
    sums = score_sums(table, values)
    return ModelMeans(by, (sums,), values.notna(), _scored_instances(sums))


def _corrected_means(table: ModelScores) -> ModelMeans:
    frame = table.frame
    is_rated = frame["clinicians"].notna() & frame["jury"].notna()
    is_unrated = frame["clinicians"].isna() & frame["jury"].notna()
    residuals, predicted = pd.Series(np.nan, frame.index), pd.Series(np.nan, frame.index)
    uncorrected: list[tuple[int, int]] = []
    for _, responses in frame.groupby(["benchmark", "model"]):
        rated, unrated = (responses[flag[responses.index]] for flag in (is_rated, is_unrated))
        benchmark = table.layout.benchmarks.index(responses["benchmark"].iloc[0])
        model = int(responses["model"].iloc[0])
        if responses["clinicians"].notna().all():
            residuals[responses.index] = responses["clinicians"]
            uncorrected.append((benchmark, model))
            continue
        if rated["instance"].nunique() < LEAST_RATED:
            continue
        weight = prediction_powered_mean(_rated_sample(rated, unrated)).weight
        residuals[rated.index] = rated["clinicians"] - weight * rated["jury"]
        predicted[unrated.index] = weight * unrated["jury"]
        if not weight:
            uncorrected.append((benchmark, model))
    residual_sums, predicted_sums = score_sums(table, residuals), score_sums(table, predicted)
    for benchmark, model in uncorrected:  # adds 0 / 1 in every resample, never 0 / 0
        predicted_sums.sums[benchmark][:, model] = 0.0
        predicted_sums.numbers[benchmark][:, model] = 1.0
    counted = residuals.notna() | predicted.notna()
    return ModelMeans(
        CORRECTED,
        (residual_sums, predicted_sums),
        counted,
        _scored_instances(residual_sums),
        _unlike_benchmarks(frame),
    )


def _unlike_benchmarks(frame: pd.DataFrame) -> Note | None:
    """Return a note on the benchmarks where the jury scores rated and unrated responses unlike.

    They are unlike if their means differ by over a quarter of a standard deviation
    (`standardised_difference`) and two standard errors, with each model's own mean subtracted
    and the responses to one instance averaged.
    """
    unlike = []
    for name, responses in frame.dropna(subset=["jury"]).groupby("benchmark"):
        deviations = responses["jury"] - responses.groupby("model")["jury"].transform("mean")
        means = deviations.groupby([responses["clinicians"].notna(), responses["instance"]]).mean()
        rated = means.index.get_level_values(0).to_numpy(dtype=np.bool_)
        rated_means, unrated_means = means.to_numpy()[rated], means.to_numpy()[~rated]
        size = float(standardised_difference(rated_means, unrated_means))
        n_rated, n_unrated = len(rated_means), len(unrated_means)
        if abs(size) > UNLIKE and abs(size) > 2 * np.sqrt(1 / n_rated + 1 / n_unrated):
            unlike.append((str(name), size))
    return note("not_random", _not_random, benchmarks=unlike) if unlike else None


def _rated_sample(rated: pd.DataFrame, unrated: pd.DataFrame) -> RatedSample:
    return RatedSample(
        clinicians=rated["clinicians"].to_numpy(),
        jury=rated["jury"].to_numpy(),
        instances=rated["instance"].to_numpy(),
        unrated_jury=unrated["jury"].to_numpy(),
        unrated_instances=unrated["instance"].to_numpy(),
    )


def _scored_instances(sums: ScoreSums) -> Integers:
    return np.stack([(numbers > 0).sum(axis=0) for numbers in sums.numbers], axis=-1).astype(
        np.int64
    )


@dataclass(frozen=True, eq=False)
class ResampledFigures:
    """The means of one way of scoring, and its figures in resamples.

    Attributes
    ----------
    estimate : ModelMeans
    means : shape (models, benchmarks)
    replicates : shape (reps, models, 2 + categories)
        Win rate, macro-average, then the mean of each category. NaN where a mean that the
        study has is undefined in the resample, and in all resamples where it rests on one
        instance, which would make them all equal.
    members : category -> which benchmarks, in the order of `replicates`
    """

    estimate: ModelMeans
    means: Array
    replicates: Array
    members: Mapping[str, Flags]

    @property
    def ranks(self) -> tuple[Array, Array]:
        """Return the best and the worst rank by win rate in each resample, (reps, models).

        They differ where models tie. All NaN in a resample where any win rate is undefined.
        """
        wins = self.replicates[:, :, WIN]
        ranked = ~np.isnan(win_rates(self.means))
        is_lost = np.isnan(wins[:, ranked]).any(axis=1)
        best, worst = rank_ends(wins)
        best[is_lost] = worst[is_lost] = np.nan
        return best, worst


def resampled_figures(
    table: ModelScores,
    estimate: ModelMeans,
    categories: Mapping[str, str],
    resampling: tuple[int, int],
    tick: Callable[[int], None],
) -> ResampledFigures:
    """Return the figures of one way of scoring, in the study and in resamples.

    Parameters
    ----------
    table, estimate : the scores, and the means of the way of scoring
    categories : benchmark -> category
    resampling : number of resamples, and seed
    tick : called with the number of resamples done
    """
    means = estimate.means()
    names = [categories.get(benchmark, "") for benchmark in table.layout.benchmarks]
    members = {
        name: np.array([benchmark == name for benchmark in names]) for name in sorted(set(names))
    }
    has_win_rate, has_mean = ~np.isnan(benchmark_win_rates(means)), ~np.isnan(means)

    def statistic(resampled: Array) -> Array:
        columns = [
            _mean_over(benchmark_win_rates(resampled), has_win_rate),
            _mean_over(resampled, has_mean),
        ]
        columns += [_mean_over(resampled, has_mean & is_member) for is_member in members.values()]
        return np.stack(columns, axis=-1)

    replicates = statistic_replicates(
        statistic, estimate.resampled_means, instance_counts(table.layout, *resampling), tick
    )
    single_instance = (estimate.instances == 1) & has_mean
    replicates[:, single_instance.any(axis=1), :CATEGORIES] = np.nan
    for place, is_member in enumerate(members.values(), start=CATEGORIES):
        replicates[:, (single_instance & is_member).any(axis=1), place] = np.nan
    return ResampledFigures(estimate, means, replicates, members)


def rank_ends(wins: Array) -> tuple[Array, Array]:
    """Return the best and the worst rank of each win rate, 1 for the highest.

    Shape (..., models). Models that tie share the ranks between the two. NaN where there is no
    win rate; the others are ranked without it.
    """
    ahead = wins[..., None, :] - wins[..., :, None]
    best = 1.0 + (ahead > ROUNDING).sum(axis=-1)
    worst = (ahead >= -ROUNDING).sum(axis=-1).astype(np.float64)
    undefined = np.isnan(wins)
    return np.where(undefined, np.nan, best), np.where(undefined, np.nan, worst)


def _mean_over(values: Array, defined: Flags) -> Array:
    """Return the mean over the defined benchmarks; NaN if any is NaN, or none defined."""
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(defined, values, 0.0).sum(axis=-1) / defined.sum(axis=-1)
    return mean


def _not_random(figures: Figures) -> str:
    unlike = (
        f"{name} ({abs(size):.2f} sd {'better' if size > 0 else 'worse'})"
        for name, size in figures["benchmarks"]
    )
    return f"rated responses may be no random sample by the jury's scores: {', '.join(unlike)}"
