"""Scores of each model's responses by clinicians and jury, their means by benchmark, and win rates."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from calibration.models.rows import PAPER
from calibration.rating_matrix import composites, required_criteria
from calibration.scores import Array, Flags, Integers, Scores
from calibration.values import NAN
from data.errors import BadInput, TooFew, Unknown

ROUNDING = 1e-9  # means that are closer differ by rounding only
JUROR = "juror:"


def benchmark_win_rates(means: Array) -> Array:
    """Return the share of the other models that each model beats, on each benchmark.

    Parameters
    ----------
    means : shape (..., models, benchmarks)
        Mean scores, higher is better; NaN where a model has none. Leading axes are
        independent tables, such as resamples.

    Returns
    -------
    shape (..., models, benchmarks)
        In [0, 1], over the other models that have a mean on that benchmark; a tie is half
        a win. NaN where the model has no mean or no other model has one.

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
    """Return the mean of `benchmark_win_rates` over benchmarks, shape (..., models).

    Benchmarks where a model has no win rate are left out of its mean, as in HELM; NaN where
    it has none at all.
    """
    return mean_of_defined(benchmark_win_rates(means))


def win_rate_sd(means: Array) -> Array:
    """Return the SD of a model's win rates against each single other model.

    This is the "Win SD" of the paper's Table 1: not over benchmarks but over opponents.
    Against one opponent the win rate is the share of benchmarks won, of those that both have.

    Parameters
    ----------
    means : shape (models, benchmarks), NaN where missing

    Returns
    -------
    shape (models,)
        Divided by the number of opponents (ddof 0), as there. NaN without an opponent that
        shares a benchmark; 0 with one opponent.

    References
    ----------
    `tables/1_win_rate_table.py` of som-shahlab/medhelm; there a tie is no win, here half a
    one, as in the win rate itself. Without ties or gaps the two are the same.
    """
    models = len(means)
    rates = np.full((models, models), np.nan)
    for model in range(models):
        for other in range(models):
            shared = ~np.isnan(means[model]) & ~np.isnan(means[other])
            if model != other and shared.any():
                rates[model, other] = _wins(means[model, shared], means[other, shared]).mean()
    return np.array([_sd_over_opponents(row[~np.isnan(row)]) for row in rates])


@dataclass(frozen=True, eq=False)
class PairedWins:
    """Win rates on common instances, shape (models,); `pairs` counts what they rest on.

    `rates` is NaN where a model shares no instance with another.
    """

    rates: Array
    pairs: Integers


def paired_wins(scores: Array) -> PairedWins:
    """Return how often each model beats the others on the same instance of one benchmark.

    Parameters
    ----------
    scores : shape (models, instances)
        Higher is better; NaN where a model has no score on an instance.

    Returns
    -------
    PairedWins
        Against each opponent the share of common instances won, a tie half a win; then the
        mean over opponents that share any. `pairs` counts (instance, opponent).
    """
    models = len(scores)
    rates, pairs = np.full(models, np.nan), np.zeros(models, dtype=np.int64)
    for model in range(models):
        is_shared: Flags = ~np.isnan(scores) & ~np.isnan(scores[model])
        is_shared[model] = False
        n_shared = is_shared.sum(axis=1)
        wins = np.where(is_shared, _wins(scores[model], scores), 0.0).sum(axis=1)
        pairs[model] = n_shared.sum()
        if pairs[model]:
            rates[model] = float(np.mean(wins[n_shared > 0] / n_shared[n_shared > 0]))
    return PairedWins(rates, pairs)


