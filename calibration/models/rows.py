"""Rows of the table of models, and of its categories."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibration.bootstrap import percentile_interval
from calibration.models.corrected import CORRECTED
from calibration.models.figures import CATEGORIES, MACRO, WIN, Figures, rank_ends
from calibration.models.macro_average import macro_average_sd, macro_averages
from calibration.models.notes import category_note, model_note
from calibration.models.scores import Table
from calibration.models.shared import sharing
from calibration.models.win_rate import NAN, mean_of_defined, win_rate_sd, win_rates
from calibration.scores import Array


@dataclass(frozen=True)
class ModelRow:
    """One model by one way of scoring: a row of `models --json`; undefined is NaN.

    Attributes
    ----------
    model, by : str
        `by` is "clinicians", "jury" or "corrected".
    win_rate, win_rate_low, win_rate_high : float
        Share of the other models beaten on a benchmark, mean over benchmarks; percentile
        95 % interval over instances.
    win_rate_sd : float
        Over opponents, ddof 0, as in the paper's Table 1.
    win_rate_by_instance : float
        Share of the other models beaten on the same instance; NaN for "corrected".
    macro_average, macro_average_sd, low, high : float
        Mean over benchmarks, 0 to 1; SD over benchmarks, ddof 1; 95 % interval of the mean.
    rank, rank_low, rank_high : float
        By win rate, 1 the best; models that tie share the better rank. The interval takes
        the better rank of a tie at its low end, the worse at its high end.
    n_benchmarks : int, those with a mean of this model
    n_responses, n_missing : int, its responses whose score enters, and all its others
    n_paired : int, pairs (instance, opponent) behind `win_rate_by_instance`
    note : str
    """

    model: str
    by: str
    win_rate: float
    win_rate_sd: float
    win_rate_low: float
    win_rate_high: float
    win_rate_by_instance: float
    macro_average: float
    macro_average_sd: float
    low: float
    high: float
    rank: float
    rank_low: float
    rank_high: float
    n_benchmarks: int
    n_responses: int
    n_missing: int
    n_paired: int
    note: str


@dataclass(frozen=True)
class CategoryRow:
    """A model's mean over the benchmarks of a category, 0 to 1, with its 95 % interval.

    `n` is how many of its responses the mean rests on; NaN without any. `category` is ""
    for benchmarks that have none.
    """

    model: str
    category: str
    by: str
    mean: float
    low: float
    high: float
    n: int
    note: str


def model_rows(table: Table, found: Figures) -> list[ModelRow]:
    """Return a row a model, by win rate and then by macro-average, the best first."""
    means, wins = found.means, win_rates(found.means)
    shared = None if found.of.by == CORRECTED else sharing(table, found.of.by)
    no_score = np.full(len(wins), NAN)
    columns = {
        "win_rate": wins,
        "win_rate_sd": win_rate_sd(means),
        "win_rate_by_instance": shared.rates if shared else no_score,
        "macro_average": macro_averages(means),
        "macro_average_sd": macro_average_sd(means),
        "rank": rank_ends(wins)[0],
        **_ends(found.drawn[:, :, WIN], "win_rate_"),
        **_ends(found.drawn[:, :, MACRO], ""),
        **_rank_interval(found),
    }
    rows = []
    for model, name in enumerate(table.layout.models):
        scored = found.of.counted[table.frame["model"] == model]
        rows.append(
            ModelRow(
                model=name,
                by=found.of.by,
                **{column: float(values[model]) for column, values in columns.items()},
                n_benchmarks=int((~np.isnan(means[model])).sum()),
                n_responses=int(scored.sum()),
                n_missing=int((~scored).sum()),
                n_paired=int(shared.pairs[model]) if shared else 0,
                note=model_note(table, found, model, shared),
            )
        )
    return sorted(rows, key=lambda row: (-_last(row.win_rate), -_last(row.macro_average)))


def category_rows(table: Table, found: Figures) -> Iterator[CategoryRow]:
    """Yield a row for each category and model, in alphabetical order."""
    benchmarks = np.array(table.layout.benchmarks)
    for place, (category, own) in enumerate(found.members.items(), start=CATEGORIES):
        here = table.frame["benchmark"].isin(benchmarks[own]) & found.of.counted
        mean = mean_of_defined(found.means[:, own])
        for model, name in enumerate(table.layout.models):
            ends = percentile_interval(found.drawn[:, model, place])
            n = int((here & (table.frame["model"] == model)).sum())
            note = category_note(table, found, model, own)
            yield CategoryRow(
                name, category, found.of.by, float(mean[model]), ends.low, ends.high, n, note
            )


def _ends(drawn: Array, name: str) -> dict[str, Array]:
    """Return the interval of every model's replicates (reps, models), as columns."""
    ends = [percentile_interval(own) for own in drawn.T]
    return {
        f"{name}low": np.array([one.low for one in ends]),
        f"{name}high": np.array([one.high for one in ends]),
    }


def _rank_interval(found: Figures) -> dict[str, Array]:
    best, worst = found.ranks
    return {
        "rank_low": np.array([_quantile(own, 0.025, "lower") for own in best.T]),
        "rank_high": np.array([_quantile(own, 0.975, "higher") for own in worst.T]),
    }


def _quantile(ranks: Array, share: float, side: str) -> float:
    """Return a quantile that is a rank itself; NaN without any."""
    finite = ranks[~np.isnan(ranks)]
    if not len(finite):
        return NAN
    return float(np.quantile(finite, share, method="lower" if side == "lower" else "higher"))


def _last(value: float) -> float:
    """Return a value for sorting that puts NaN after all others."""
    return -np.inf if np.isnan(value) else value
