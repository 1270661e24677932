"""What changed from one jury to another: responses that moved, and each juror's scores side by side."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from data.study.compare import FAILED, OTHERWISE, Compared, JurorOn, SidesOn

TOLERANCE = 1e-9  # what floating point alone moves
POINT = 1.0
Seats = tuple[JurorOn | None, JurorOn | None]


class What(StrEnum):
    """What may hold of a response beside two juries.

    Of UP to APART exactly one does: where its mean went from the first jury to the second. APART:
    both have a mean, on different scales or without a criterion in common. NOW_FAILED: the first
    jury has a mean and the second has none since a call to it failed.
    """

    UP = "up"
    DOWN = "down"
    SAME = "same"
    ONLY_FIRST = "only_first"
    ONLY_SECOND = "only_second"
    NEITHER = "neither"
    APART = "apart"
    BY_A_POINT = "by_a_point"
    EXPLAINED_OTHERWISE = "explained_otherwise"
    NOW_FAILED = "now_failed"


class Order(StrEnum):
    """What a list of changes begins with."""

    LARGEST = "largest"
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class JuryChange:
    """What changed on one response.

    `difference` is the second jury's mean less the first's, in points; None unless both have one
    that can be compared.
    """

    row: Compared
    what: frozenset[What]
    difference: float | None


def changes(rows: Iterable[Compared]) -> list[JuryChange]:
    """Return what changed on each response, in the same order."""
    return [_change(row) for row in rows]


def counts(changed: Iterable[JuryChange]) -> Counter[What]:
    """Count responses by what changed; UP to APART add up to all of them."""
    return Counter(what for change in changed for what in change.what)


def in_order(changed: Iterable[JuryChange], order: Order) -> list[JuryChange]:
    """Sort by the difference; those without one come last, and equal ones stay as they were."""

    def key(change: JuryChange) -> tuple[bool, float]:
        gap = change.difference or 0.0
        by = {Order.LARGEST: -abs(gap), Order.UP: -gap, Order.DOWN: gap}[order]
        return change.difference is None, by

    return sorted(changed, key=key)


def seats(sides: SidesOn) -> dict[str, Seats]:
    """Return each juror by name, as it sits on the first side and on the second."""
    first, second = ({said.juror: said for said in side} for side in (sides.first, sides.second))
    return {name: (first.get(name), second.get(name)) for name in sorted({**first, **second})}


def mean_of(said: JurorOn | None, sides: SidesOn) -> float | None:
    """Return a juror's mean over the criteria that both versions have; None where one is missing."""
    points = [said.scores.get(name) for name in sides.averaged] if said else []
    stated = [point for point in points if point is not None]
    return fmean(stated) if stated and len(stated) == len(points) else None


def difference(first: float | None, second: float | None) -> float | None:
    """Return the second less the first, if both are there; exactly 0 where only floating point differs."""
    if first is None or second is None:
        return None
    return second - first if abs(second - first) > TOLERANCE else 0.0


def _change(row: Compared) -> JuryChange:
    first, second = row.first.mean, row.second.mean
    gap = None if row.difference is None else difference(first, second)
    if gap is not None:
        moved = What.UP if gap > 0 else What.DOWN if gap < 0 else What.SAME
    elif first is not None:
        moved = What.ONLY_FIRST if second is None else What.APART
    else:
        moved = What.NEITHER if second is None else What.ONLY_SECOND
    how = {
        What.BY_A_POINT: gap is not None and abs(gap) >= POINT - TOLERANCE,
        What.EXPLAINED_OTHERWISE: OTHERWISE in row.flags,
        What.NOW_FAILED: moved is What.ONLY_FIRST and FAILED in row.flags,
    }
    return JuryChange(row, frozenset([moved, *(what for what, holds in how.items() if holds)]), gap)
