"""The figures of all models by one way of scoring, in the study and in resamples of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from calibration.models.cells import draws, replicates
from calibration.models.corrected import Estimate
from calibration.models.scores import Table
from calibration.models.win_rate import ROUNDING, benchmark_win_rates, win_rates
from calibration.scores import Array, Flags

WIN, MACRO, CATEGORIES = 0, 1, 2  # where a resample's figures stand


@dataclass(frozen=True, eq=False)
class Figures:
    """The means of one way of scoring, and its figures in the resamples.

    Attributes
    ----------
    means : shape (models, benchmarks)
    drawn : shape (reps, models, 2 + categories)
        Win rate, macro-average, then the mean of each category. NaN where a mean that the
        study has is lost in the resample, and throughout where one rests on one instance:
        its resamples are all the same.
    members : category -> which benchmarks, in the order of `drawn`
    """

    of: Estimate
    means: Array
    drawn: Array
    members: Mapping[str, Flags]

    @property
    def ranks(self) -> tuple[Array, Array]:
        """Return the best and the worst rank by win rate in each resample, (reps, models).

        They differ where models tie. All NaN in a resample where any win rate is lost.
        """
        wins = self.drawn[:, :, WIN]
        ranked = ~np.isnan(win_rates(self.means))
        lost = np.isnan(wins[:, ranked]).any(axis=1)
        best, worst = rank_ends(wins)
        best[lost] = worst[lost] = np.nan
        return best, worst


def figures(
    table: Table,
    of: Estimate,
    categories: Mapping[str, str],
    drawing: tuple[int, int],
    tick: Callable[[int], None],
) -> Figures:
    """Return the figures of one way of scoring; `drawing` is how many resamples, and the seed."""
    means, names = of.means(), [categories.get(one, "") for one in table.layout.benchmarks]
    members = {name: np.array([one == name for one in names]) for name in sorted(set(names))}
    won, given = ~np.isnan(benchmark_win_rates(means)), ~np.isnan(means)

    def statistic(drawn: Array) -> Array:
        parts = [_over(benchmark_win_rates(drawn), won), _over(drawn, given)]
        parts += [_over(drawn, given & own) for own in members.values()]
        return np.stack(parts, axis=-1)

    drawn = replicates(statistic, of.drawn, draws(table.layout, *drawing), tick)
    alone = (of.instances == 1) & given
    drawn[:, alone.any(axis=1), :CATEGORIES] = np.nan
    for place, own in enumerate(members.values(), start=CATEGORIES):
        drawn[:, (alone & own).any(axis=1), place] = np.nan
    return Figures(of, means, drawn, members)


def rank_ends(wins: Array) -> tuple[Array, Array]:
    """Return the best and the worst rank that each win rate can claim, 1 the highest.

    Shape (..., models). Models that tie share the ranks between; NaN where there is no win
    rate, which is ranked against nobody.
    """
    ahead = wins[..., None, :] - wins[..., :, None]
    best = 1.0 + (ahead > ROUNDING).sum(axis=-1)
    worst = (ahead >= -ROUNDING).sum(axis=-1).astype(np.float64)
    none = np.isnan(wins)
    return np.where(none, np.nan, best), np.where(none, np.nan, worst)


def _over(values: Array, defined: Flags) -> Array:
    """Return the mean over the defined benchmarks; NaN if one of them is lost or none is."""
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(defined, values, 0.0).sum(axis=-1) / defined.sum(axis=-1)
    return mean
