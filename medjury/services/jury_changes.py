"""What changed from one jury to another: responses that moved, and each juror's scores side by side."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from data.queries.workbench_juries import OnBoth
from data.queries.workbench_sides import JurorOn, SidesOn

TOLERANCE = 1e-9  # what floating point alone moves
POINT = 1.0


class Moved(StrEnum):
    """Where a response's mean went from the first jury to the second.

    APART: both have a mean, on different scales or without a criterion in common.
    """

    UP = "up"
    DOWN = "down"
    SAME = "same"
    ONLY_FIRST = "only_first"
    ONLY_SECOND = "only_second"
    NEITHER = "neither"
    APART = "apart"


class What(StrEnum):
    """What of a change a list of responses can be filtered by."""

    UP = "up"
    DOWN = "down"
    BY_A_POINT = "by_a_point"
    EXPLAINED_OTHERWISE = "explained_otherwise"
    NOW_FAILED = "now_failed"
    SAME = "same"
    ONLY_FIRST = "only_first"
    ONLY_SECOND = "only_second"
    APART = "apart"


class Order(StrEnum):
    """What a list of changes begins with."""

    LARGEST = "largest"
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class JuryChange:
    """What changed on one response.

    Attributes
    ----------
    difference
        The second jury's mean less the first's, in points; None unless both have one that can
        be compared.
    by_a_point
        Whether it moved by at least one point.
    now_failed
        Whether the first jury has a mean and the second has none since a call to it failed.
    """

    row: OnBoth
    moved: Moved
    difference: float | None
    by_a_point: bool
    now_failed: bool


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """How many responses moved where, which adds up to all of them, and how many changed how."""

    moved: Mapping[Moved, int]
    by_a_point: int
    explained_otherwise: int
    now_failed: int


@dataclass(frozen=True, slots=True)
class PairedScore:
    """A juror's scores on one criterion, or its means, in both juries; None where there is none."""

    first: float | None
    second: float | None
    difference: float | None
    first_words: tuple[str, ...] = ()
    second_words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PairedJuror:
    """A juror in both juries.

    Attributes
    ----------
    on_first, on_second
        Whether it sits there; it may be on one alone.
    first_failure, second_failure
        How its call ended where that is why it has no score.
    mean
        Over the criteria that both versions have; None where one of them is missing.
    """

    juror: str
    simulated: bool
    on_first: bool
    on_second: bool
    scores: Mapping[str, PairedScore]
    mean: PairedScore
    first_failure: str = ""
    second_failure: str = ""


def changes(rows: Iterable[OnBoth]) -> list[JuryChange]:
    """Return what changed on each response, in the same order."""
    return [_change(row) for row in rows]


def counts(changed: Sequence[JuryChange]) -> ChangeCounts:
    """Count responses by what changed."""
    moved = Counter(change.moved for change in changed)
    return ChangeCounts(
        {kind: moved[kind] for kind in Moved},
        sum(change.by_a_point for change in changed),
        sum(change.row.explained_otherwise for change in changed),
        sum(change.now_failed for change in changed),
    )


def fits(change: JuryChange, what: What | None) -> bool:
    """Return whether a response is one of those asked for; all are where nothing is."""
    if what is None:
        return True
    if what == What.BY_A_POINT:
        return change.by_a_point
    if what == What.EXPLAINED_OTHERWISE:
        return change.row.explained_otherwise
    if what == What.NOW_FAILED:
        return change.now_failed
    return change.moved == Moved(what)


def in_order(changed: Iterable[JuryChange], order: Order) -> list[JuryChange]:
    """Sort by the difference; those without one come last, and equal ones stay as they were."""
    sign = {Order.UP: -1.0, Order.DOWN: 1.0}

    def key(change: JuryChange) -> tuple[bool, float]:
        difference = change.difference or 0.0
        by = -abs(difference) if order == Order.LARGEST else sign[order] * difference
        return change.difference is None, by

    return sorted(changed, key=key)


def paired(sides: SidesOn) -> list[PairedJuror]:
    """Return the jurors of both sides by name, each criterion's scores next to each other."""
    first, second = ({said.juror: said for said in side} for side in (sides.first, sides.second))
    return [
        _paired(first.get(name), second.get(name), sides) for name in sorted({**first, **second})
    ]


def _change(row: OnBoth) -> JuryChange:
    first, second = row.first.mean, row.second.mean
    difference = None
    if first is not None and second is not None and row.comparable:
        difference = _difference(first, second)
    return JuryChange(
        row,
        _moved(row, difference),
        difference,
        difference is not None and abs(difference) >= POINT - TOLERANCE,
        first is not None and second is None and row.second.failed,
    )


def _difference(first: float, second: float) -> float:
    """Return the second less the first; exactly 0 where only floating point differs."""
    difference = second - first
    return difference if abs(difference) > TOLERANCE else 0.0


def _moved(row: OnBoth, difference: float | None) -> Moved:
    if difference is not None:
        return Moved.UP if difference > 0 else Moved.DOWN if difference < 0 else Moved.SAME
    has = row.first.mean is not None, row.second.mean is not None
    kinds = {(True, True): Moved.APART, (True, False): Moved.ONLY_FIRST}
    return (kinds | {(False, True): Moved.ONLY_SECOND}).get(has, Moved.NEITHER)


def _paired(first: JurorOn | None, second: JurorOn | None, sides: SidesOn) -> PairedJuror:
    named = [said for said in (first, second) if said is not None]
    return PairedJuror(
        named[0].juror,
        named[0].simulated,
        first is not None,
        second is not None,
        {name: _score(first, second, name, sides) for name in sides.criteria},
        _pair(_mean(first, sides), _mean(second, sides), sides),
        first.failure if first else "",
        second.failure if second else "",
    )


def _score(
    first: JurorOn | None, second: JurorOn | None, criterion: str, sides: SidesOn
) -> PairedScore:
    points = [said.scores.get(criterion) if said else None for said in (first, second)]
    words = [said.explanations.get(criterion, ()) if said else () for said in (first, second)]
    return _pair(points[0], points[1], sides, words[0], words[1])


def _pair(
    first: float | None,
    second: float | None,
    sides: SidesOn,
    first_words: tuple[str, ...] = (),
    second_words: tuple[str, ...] = (),
) -> PairedScore:
    difference = None
    if first is not None and second is not None and sides.same_scale:
        difference = _difference(first, second)
    return PairedScore(first, second, difference, first_words, second_words)


def _mean(said: JurorOn | None, sides: SidesOn) -> float | None:
    points = [said.scores.get(name) for name in sides.averaged] if said else []
    stated = [point for point in points if point is not None]
    return fmean(stated) if stated and len(stated) == len(points) else None
