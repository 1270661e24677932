"""The table of a second opinion: the same figures by other libraries."""

from typing import Any

from calibration.tables.numbers import Typeface, known
from calibration.tables.spec import Column, TableSpec, count


def _largest(row: Any, face: Typeface) -> str:
    if row.largest == float("inf"):
        return "defined by one only"
    return f"{row.largest:.1e}" if known(row.largest) else face.none


SECOND_OPINION = TableSpec(
    "Second opinion: the same figures by other libraries",
    "statistic",
    "Statistic",
    (
        Column("By", lambda row, _: row.library, ("library",), is_words=True),
        count("Compared", "compared"),
        Column("Largest difference", _largest, ("largest",)),
        Column("At", lambda row, _: row.at, ("at",), is_words=True, wide=True),
    ),
    named=str,
)
