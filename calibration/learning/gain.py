"""How much closer to the clinicians a jury is with another rubric, on the same responses."""

from dataclasses import dataclass

import numpy as np

from calibration.clustered_intervals import clustered_mean
from calibration.scores import Array, Integers
from calibration.values import NAN


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


def part_gain(
    clinicians: Array, before: Array, after: Array, instances: Integers, confidence: float = 0.95
) -> PartGain:
    """Return what a change of rubric did to the distance between jury and clinicians.

    Parameters
    ----------
    clinicians, before, after : shape (n,)
        Mean over raters and criteria of each response; NaN where a juror is missing.
    instances : shape (n,)
        The instance of each response.
    confidence : of the interval, between 0 and 1

    References
    ----------
    Cochran (1977), Sampling Techniques, chapter 9A, for the mean over clusters of unequal size; its
    interval is by t with one degree of freedom less than there are instances.
    """
    known = ~np.isnan(clinicians + before + after)
    off_before, off_after = (np.abs(jury - clinicians)[known] for jury in (before, after))
    _, where = np.unique(instances[known], return_inverse=True)
    n_instances = int(where.max()) + 1 if known.any() else 0
    mean = clustered_mean(off_before - off_after, where.astype(np.intp), n_instances)
    ends = mean.interval(confidence)
    distances = [float(off.mean()) if known.any() else NAN for off in (off_before, off_after)]
    counts = int(known.sum()), n_instances, int((~known).sum())
    return PartGain(distances[0], distances[1], mean.value, ends.low, ends.high, *counts)
