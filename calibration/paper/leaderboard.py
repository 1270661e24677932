"""Table 1 and the figures from a leaderboard: models' means on benchmarks, and nothing below them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibration.models.model_scores import (
    macro_average_sd,
    macro_averages,
    mean_of_defined,
    unit_scale,
    win_rate_sd,
    win_rates,
)
from calibration.paper.values import Published
from calibration.scores import Array

JURY_SCORE = re.compile(r"jury score", re.IGNORECASE)
LOW, HIGH = 1.0, 5.0  # of HELM's jury scores


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Models' means as a leaderboard has them.

    Attributes
    ----------
    models, benchmarks, metrics : their names; a metric for each benchmark
    scores : shape (models, benchmarks), as they stand there; NaN where a model has none
    win_rates : model -> the mean win rate that stands there, of those that have one
    """

    models: tuple[str, ...]
    benchmarks: tuple[str, ...]
    metrics: tuple[str, ...]
    scores: Array
    win_rates: Mapping[str, float]

    def means(self) -> Array:
        """Return the scores from 0 to 1: jury scores as (x - 1) / 4, others as they are."""
        judged = np.array([bool(JURY_SCORE.search(metric)) for metric in self.metrics])
        return np.where(judged, unit_scale(self.scores, LOW, HIGH), self.scores)


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    """A model's line of Table 1, as `calibration.models.rows.ModelRow` has these figures.

    `win_rate_sd_strict` is the SD over opponents with a tie as no win, as the paper prints it.
    """

    model: str
    win_rate: float
    win_rate_sd: float
    win_rate_sd_strict: float
    macro_average: float
    macro_average_sd: float
    n_benchmarks: int


def leaderboard_rows(board: Leaderboard) -> list[LeaderboardRow]:
    """Return Table 1 from a leaderboard, the highest win rate first.

    There are no single instances, so nothing has an interval.
    """
    means = board.means()
    wins, opponents = win_rates(means), win_rate_sd(means)
    macro, spread = macro_averages(means), macro_average_sd(means)
    strict = _strict_sd(means)
    n_benchmarks = (~np.isnan(means)).sum(axis=1)
    rows = [
        LeaderboardRow(
            name,
            float(wins[at]),
            float(opponents[at]),
            float(strict[at]),
            float(macro[at]),
            float(spread[at]),
            int(n_benchmarks[at]),
        )
        for at, name in enumerate(board.models)
    ]
    return sorted(rows, key=lambda row: -row.win_rate)


def _strict_sd(means: Array) -> Array:
    """Return the SD over opponents of the share of benchmarks won, ddof 0, a tie being no win.

    A benchmark that one of both lacks is lost too, as in `tables/1_win_rate_table.py` of
    som-shahlab/medhelm. NaN without an opponent.
    """
    models = len(means)
    rates = [
        [float(np.mean(means[model] > means[other])) for other in range(models) if other != model]
        for model in range(models)
    ]
    return np.array([np.std(row) if row else np.nan for row in rates])


def category_means(board: Leaderboard, places: Mapping[str, str]) -> tuple[list[str], Array]:
    """Return the categories and the models' means over each one's benchmarks.

    Parameters
    ----------
    board : Leaderboard
    places : benchmark -> category; those without are in none

    Returns
    -------
    The categories in the order of `places`, and shape (models, categories); NaN without a mean.
    """
    names = [name for name in dict.fromkeys(places.values()) if name]
    means = board.means()
    of = np.array([places.get(name, "") for name in board.benchmarks])
    columns = [mean_of_defined(means[:, of == name]) for name in names]
    return names, np.stack(columns, axis=-1) if names else np.empty((len(board.models), 0))


def win_rates_told(board: Leaderboard) -> tuple[Published, ...]:
    """Return each win rate that stands in the leaderboard beside the one that its scores give.

    Leaderboards give three digits, of the scores too: scores that tie at three digits may not have
    tied where the win rate was computed.
    """
    computed = {row.model: row.win_rate for row in leaderboard_rows(board)}
    return tuple(
        Published(model, "win_rate", told, computed[model], 3)
        for model, told in board.win_rates.items()
    )
