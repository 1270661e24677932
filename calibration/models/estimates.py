"""Scores and means of models by each way of scoring, win rates, resamples, and differences."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pandas as pd

from calibration.bootstrap import Counts, draw_counts, percentile_interval
from calibration.clustered_intervals import wilson
from calibration.icc import UNDEFINED, Interval
from calibration.models.rows import CLINICIANS, CORRECTED, JURY, PAPER
from calibration.notes import Note, note
from calibration.predicting import (
    UNLIKE,
    RatedSample,
    prediction_powered_mean,
    standardised_difference,
)
from calibration.rating_matrix import composites, required_criteria
from calibration.remarks import FEW_INSTANCES, MOST_LOST
from calibration.scores import Array, Flags, Integers, Scores
from data.errors import BadInput, TooFew

ROUNDING = 1e-9  # means, and ends of intervals, that are closer differ by rounding only
LEAST_RATED = 5  # instances of a model and benchmark; with fewer the correction is a guess
LEAST_RESAMPLES = 40  # with fewer, none lies outside a 95 % interval
WIN, MACRO, CATEGORIES = 0, 1, 2  # where a resample's figures stand
Sums = list[tuple[Array, Array]]  # sums and numbers of scores (instances, models) by benchmark


def mean_of_defined(values: Array, needed: Flags | None = None) -> Array:
    """Return the mean over the last axis of what is not NaN; NaN where all is.

    With `needed`, it is the mean of those that are True there, NaN if any of them is. Over
    benchmarks on one scale it is the macro-average: of those that a model has, so that models
    with different benchmarks are not comparable.
    """
    counted = ~np.isnan(values) if needed is None else needed
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(counted, values, 0.0).sum(axis=-1) / counted.sum(axis=-1)
    return mean


def benchmark_win_rates(means: Array) -> Array:
    """Return the share of the other models that each model beats, on each benchmark.

    Of means (..., models, benchmarks), higher is better, NaN where a model has none, in the same
    shape: over the other models that have a mean on that benchmark; a tie is half a win. NaN where
    the model has no mean or no other model has one. Leading axes are independent tables.

    References
    ----------
    Liang et al. (2023), HELM, mean win rate; `compute_aggregate_row_win_rates` of
    stanford-crfm/helm, whose ties are half a win too (in versions since 2025).
    """
    wins = np.zeros_like(means)
    opponents = np.zeros_like(means)
    for model in range(means.shape[-2]):
        opponent = means[..., model : model + 1, :]
        wins += _wins(means, opponent)
        opponents += ~np.isnan(opponent)
    defined = ~np.isnan(means) & (opponents > 1)
    # Each model was also compared with itself: half a win against one opponent.
    return np.where(defined, (wins - 0.5) / np.maximum(opponents - 1, 1), np.nan)


def win_rates(means: Array) -> Array:
    """Return the mean of `benchmark_win_rates` over the benchmarks where a model has one, as in HELM."""
    return mean_of_defined(benchmark_win_rates(means))


def win_rate_sd(means: Array) -> Array:
    """Return the SD of a model's win rates against each single other model, ddof 0.

    This is the "Win SD" of the paper's Table 1: not over benchmarks but over opponents.
    Against one opponent the win rate is the share of benchmarks won, of those that both have.
    Shape (models, benchmarks) to (models,); NaN without an opponent that shares a benchmark.

    References
    ----------
    `tables/1_win_rate_table.py` of som-shahlab/medhelm; there a tie is no win, here half a
    one, as in the win rate itself. Without ties or gaps the two are the same.
    """
    wins, n_shared = _wins_by_opponent(means)
    with np.errstate(invalid="ignore"):
        rates = pd.DataFrame(wins / n_shared)
    return rates.std(axis=1, ddof=0).to_numpy(dtype=np.float64)


def paired_wins(scores: Array) -> tuple[Array, Integers]:
    """Return how often each model beats the others on the same instance, of scores (models, instances).

    Against each opponent the share of common instances won, a tie half a win, as the mean over
    opponents that share any, NaN without; and how many pairs (instance, opponent) there are.
    """
    wins, n_shared = _wins_by_opponent(scores)
    with np.errstate(invalid="ignore"):
        return mean_of_defined(wins / n_shared), n_shared.sum(axis=1)


def _wins_by_opponent(scores: Array) -> tuple[Array, Integers]:
    """Return wins of models (rows) against others, and the columns that both have, none of its own."""
    wins = np.stack([_wins(row, scores).sum(axis=1) for row in scores])
    n_shared = np.stack([(~np.isnan(row - scores)).sum(axis=1) for row in scores])
    np.fill_diagonal(wins, 0.0)
    np.fill_diagonal(n_shared, 0)
    return wins, n_shared


def _wins(scores: Array, opponents: Array) -> Array:
    """Return 1 for a win, half for a tie, 0 for a loss or where either has no score."""
    difference = scores - opponents
    wins: Array = (difference > ROUNDING) + 0.5 * (np.abs(difference) <= ROUNDING)
    return wins


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Every response of the study with its model and its scores.

    Attributes
    ----------
    frame : benchmark, instance (numbered from 0 within its benchmark), model (its number in `models`),
        clinicians and jury: means of composites from 0, the worst, to 1, the best; NaN where there
        is none. `paper` is the benchmark's metric where it has one, else the jury's score.
    models, benchmarks : names in alphabetical order
    sizes : how many instances each benchmark has
    simulated : "clinicians", "jury" or "paper" -> simulated raters whose scores are in that column
    left_out : benchmarks whose rubric lacks the criterion
    """

    frame: pd.DataFrame
    models: tuple[str, ...]
    benchmarks: tuple[str, ...]
    sizes: tuple[int, ...]
    simulated: Mapping[str, frozenset[str]]
    left_out: tuple[str, ...]

    def by_instance(self, benchmark: str, column: str) -> Array:
        """Return the mean over a model's responses to an instance, shape (models, instances)."""
        responses = self.frame[self.frame["benchmark"] == benchmark]
        means = responses.groupby(["model", "instance"])[column].mean().unstack()
        size = self.sizes[self.benchmarks.index(benchmark)]
        return means.reindex(range(len(self.models)), columns=range(size)).to_numpy(np.float64)


