"""The table of what clinicians marked, how far they agree on it, and what the jury scored there."""

from collections.abc import Sequence
from typing import Any

from calibration.tables.numbers import Typeface, fixed, known
from calibration.tables.spec import Column, TableSpec, between, count, number, share


def _gap(heading: str, name: str, *, wide: bool = False) -> Column:
    """Return a column of differences with their sign."""

    def cell(row: Any, face: Typeface) -> str:
        value = getattr(row, name)
        sign = "+" if known(value) and value > 0 else ""
        return f"{sign}{fixed(value, 2, face)}"

    return Column(heading, cell, (name,), wide=wide)


def _reading(_: Sequence[Any]) -> str:
    """Return how the columns are to be read."""
    return (
        "marked: responses, of those that clinicians read where marks can be made, first readings only; "
        "gap: the mean composite of marked responses minus that of the others, in points, unadjusted; "
        "F1 is of the characters that two clinicians marked; a place is a run of overlapping marks, "
        "shared where two or more clinicians marked it"
    )


MARKS = TableSpec(
    "What clinicians marked, and what the jury scored there",
    "label",
    "Mark",
    (
        share("Marked", "n_marked", "n_read"),
        _gap("Jury's gap", "difference"),
        between("95 %", "low", "high"),
        number("F1", "f1"),
        between("95 %, F1", "f1_low", "f1_high", wide=True),
        share("Places shared", "n_shared", "n_places", wide=True),
        _gap("Clinicians' gap", "clinicians_difference", wide=True),
        number("Jury, marked", "jury_with", wide=True),
        number("Jury, others", "jury_without", wide=True),
        count("Marks", "n_marks", wide=True),
        count("Clinicians", "n_clinicians", wide=True),
    ),
    tells=("n_marked",),
    named=str,
    reading=_reading,
)
