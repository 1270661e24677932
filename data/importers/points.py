"""Points of the case as a file has them: a row a point, `instance_id, point, weight, kind, critical`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from pydantic import ValidationError

from data.importers.rows import Origin, filled
from data.importers.table import Cells, TableFile
from data.points import LONGEST_POINT, Point
from data.rubric import PointKind
from data.safe_text import unguarded

COLUMNS = ("instance_id", "point", "weight", "kind", "critical")
NEEDED = COLUMNS[:3]
YES = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}


@dataclass(frozen=True, slots=True)
class PointRow:
    """One point of an instance, and where it stands."""

    origin: Origin
    instance_id: str
    point: Point


class PointFile:
    """A file of points; iterating gives a `PointRow` each, in the file's order.

    `kind` is "must" and `critical` no where a cell is empty. A weight never is: what a point counts
    is for clinicians to say.

    Raises
    ------
    BadFile
        If a column that is needed is missing.
    BadRow
        While iterating, at the first row that is wrong.
    """

    def __init__(self, table: TableFile) -> None:
        self.table = table
        absent = next((name for name in NEEDED if name not in table.columns), None)
        if absent is not None:
            raise table.wrong(
                f"column {absent!r} is missing (points have {', '.join(COLUMNS)}; {table.header})"
            )

    def __iter__(self) -> Iterator[PointRow]:
        for origin, cells in self.table:
            yield PointRow(
                origin, unguarded(filled(origin, cells, "instance_id")), point_of(origin, cells)
            )


def point_of(origin: Origin, cells: Cells) -> Point:
    """Return the point of a row, or refuse it by column."""
    kind = cells.get("kind", "").strip() or "must"
    if kind not in get_args(PointKind):
        raise origin.wrong("kind", kind, "must be must, must_not or nice")
    critical = cells.get("critical", "").strip().lower()
    if critical not in YES:
        raise origin.wrong("critical", critical, "must be yes or no")
    weight = filled(origin, cells, "weight")
    text = unguarded(filled(origin, cells, "point"))
    try:
        return Point(point=text, weight=float(weight), kind=kind, critical=YES[critical])
    except ValidationError as error:
        if error.errors()[0]["loc"] == ("point",):
            allowed = f"has over {LONGEST_POINT:,} characters"
            raise origin.wrong("point", "", allowed) from error
        raise origin.wrong("weight", weight, "must be above 0 and at most 1,000") from error
    except ValueError as error:
        raise origin.wrong("weight", weight, "must be a number above 0") from error