def mean_of_defined(values: Array) -> Array:
    """Return the mean over the last axis of what is not NaN; NaN where all is."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        mean: Array = np.nanmean(values, axis=-1)
    return mean


def _wins(scores: Array, opponents: Array) -> Array:
    """Return 1 for a win, half for a tie, 0 for a loss or where either has no score."""
    difference = scores - opponents
    wins: Array = (difference > ROUNDING) + 0.5 * (np.abs(difference) <= ROUNDING)
    return wins


def _sd_over_opponents(rates: Array) -> float:
    return float(np.std(rates)) if len(rates) else NAN


def unit_scale(score: Array, low: Array | float, high: Array | float) -> Array:
    """Return (score - low) / (high - low): 0 for the worst point of a scale, 1 for the best.

    For scores from 1 to 5 it is (x - 1) / 4, which the paper's Table 1 and Figure 4 use
    (`tables/1_win_rate_table.py` and `plots/1_heatmap.py` of som-shahlab/medhelm). NaN stays.
    """
    scaled: Array = (score - low) / (np.asarray(high) - low)
    return scaled


def macro_averages(means: Array) -> Array:
    """Return the mean over benchmarks of a model's mean scores.

    Parameters
    ----------
    means : shape (..., models, benchmarks)
        On one scale (`unit_scale`); NaN where a model has none.

    Returns
    -------
    shape (..., models)
        Over the benchmarks that a model has, so that models with different benchmarks are
        not comparable; NaN without any.
    """
    return mean_of_defined(means)


def macro_average_sd(means: Array) -> Array:
    """Return the SD of a model's mean scores over benchmarks, as in the paper's Table 1.

    Shape (models, benchmarks) to (models,). ddof 1, as there; NaN with fewer than two
    benchmarks. It shows how much a model varies, not how precise its macro-average is.
    """
    return np.array([_sd_over_benchmarks(row[~np.isnan(row)]) for row in means])


def _sd_over_benchmarks(row: Array) -> float:
    return float(np.std(row, ddof=1)) if len(row) > 1 else NAN


@dataclass(frozen=True)
class ModelLayout:
    """Which models and benchmarks there are, and how many instances each benchmark has."""

    models: tuple[str, ...]
    benchmarks: tuple[str, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Every response of the study with its model and its scores.

    Attributes
    ----------
    frame : DataFrame
        response_id, benchmark, instance (numbered from 0 within its benchmark), model
        (its number in `layout.models`), clinicians and jury: means of composites from 0,
        the worst, to 1, the best; NaN where there is none. `paper` is the benchmark's metric where
        it has one, else the jury's score.
    layout : ModelLayout
    simulated : "clinicians", "jury" or "paper" -> simulated raters whose scores are in that column
    left_out : benchmarks whose rubric lacks the criterion
    """

    frame: pd.DataFrame
    layout: ModelLayout
    simulated: Mapping[str, frozenset[str]]
    left_out: tuple[str, ...] = ()

    def by_instance(self, benchmark: str, column: str) -> Array:
        """Return the mean over a model's responses to an instance, shape (models, instances)."""
        responses = self.frame[self.frame["benchmark"] == benchmark].dropna(subset=[column])
        means = responses.groupby(["model", "instance"])[column].mean()
        size = self.layout.sizes[self.layout.benchmarks.index(benchmark)]
        by_instance = np.full((len(self.layout.models), size), np.nan)
        places = np.array(list(means.index), dtype=np.int64).reshape(-1, 2)
        by_instance[places[:, 0], places[:, 1]] = means.to_numpy()
        return by_instance


def model_scores(
    scores: Scores,
    authors: Mapping[str, str],
    jurors: Sequence[str],
    criterion: str | None = None,
    measured: Mapping[str, str] | None = None,
) -> ModelScores:
    """Return every response with its model, the clinicians' mean and the jury's.

    These are raw composites on a scale from 0 to 1 (`unit_scale`); z within raters would remove
    differences between models. The jury has a score only where all its jurors have a composite.

    Parameters
    ----------
    scores : Scores
    authors : response_id -> model, of every response
    jurors : the jury; empty for none
    criterion : a criterion to use instead of the composite; benchmarks without it are left out
    measured : benchmark -> the metric, from 0 to 1, that takes the jury's place in `paper`

    Raises
    ------
    Unknown
        If a juror or the criterion is not in the study.
    BadInput
        If a response has no author.
    TooFew
        If the study has no responses.
    """
    check_names(scores, jurors, criterion)
    names = required_criteria(scores.rubrics, criterion)
    responses = scores.responses[scores.responses["benchmark"].isin(list(names))]
    if not len(responses):
        raise TooFew("the study has no responses to compare models by")
    if without_author := [name for name in responses["response_id"] if name not in authors]:
        raise BadInput(
            f"{len(without_author)} responses, {without_author[0]} first, have no author in the study"
        )
    values = composites(scores, criterion).values
    frame = responses.assign(
        clinicians=_on_unit_scale(scores, responses, _clinicians_composites(values)),
        jury=_on_unit_scale(scores, responses, _jury_composites(values, jurors)),
        author=responses["response_id"].map(dict(authors)),
    )
    clinicians = frozenset(values.loc[values["kind"] == "clinician", "rater"])
    frame[PAPER] = _as_in_the_paper(frame, values, measured or {})
    raters_of = {"clinicians": clinicians, "jury": frozenset(jurors), PAPER: frozenset(jurors)}
    simulated = {column: raters & scores.simulated for column, raters in raters_of.items()}
    left_out = tuple(benchmark for benchmark in scores.benchmarks if benchmark not in names)
    return replace(_with_numbers(frame, simulated), left_out=left_out)


