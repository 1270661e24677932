"""Whether the share of unsafe responses that the jury misses keeps the protocol's limits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from calibration.protocol import Critical
from calibration.values import NAN, Note, Noted

if TYPE_CHECKING:
    from calibration.detection_row import DetectionRow


class LimitOutcome(StrEnum):
    """Whether a share of misses is within its limit: met, failed, or open."""

    MET = "met"
    FAILED = "failed"
    OPEN = "open"


@dataclass(frozen=True)
class Misses(Noted):
    """The jury's misses on one critical criterion.

    Attributes
    ----------
    benchmark, criterion, threshold : whose, as in the row they are taken from
    at_most : the largest share that was allowed, 0 to 1; NaN where none was fixed
    n_bad, n_missed : unsafe responses that the jury scored, and those it scores above the threshold
    missed, low, high : share of them that it misses, with the 95 % interval; NaN without any
    outcome : "met" where the upper end is at most what was allowed, "failed" where the lower end is
        above it, else "open", also where none was fixed or nothing is known
    """

    benchmark: str
    criterion: str
    threshold: float
    at_most: float = NAN
    n_bad: int = 0
    n_missed: int = 0
    missed: float = NAN
    low: float = NAN
    high: float = NAN
    outcome: LimitOutcome = LimitOutcome.OPEN


def misses(rows: "Sequence[DetectionRow]", critical: Critical, benchmark: str) -> Misses:
    """Return the jury's misses among the unsafe responses of one benchmark or of "combined".

    Parameters
    ----------
    rows : of `detection.detection`, asked with this criterion
    critical : the criterion, its threshold, and the largest share of misses allowed
    benchmark : whose row counts

    Returns
    -------
    Misses
        Open, with no response, where no row of the jury is about this criterion and threshold.
    """
    about = (benchmark, "jury", critical.criterion, critical.threshold)
    for row in rows:
        if (row.benchmark, row.scorer, row.criterion, row.threshold) == about:
            return _from_row(row, critical.miss_at_most, row.notes)
    return Misses(benchmark, critical.criterion, critical.threshold, critical.miss_at_most)


def _from_row(row: "DetectionRow", at_most: float, notes: tuple[Note, ...]) -> Misses:
    low, high = 1 - row.sensitivity_high, 1 - row.sensitivity_low
    return Misses(
        row.benchmark,
        row.criterion,
        row.threshold,
        at_most,
        n_bad=row.n_bad,
        n_missed=row.n_missed or 0,
        missed=1 - row.sensitivity,
        low=low,
        high=high,
        outcome=_outcome(low, high, at_most),
        notes=notes,
    )


def _outcome(low: float, high: float, at_most: float) -> LimitOutcome:
    if any(map(math.isnan, (low, high, at_most))):
        return LimitOutcome.OPEN
    if high <= at_most:
        return LimitOutcome.MET
    return LimitOutcome.FAILED if low > at_most else LimitOutcome.OPEN


def all_misses(
    rows: "Sequence[DetectionRow]", limits: Sequence[Critical] = ()
) -> dict[str, list[Misses]]:
    """Return what the jury misses on each critical criterion, by benchmark.

    Parameters
    ----------
    rows : of `detection.detection`
    limits : the criteria whose misses the protocol limits; of all others a limit is NaN
    """
    known = {(limit.criterion, limit.threshold): limit for limit in limits}
    misses_of: dict[str, list[Misses]] = {}
    for row in rows:
        if row.scorer == "jury" and row.critical:
            free = Critical(row.criterion, row.threshold)
            critical = known.get((row.criterion, row.threshold), free)
            misses_of.setdefault(row.benchmark, []).append(misses([row], critical, row.benchmark))
    return misses_of


def with_untested(
    misses_of: Mapping[str, Sequence[Misses]], limits: Sequence[Critical], benchmark: str
) -> dict[str, Sequence[Misses]]:
    """Return the misses, and on one benchmark an open one for each limit that was not tested.

    Parameters
    ----------
    misses_of : of `all_misses`
    limits : what the protocol allows
    benchmark : all that the protocol's claim is made of, such as "combined"
    """
    own = misses_of.get(benchmark, ())
    tested = {(row.criterion, row.threshold) for row in own}
    lacking = [
        misses((), limit, benchmark)
        for limit in limits
        if math.isfinite(limit.miss_at_most) and (limit.criterion, limit.threshold) not in tested
    ]
    return {**misses_of, benchmark: [*own, *lacking]}
