"""The clinicians' scores by the jury's: how many responses stand in each pair of points."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from data.study.compare import Compared

Cell = tuple[int, int]  # the clinicians' point, the jury's
TOLERANCE = 1e-9  # a mean of 2.5 that floating point made smaller is 2.5


@dataclass(frozen=True, slots=True)
class Confusion:
    """How many responses have which pair of rounded scores.

    Attributes
    ----------
    points
        Of the scale, the lowest first.
    counts
        (clinicians' point, jury's point) -> responses; a pair without any is left out.
    both, only_clinicians, only_jury, neither
        Responses with a mean of both sides, which `counts` adds up to, of one side, or of none.
    """

    points: tuple[int, ...]
    counts: Mapping[Cell, int]
    both: int
    only_clinicians: int
    only_jury: int
    neither: int

    def agreeing(self) -> int:
        """Return the responses on the diagonal."""
        return sum(self.counts.get((point, point), 0) for point in self.points)


def confusion(rows: Sequence[Compared], low: int, high: int) -> Confusion:
    """Count responses by the points that both sides' means round to.

    Parameters
    ----------
    rows : compared in points of one scale, not in z
    low, high : its ends
    """
    cells = Counter(cell for row in rows if (cell := cell_of(row)))
    sides = Counter((row.first.mean is not None, row.second.mean is not None) for row in rows)
    return Confusion(
        tuple(range(low, high + 1)),
        dict(cells),
        sides[True, True],
        sides[True, False],
        sides[False, True],
        sides[False, False],
    )


def cell_of(row: Compared) -> Cell | None:
    """Return where a response stands; None unless both sides have a mean. A half is rounded up."""
    if row.first.mean is None or row.second.mean is None:
        return None
    return _rounded(row.first.mean), _rounded(row.second.mean)


def _rounded(mean: float) -> int:
    return math.floor(mean + 0.5 + TOLERANCE)
