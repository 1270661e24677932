"""Mean scores of models on benchmarks by each way of scoring, and in resamples."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from calibration.bootstrap import Counts, draw_counts
from calibration.codes import NoteCode as Code
from calibration.models.model_scores import Layout, Table
from calibration.models.rows import CORRECTED
from calibration.models.win_rate import ROUNDING, benchmark_win_rates, win_rates
from calibration.predicting.prediction_powered import (
    Sample,
    prediction_powered_mean,
    standardised_difference,
)
from calibration.scores import Array, Flags, Integers
from calibration.values import Note, note


@dataclass(frozen=True, eq=False)
class Cells:
    """Sums and numbers of scores by instance: whatever is drawn, a mean is their quotient.

    One array a benchmark in each, shape (instances, models).
    """

    sums: tuple[Array, ...]
    numbers: tuple[Array, ...]

    def means(self) -> Array:
        """Return the mean over responses, shape (models, benchmarks); NaN without a score."""
        means: Array = self.drawn([np.ones((1, len(one))) for one in self.sums])[0]
        return means

    def drawn(self, counts: Sequence[Counts]) -> Array:
        """Return the means of resamples, counts (B, instances) of each benchmark.

        Shape (B, models, benchmarks); NaN where a resample holds no score.
        """
        with np.errstate(invalid="ignore"):
            parts = [
                (drawn @ own) / (drawn @ number)
                for drawn, own, number in zip(counts, self.sums, self.numbers, strict=True)
            ]
        return np.stack(parts, axis=-1)


def cells(table: Table, values: pd.Series) -> Cells:
    """Return the cells of some value of each response; where it is NaN there is none."""
    sums, numbers = [], []
    for name, size in zip(table.layout.benchmarks, table.layout.sizes, strict=True):
        own = values[table.frame["benchmark"] == name].dropna()
        where = table.frame.loc[own.index, ["instance", "model"]].to_numpy(dtype=np.int64)
        shape = (size, len(table.layout.models))
        sums.append(_added(where, own.to_numpy(dtype=np.float64), shape))
        numbers.append(_added(where, np.ones(len(own)), shape))
    return Cells(tuple(sums), tuple(numbers))


def draws(layout: Layout, reps: int, seed: int) -> Iterator[list[Counts]]:
    """Draw instances within every benchmark; yield counts (B, instances) of each, B together.

    The benchmarks are not drawn: a figure speaks of these ones. Each has draws of its own.
    """
    models = len(layout.models)
    held = max(sum(layout.sizes), models * models * len(layout.benchmarks))
    streams = [
        draw_counts(size, reps=reps, seed=_own_seed(seed, place), rows=held)
        for place, size in enumerate(layout.sizes)
    ]
    for counts in zip(*streams, strict=True):
        yield list(counts)


def replicates(
    statistic: Callable[[Array], Array],
    means: Callable[[Sequence[Counts]], Array],
    resamples: Iterator[list[Counts]],
    tick: Callable[[int], None],
) -> Array:
    """Return a statistic of the means in every resample, shape (reps, ...)."""
    found = []
    for counts in resamples:
        found.append(statistic(means(counts)))
        tick(len(counts[0]))
    return np.concatenate(found)


def _added(where: Integers, values: Array, shape: tuple[int, int]) -> Array:
    table = np.zeros(shape)
    np.add.at(table, tuple(where.T), values)
    return table


def _own_seed(seed: int, place: int) -> int:
    return int(np.random.SeedSequence([seed, place]).generate_state(1)[0])


UNLIKE = 0.25  # standard deviations; below it samples are commonly taken as alike (Rubin 2001)
LEAST_RATED = 5  # instances of a model and benchmark; with fewer the correction is a guess


@dataclass(frozen=True, eq=False)
class Estimate:
    """Means of models on benchmarks by one way of scoring; each is the sum of its terms.

    Attributes
    ----------
    by : "clinicians", "jury" or "corrected"
    terms : Cells
    counted : shape (responses,), True where a response's score enters
    instances : shape (models, benchmarks), instances with a score; of "corrected" those
        that clinicians rated, on which its certainty rests
    warning : of "corrected", where rated responses may be no random sample, or None
    """

    by: str
    terms: tuple[Cells, ...]
    counted: pd.Series
    instances: Integers
    warning: Note | None = None

    def means(self) -> Array:
        """Return shape (models, benchmarks); NaN where there is none."""
        means: Array = self.drawn([np.ones((1, len(one))) for one in self.terms[0].sums])[0]
        return means

    def drawn(self, counts: Sequence[Counts]) -> Array:
        """Return the means of resamples, shape (B, models, benchmarks)."""
        total: Array = np.sum([term.drawn(counts) for term in self.terms], axis=0)
        return total


def estimate(table: Table, by: str) -> Estimate:
    """Return a model's mean on a benchmark as clinicians, the jury, or both together give it.

    "clinicians" and "jury" are the means over the responses that have such a score.
    "corrected" is the prediction-powered mean of the model's own responses to the
    benchmark (`prediction_powered.prediction_powered_mean`): the jury on the responses
    nobody rated, moved by what clinicians and jury differ by on those that both rated. A
    jury that favours one model is so corrected for that model. Where clinicians rated all of
    them there is nothing to predict, and it is the clinicians' mean; else NaN with fewer than
    5 rated instances. In resamples its weight stays as it is: how the weight varies changes the
    mean's variance in the second order only (Angelopoulos et al. 2023, section 6).
    """
    if by == CORRECTED:
        return _corrected(table)
    values = table.frame[by]
    own = cells(table, values)
    return Estimate(by, (own,), values.notna(), _instances(own))


def _corrected(table: Table) -> Estimate:
    frame = table.frame
    rated = frame["clinicians"].notna() & frame["jury"].notna()
    far = frame["clinicians"].isna() & frame["jury"].notna()
    near, beyond = pd.Series(np.nan, frame.index), pd.Series(np.nan, frame.index)
    plain: list[tuple[int, int]] = []
    for _, own in frame.groupby(["benchmark", "model"]):
        here, there = own[rated[own.index]], own[far[own.index]]
        place = table.layout.benchmarks.index(own["benchmark"].iloc[0])
        model = int(own["model"].iloc[0])
        if own["clinicians"].notna().all():
            near[own.index] = own["clinicians"]
            plain.append((place, model))
            continue
        if here["instance"].nunique() < LEAST_RATED:
            continue
        weight = prediction_powered_mean(_sample(here, there)).weight
        near[here.index] = here["clinicians"] - weight * here["jury"]
        beyond[there.index] = weight * there["jury"]
        if not weight:
            plain.append((place, model))
    first, second = cells(table, near), cells(table, beyond)
    for place, model in plain:  # nothing to add, whatever is drawn: 0 / 1, never 0 / 0
        second.sums[place][:, model], second.numbers[place][:, model] = 0.0, 1.0
    counted = near.notna() | beyond.notna()
    return Estimate(CORRECTED, (first, second), counted, _instances(first), _unlike(frame))


def _unlike(frame: pd.DataFrame) -> Note | None:
    """Name the benchmarks whose rated responses the jury scores otherwise than the unrated.

    By over a quarter of a standard deviation (`standardised_difference`) and two standard
    errors; each model's own mean taken out, and the responses to one instance averaged.
    """
    unlike = []
    for name, own in frame.dropna(subset=["jury"]).groupby("benchmark"):
        apart = own["jury"] - own.groupby("model")["jury"].transform("mean")
        means = apart.groupby([own["clinicians"].notna(), own["instance"]]).mean()
        rated = means.index.get_level_values(0).to_numpy(dtype=np.bool_)
        near, far = means.to_numpy()[rated], means.to_numpy()[~rated]
        size = float(standardised_difference(near, far))
        if abs(size) > UNLIKE and abs(size) > 2 * np.sqrt(1 / len(near) + 1 / len(far)):
            unlike.append((str(name), size))
    return note(Code.NOT_RANDOM, benchmarks=unlike) if unlike else None


def _sample(rated: pd.DataFrame, unrated: pd.DataFrame) -> Sample:
    return Sample(
        clinicians=rated["clinicians"].to_numpy(),
        jury=rated["jury"].to_numpy(),
        instances=rated["instance"].to_numpy(),
        unrated_jury=unrated["jury"].to_numpy(),
        unrated_instances=unrated["instance"].to_numpy(),
    )


def _instances(own: Cells) -> Integers:
    return np.stack([(one > 0).sum(axis=0) for one in own.numbers], axis=-1).astype(np.int64)


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
