"""Points of the case as a file has them: a row a point, `instance_id, point, weight, kind, critical`."""

from collections.abc import Iterator
from typing import NamedTuple

from pydantic import TypeAdapter

from data.importers.rows import Origin, filled, validated
from data.importers.table import Cells, TableFile
from data.points import Point
from data.safe_text import unguarded

COLUMNS = ("instance_id", "point", "weight", "kind", "critical")
NEEDED = COLUMNS[:3]
POINT = TypeAdapter(Point)


class PointRow(NamedTuple):
    """One point of an instance, and where it stands."""

    origin: Origin
    instance_id: str
    point: Point


def point_rows(table: TableFile) -> Iterator[PointRow]:
    """Yield the points of a file, in its order.

    `kind` is "must" and `critical` no where a cell is empty. A weight never is: what a point counts
    is for clinicians to say.

    Raises
    ------
    BadFile, BadRow
        If a column that is needed is missing; at the first row that is wrong.
    """
    if absent := [name for name in NEEDED if name not in table.columns]:
        has = f"points have {', '.join(COLUMNS)}; {table.header}"
        raise table.wrong(f"column {absent[0]!r} is missing ({has})")
    for origin, cells in table:
        name = unguarded(filled(origin, cells, "instance_id"))
        yield PointRow(origin, name, point_of(origin, cells))


def point_of(origin: Origin, cells: Cells) -> Point:
    """Return the point of a row, or refuse it by column."""
    words = {name: cells.get(name, "").strip() for name in ("kind", "critical")}
    given = {name: value.lower() for name, value in words.items() if value}
    text = {"point": unguarded(filled(origin, cells, "point"))}
    return validated(POINT, origin, given | text | {"weight": filled(origin, cells, "weight")})
