"""What a jury may learn from: the parts of the clinicians' instances, and the gain on each part."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from calibration.clustered_intervals import clustered_mean
from calibration.scores import Array, Integers
from calibration.values import NAN
from data.errors import TooFew

TRAIN, CHOOSE, TEST = "train", "choose", "test"
SHARES = {TRAIN: 0.4, CHOOSE: 0.25, TEST: 0.35}  # to learn from, to choose by, opened once
LEAST = 10  # instances of a part, below which it decides nothing


def split_instances(strata: Mapping[int, Hashable], seed: int) -> dict[str, tuple[int, ...]]:
    """Return the instances of each part, drawn at random within each stratum.

    An instance is in one part whole: its responses share a source. The parts of a stratum differ from
    its shares by less than one instance, and what is left over goes on to the next stratum, so that
    the whole keeps the shares too.

    Parameters
    ----------
    strata
        Instance -> what it is drawn within, such as its benchmark and whether clinicians scored
        it high or low.
    seed
        The same seed and instances give the same parts, in whatever order the instances come.

    Returns
    -------
    dict
        "train", "choose", "test" -> instances in ascending order.

    Raises
    ------
    TooFew
        If a part would have fewer than 10 instances.
    """
    random = np.random.default_rng(seed)
    parts: dict[str, list[int]] = {name: [] for name in SHARES}
    by_stratum: dict[str, list[int]] = {}
    for instance in sorted(strata):
        by_stratum.setdefault(repr(strata[instance]), []).append(instance)
    owed = dict.fromkeys(SHARES, 0.0)
    for stratum in sorted(by_stratum):
        members = by_stratum[stratum]
        random.shuffle(members)
        for instance in members:
            for name, share in SHARES.items():
                owed[name] += share
            largest = max(SHARES, key=lambda name: owed[name])
            owed[largest] -= 1
            parts[largest].append(instance)
    smallest = min(SHARES, key=lambda name: len(parts[name]))
    if len(parts[smallest]) < LEAST:
        needed = math.ceil(LEAST / min(SHARES.values()))
        raise TooFew(
            f"{len(strata)} instances have whole ratings by clinicians; the part to "
            f"{smallest} would have {len(parts[smallest])}, and below {LEAST} it shows nothing: have "
            f"clinicians rate about {needed} instances"
        )
    return {name: tuple(sorted(members)) for name, members in parts.items()}


@dataclass(frozen=True, slots=True)
class PartGain:
    """What a change of rubric did on one part of the responses, in points of the scale.

    Attributes
    ----------
    before, after
        Mean distance of the jury's mean from the clinicians' mean, over responses that both
        juries rated whole; NaN without any.
    gain, low, high
        before - after, with its 95 % interval over instances; NaN with fewer than 2 instances or
        where every response gained the same.
    n_responses, n_instances
        On which both juries stand.
    n_missing
        Responses of the part that a juror of either jury did not rate whole: left out.
    """

    before: float
    after: float
    gain: float
    low: float
    high: float
    n_responses: int
    n_instances: int
    n_missing: int

    @property
    def is_shown(self) -> bool:
        """Whether the interval lies above 0."""
        return self.low > 0


def part_gain(clinicians: Array, before: Array, after: Array, instances: Integers) -> PartGain:
    """Return what a change of rubric did to the distance between jury and clinicians.

    Parameters
    ----------
    clinicians, before, after : shape (n,)
        Mean over raters and criteria of each response; NaN where a juror is missing.
    instances : shape (n,)
        The instance of each response.
    """
    names, where = np.unique(instances, return_inverse=True)
    distances = np.abs(np.stack([before, after]) - clinicians)
    gains = distances[0] - distances[1]
    known = ~np.isnan(gains)
    mean = clustered_mean(gains, where, len(names))
    ends, number = mean.interval(), int(known.sum())
    off, off_after = (float(own[known].mean()) if number else NAN for own in distances)
    counts = number, mean.instances, len(known) - number
    return PartGain(off, off_after, mean.value, ends.low, ends.high, *counts)