def model_scores(
    scores: Scores,
    authors: Mapping[str, str],
    jurors: Sequence[str],
    criterion: str | None = None,
    measured: Mapping[str, str] | None = None,
) -> ModelScores:
    """Return every response with its model, the clinicians' mean and the jury's.

    These are raw composites, (score - low) / (high - low) of the scale, as in the paper's Table 1:
    from 1 to 5 it is (x - 1) / 4. z within raters would remove differences between models. The
    jury has a score only where all its jurors have a composite. Parameters are as in `comparison.compare_models`; no jurors are no jury.

    Raises
    ------
    BadInput, TooFew
        If a response has no author; if the study has no responses.
    """
    names = required_criteria(scores.rubrics, criterion)
    frame = scores.responses[scores.responses["benchmark"].isin(list(names))]
    if not len(frame):
        raise TooFew("the study has no responses to compare models by")
    ids = frame["response_id"]
    if without_author := [name for name in ids if name not in authors]:
        raise BadInput(
            f"{len(without_author)} responses, {without_author[0]} first, have no author in the study"
        )
    given = composites(scores, criterion).values
    of_clinicians = given[given["kind"] == "clinician"]
    of_jurors = given[(given["kind"] == "juror") & given["rater"].isin(list(jurors))]
    jury = of_jurors.groupby("response_id")["composite"].agg(["mean", "count"])
    whole_jury = jury.loc[jury["count"] == len(set(jurors)), "mean"]
    shapes = [scores.rubrics[name] for name in frame["benchmark"]]
    low, high = np.array([(shape.low, shape.high) for shape in shapes], dtype=np.float64).T
    clinicians = of_clinicians.groupby("response_id")["composite"].mean()
    for column, of_responses in ((CLINICIANS, clinicians), (JURY, whole_jury)):
        own = of_responses.reindex(ids).to_numpy(dtype=np.float64)
        frame = frame.assign(**{column: (own - low) / (high - low)})
    models, model = np.unique(ids.map(dict(authors)).to_numpy(dtype=str), return_inverse=True)
    instances = frame.groupby("benchmark", observed=True)["instance_id"]
    frame = frame.assign(
        model=model,
        instance=instances.transform(lambda own: pd.factorize(own, sort=True)[0]).astype(np.int64),
        paper=_as_in_the_paper(frame, given, measured or {}),
    ).reset_index(drop=True)
    raters = {CLINICIANS: set(of_clinicians["rater"]), JURY: set(jurors), PAPER: set(jurors)}
    sizes = instances.nunique()
    benchmarks = tuple(sorted(map(str, sizes.index)))
    return ModelScores(
        frame,
        tuple(map(str, models)),
        benchmarks,
        tuple(int(sizes[name]) for name in benchmarks),
        {column: scores.simulated & own for column, own in raters.items()},
        tuple(benchmark for benchmark in scores.benchmarks if benchmark not in names),
    )


