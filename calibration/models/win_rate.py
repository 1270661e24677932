"""Win rates and macro-averages of models, as HELM and the paper's Table 1 compute them."""

import warnings
from dataclasses import dataclass

import numpy as np

from calibration.scores import Array, Flags, Integers
from calibration.values import NAN

ROUNDING = 1e-9  # means that are closer differ by rounding only


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