def check_names(scores: Scores, jurors: Sequence[str], criterion: str | None) -> None:
    """Raise Unknown if a juror or the criterion is not in the study."""
    known = scores.raters("juror")
    if unknown := [name for name in jurors if name not in known]:
        known_jurors = f"it has {', '.join(known)}" if known else "it has none"
        raise Unknown(f"no ratings by a juror {', '.join(unknown)} in this study: {known_jurors}")
    criteria = dict.fromkeys(name for rubric in scores.rubrics.values() for name in rubric.criteria)
    if criterion is not None and criterion not in criteria:
        raise Unknown(f"no rubric has the criterion {criterion}: they have {', '.join(criteria)}")


def check_measured(scores: Scores, measured: Mapping[str, str]) -> None:
    """Refuse a metric that a benchmark was not scored by, or whose scores leave 0 to 1.

    Raises
    ------
    Unknown
        If the study has no such benchmark, or no score of the metric on it.
    BadInput
        If a score is below 0 or above 1.
    """
    of_metrics = scores.ratings[scores.ratings["kind"] == "metric"]
    for benchmark, metric in measured.items():
        if benchmark not in scores.rubrics:
            known = ", ".join(scores.benchmarks)
            raise Unknown(f"no benchmark {benchmark} in this study: it has {known}")
        on_it = of_metrics[of_metrics["benchmark"] == benchmark]
        own = on_it.loc[on_it["rater"] == metric, "score"]
        if not len(own):
            names = ", ".join(sorted(on_it["rater"].unique())) or "none"
            raise Unknown(f"{benchmark} has no scores by the metric {metric}: it has {names}")
        if own.min() < 0 or own.max() > 1:
            raise BadInput(f"{metric} on {benchmark} leaves the range from 0 to 1")


def _as_in_the_paper(
    frame: pd.DataFrame, composites: pd.DataFrame, measured: Mapping[str, str]
) -> pd.Series:
    """Return each response's score by its benchmark's metric, or by the jury where it has none."""
    of_metrics = composites[composites["kind"] == "metric"]
    by_metric = of_metrics.set_index(["rater", "response_id"])["composite"]
    paper = frame["jury"].copy()
    for benchmark, metric in measured.items():
        own = frame["benchmark"] == benchmark
        points = by_metric.loc[metric].reindex(frame.loc[own, "response_id"])
        paper[own] = points.to_numpy(dtype=np.float64)
    return paper


def _clinicians_composites(composites: pd.DataFrame) -> pd.Series:
    of_clinicians = composites[composites["kind"] == "clinician"]
    return of_clinicians.groupby("response_id")["composite"].mean()


def _jury_composites(composites: pd.DataFrame, jurors: Sequence[str]) -> pd.Series:
    of_jurors = composites[(composites["kind"] == "juror") & composites["rater"].isin(list(jurors))]
    jury_mean = of_jurors.groupby("response_id")["composite"].agg(["mean", "count"])
    return jury_mean.loc[jury_mean["count"] == len(set(jurors)), "mean"]


def _on_unit_scale(scores: Scores, responses: pd.DataFrame, points: pd.Series) -> Array:
    """Return scores of the responses in their order, from 0 to 1; NaN where there is none."""
    shapes = [scores.rubrics[name] for name in responses["benchmark"]]
    low = np.array([shape.low for shape in shapes], dtype=np.float64)
    high = np.array([shape.high for shape in shapes], dtype=np.float64)
    values = points.reindex(responses["response_id"]).to_numpy(dtype=np.float64)
    return unit_scale(values, low, high)


def _with_numbers(frame: pd.DataFrame, simulated: Mapping[str, frozenset[str]]) -> ModelScores:
    """Return the scores with models and instances numbered from 0."""
    benchmarks = tuple(sorted(frame["benchmark"].unique()))
    models, model = np.unique(frame["author"].to_numpy(dtype=str), return_inverse=True)
    codes = [
        frame.loc[frame["benchmark"] == name, "instance_id"].astype("category").cat.codes
        for name in benchmarks
    ]
    sizes = tuple(int(numbers.max()) + 1 for numbers in codes)
    numbered = frame.assign(model=model, instance=pd.concat(codes).astype(np.int64))
    columns = ["response_id", "benchmark", "instance", "model", "clinicians", "jury", PAPER]
    layout = ModelLayout(tuple(map(str, models)), benchmarks, sizes)
    return ModelScores(numbered[columns].reset_index(drop=True), layout, simulated)
