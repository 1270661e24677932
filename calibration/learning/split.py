"""The parts of the clinicians' instances: one to learn from, one to choose by, one that is opened once."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from data.errors import TooFew

TRAIN, CHOOSE, TEST = "train", "choose", "test"
PARTS = (TRAIN, CHOOSE, TEST)
LEAST = 10  # instances of a part, below which it decides nothing


@dataclass(frozen=True, slots=True)
class Shares:
    """How much of the instances each part gets; together 1."""

    train: float = 0.4
    choose: float = 0.25
    test: float = 0.35


def split_instances(
    strata: Mapping[int, Hashable],
    seed: int,
    shares: Shares = Shares(),
) -> dict[str, tuple[int, ...]]:
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
    parts: dict[str, list[int]] = {name: [] for name in PARTS}
    by_stratum: dict[str, list[int]] = {}
    for instance in sorted(strata):
        by_stratum.setdefault(repr(strata[instance]), []).append(instance)
    owed = dict.fromkeys(PARTS, 0.0)
    for stratum in sorted(by_stratum):
        members = by_stratum[stratum]
        random.shuffle(members)
        for instance in members:
            for name in PARTS:
                owed[name] += getattr(shares, name)
            largest = max(PARTS, key=lambda name: owed[name])
            owed[largest] -= 1
            parts[largest].append(instance)
    _refuse_small(parts, shares)
    return {name: tuple(sorted(members)) for name, members in parts.items()}


def _refuse_small(parts: Mapping[str, list[int]], shares: Shares) -> None:
    smallest = min(PARTS, key=lambda name: len(parts[name]))
    if len(parts[smallest]) < LEAST:
        needed = math.ceil(LEAST / min(getattr(shares, name) for name in PARTS))
        raise TooFew(
            f"{sum(map(len, parts.values()))} instances have whole ratings by clinicians; the part to "
            f"{smallest} would have {len(parts[smallest])}, and below {LEAST} it shows nothing: have "
            f"clinicians rate about {needed} instances"
        )
