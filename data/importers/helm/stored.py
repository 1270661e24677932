"""The scores that HELM itself computed of its jury, to be held against what the jurors said."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from data.importers.helm.files import (
    PER_INSTANCE,
    STATS,
    InstanceStats,
    Spec,
    Stat,
    read_parts,
)

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Stored:
    """HELM's jury scores: one an instance and trial, and their mean as `stats.json` has it."""

    scores: Mapping[Key, float]
    mean: float | None

    def of(self, instance_id: str, trial: int) -> float | None:
        """Return the score of one answer, None where the run does not hold it."""
        return self.scores.get((instance_id, trial))


def read_stored(folder: Path, metric: Spec | None, annotator: str) -> Stored:
    """Read the jury's figures; there are none where HELM wrote no such file."""
    name = str(metric.args.get("metric_name")) if metric else f"{annotator}_accuracy"
    scores: dict[Key, float] = {}
    for one in read_parts(folder, PER_INSTANCE, InstanceStats):
        if one.perturbation is None:
            for mean in _means(one.stats, name):
                scores[one.instance_id, one.train_trial_index] = mean
    return Stored(scores, next(iter(_means(read_parts(folder, STATS, Stat), name)), None))


def _means(stats: list[Stat], name: str) -> list[float]:
    """Return the means of one figure, those of perturbed texts left out."""
    ours = (one for one in stats if one.name.name == name and one.name.perturbation is None)
    return [one.mean for one in ours if one.mean is not None and math.isfinite(one.mean)]
