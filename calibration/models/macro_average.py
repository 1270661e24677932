"""Macro-averages: the mean over benchmarks, each of them counting the same."""

import numpy as np

from calibration.models.win_rate import NAN, mean_of_defined
from calibration.scores import Array


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
    benchmarks. It says how uneven a model is, not how sure its macro-average is.
    """
    return np.array([_sd(row[~np.isnan(row)]) for row in means])


def _sd(row: Array) -> float:
    return float(np.std(row, ddof=1)) if len(row) > 1 else NAN
