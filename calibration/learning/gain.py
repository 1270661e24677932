"""How much closer to the clinicians a jury is with another rubric, on the same responses."""

import numpy as np

from calibration.clustered_intervals import clustered_mean
from calibration.learning.values import PartGain
from calibration.scores import Array, Integers
from calibration.values import NAN


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
