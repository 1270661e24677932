"""Which instances the models have in common, and how they win on them."""

from dataclasses import dataclass

import numpy as np

from calibration.models.scores import Table
from calibration.models.win_rate import mean_of_defined, paired_wins
from calibration.scores import Array, Integers


@dataclass(frozen=True, eq=False)
class Sharing:
    """What single instances say of the models, shape (models,) each.

    Attributes
    ----------
    rates : win rate on common instances (`win_rate.paired_wins`), mean over benchmarks
    pairs : how many pairs (instance, opponent) that rests on
    own : instances with a score of this model
    common : those of them with a score of every model that the benchmark has
    every : instances with a score of any model
    """

    rates: Array
    pairs: Integers
    own: Integers
    common: Integers
    every: int


def sharing(table: Table, by: str) -> Sharing:
    """Return what the models share where scores are of single responses.

    `by` is "clinicians" or "jury"; a corrected mean has no score of a single response.
    """
    scores = [table.by_instance(name, by) for name in table.layout.benchmarks]
    found = [paired_wins(one) for one in scores]
    given = [~np.isnan(one) for one in scores]
    everybody = [one[one.any(axis=1)].all(axis=0) & one.any(axis=0) for one in given]
    return Sharing(
        rates=mean_of_defined(np.stack([one.rates for one in found], axis=-1)),
        pairs=np.sum([one.pairs for one in found], axis=0),
        own=np.sum([one.sum(axis=1) for one in given], axis=0),
        common=np.sum(
            [(one & all_).sum(axis=1) for one, all_ in zip(given, everybody, strict=True)], axis=0
        ),
        every=sum(int(one.any(axis=0).sum()) for one in given),
    )
