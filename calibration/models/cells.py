"""Mean scores of models on benchmarks, and the same in resamples of the instances."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from calibration.bootstrap import Counts, draw_counts
from calibration.models.scores import Layout, Table
from calibration.scores import Array, Integers


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
