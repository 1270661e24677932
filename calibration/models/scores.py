"""Scores of each model's responses by clinicians and jury, and win rates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from calibration.models.rows import CLINICIANS, JURY, PAPER
from calibration.rating_matrix import composites, required_criteria
from calibration.scores import Array, Flags, Integers, Scores
from data.errors import BadInput, TooFew

ROUNDING = 1e-9  # means that are closer differ by rounding only


def mean_of_defined(values: Array, needed: Flags | None = None) -> Array:
    """Return the mean over the last axis of what is not NaN; NaN where all is.

    With `needed`, it is the mean of those that are True there, NaN if any of them is. Over
    benchmarks on one scale (`unit_scale`) it is the macro-average: of those that a model
    has, so that models with different benchmarks are not comparable.
    """
    counted = ~np.isnan(values) if needed is None else needed
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(counted, values, 0.0).sum(axis=-1) / counted.sum(axis=-1)
    return mean


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


def unit_scale(score: Array, low: Array | float, high: Array | float) -> Array:
    """Return (score - low) / (high - low): 0 for the worst point of a scale, 1 for the best.

    For scores from 1 to 5 it is (x - 1) / 4, as in the paper's Table 1 and Figure 4. NaN stays.
    """
    scaled: Array = (score - low) / (np.asarray(high) - low)
    return scaled


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Every response of the study with its model and its scores.

    Attributes
    ----------
    frame : DataFrame
        benchmark, instance (numbered from 0 within its benchmark), model (its number in `models`),
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
    BadInput
        If a response has no author.
    TooFew
        If the study has no responses.
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
    ends = np.array([(shape.low, shape.high) for shape in shapes], dtype=np.float64).T
    points = {
        CLINICIANS: of_clinicians.groupby("response_id")["composite"].mean(),
        JURY: whole_jury,
    }
    for column, of_responses in points.items():
        own = of_responses.reindex(ids).to_numpy(dtype=np.float64)
        frame = frame.assign(**{column: unit_scale(own, *ends)})
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