def _as_in_the_paper(
    frame: pd.DataFrame, composites: pd.DataFrame, measured: Mapping[str, str]
) -> pd.Series:
    """Return each response's score by its benchmark's metric, or by the jury where it has none."""
    of_metrics = composites[composites["kind"] == "metric"]
    by_metric = of_metrics.set_index(["rater", "response_id"])["composite"]
    paper = frame[JURY].copy()
    for benchmark, metric in measured.items():
        own = frame["benchmark"] == benchmark
        points = by_metric.loc[metric].reindex(frame.loc[own, "response_id"])
        paper[own] = points.to_numpy(dtype=np.float64)
    return paper


@dataclass(frozen=True, eq=False)
class Estimate:
    """The means of one way of scoring, and its figures in resamples.

    Attributes
    ----------
    means : shape (models, benchmarks), NaN where there is none
    instances : of the same shape, instances with a score; of "corrected" those that clinicians
        rated, which limit its precision
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
        """Return a figure's percentile interval; where all resamples agree, of a mean none.

        Of a win rate it is then Wilson's, as of as many independent comparisons as there are
        instances: where a model leads clearly all resamples agree, which does not make it certain.
        """
        ends = percentile_interval(self.replicates[:, model, column])
        if not ends.high - ends.low <= ROUNDING:
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
    benchmark (`predicting.prediction_powered_mean`): the jury's mean on the responses
    that no clinician rated, corrected by the difference of clinicians and jury on those that
    both rated, for each model by itself. Where clinicians rated all of a model's responses it is
    their mean; else it is NaN with fewer than 5 rated instances. In resamples the weight of the
    jury is fixed: its variation affects the mean's variance only in the second order
    (Angelopoulos et al. 2023, section 6).

    Instances are drawn within each benchmark; benchmarks are not, so that all figures are for these.
    `categories` is benchmark -> category, `resampling` the number of resamples and the seed; `tick`
    is called with the number of resamples done.
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
    reps, seed = resampling
    cells = max(sum(table.sizes), len(table.models) ** 2 * len(table.benchmarks))
    seeds = [np.random.SeedSequence([seed, at]).generate_state(1)[0] for at in range(len(of))]
    streams = [
        draw_counts(size, reps=reps, seed=int(own), rows=cells)
        for size, own in zip(table.sizes, seeds, strict=True)
    ]
    for counts in zip(*streams, strict=True):
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
        parts = [
            [(n @ sums) / (n @ numbers) for n, (sums, numbers) in zip(counts, term, strict=True)]
            for term in terms
        ]
    means: Array = np.sum([np.stack(part, axis=-1) for part in parts], axis=0)
    return means


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
    """The difference between the macro-averages of two models on the same benchmarks, first - second.

    Its percentile 95 % interval is NaN where all resamples agree. `instances` are the fewest that a
    mean of either rests on; `resamples` have a difference, and `lost` ones have none.
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
        if ends.high - ends.low <= ROUNDING:
            ends = UNDEFINED
        resamples = int(np.isfinite(replicates).sum())
        instances = int(found.instances[[first, second]][:, has_mean[first]].min())
        yield Gap(
            *(found.by, models[first], models[second]),
            *(float(macro[first] - macro[second]), ends.low, ends.high),
            *(instances, resamples, len(replicates) - resamples),
        )
