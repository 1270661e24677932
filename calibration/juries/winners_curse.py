"""What to expect of the best of many juries on new responses: chosen in a resample, judged outside."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.bootstrap import Counts
from calibration.juries.sets import Bench
from calibration.resample import Moments, icc_of_moments, moments
from calibration.scores import Array, Flags, Integers

NOBODY = -1
Made = Callable[[Integers], tuple[Flags, Array]]


@dataclass(eq=False)
class Outside:
    """Sums of squares and products of chosen juries and clinicians, over responses not drawn.

    Attributes
    ----------
    sums : shape (places, 3)
        For each place, x the jury, y the clinicians: xx, yy, xy about the means of each
        resample's own responses, added up over all resamples.
    """

    sums: Array

    def add(self, bench: Bench, counts: Counts, chosen: Integers, made: Made) -> None:
        """Add resamples (B, clusters) in which juries `chosen` (B, places) were chosen.

        `made` gives the members (B, k) and the columns (B, n) of juries (B,), as they were
        learnt in the resamples.
        """
        left = (counts == 0)[:, bench.clusters] & bench.heard
        for place, jury in enumerate(chosen.T):
            members, column = made(np.maximum(jury, 0))
            rows = left & (jury != NOBODY)[:, None] & bench.present(members)
            self.sums[place] += _about_means(rows.astype(np.float64), column, bench.clinicians)

    def icc(self, *, restandardise: bool) -> Array:
        """Return the ICC of every place from its pooled sums; NaN where there are none."""
        zero = np.zeros(len(self.sums))
        xx, yy, xy = self.sums.T
        pooled = Moments(n=np.full(len(zero), 2.0), x=zero, y=zero, xx=xx, yy=yy, xy=xy)
        return icc_of_moments(pooled, restandardise=restandardise)


def _about_means(weights: Array, x: Array, clinicians: Array) -> Array:
    """Return xx, yy, xy about the means of each resample, added over resamples (B, n)."""
    found = moments(weights, x, np.broadcast_to(clinicians, x.shape))
    n = np.maximum(found.n, 1.0)
    return np.array(
        [
            (found.xx - found.x**2 / n).sum(),
            (found.yy - found.y**2 / n).sum(),
            (found.xy - found.x * found.y / n).sum(),
        ]
    )


def best_places(icc: Array, places: int) -> Integers:
    """Return the juries at the first places of each resample, (B, places), from ICCs (B, M).

    -1 where fewer juries have an ICC. Of equal ones the earlier stands first.
    """
    known = np.where(np.isnan(icc), -np.inf, icc)
    places = min(places, icc.shape[1])
    top = np.sort(np.argpartition(-known, places - 1, axis=1)[:, :places], axis=1)
    order = np.argsort(-np.take_along_axis(known, top, axis=1), axis=1, kind="stable")
    found: Integers = np.take_along_axis(top, order, axis=1)
    return np.where(np.isneginf(np.take_along_axis(known, found, axis=1)), NOBODY, found)


def best_of_each(icc: Array, groups: Sequence[Integers]) -> Integers:
    """Return the best jury of each group of juries in each resample, (B, groups)."""
    known = np.where(np.isnan(icc), -np.inf, icc)
    best = [own[known[:, own].argmax(axis=1)] for own in groups]
    lost = [np.isneginf(known[:, own].max(axis=1)) for own in groups]
    return np.where(np.column_stack(lost), NOBODY, np.column_stack(best))
