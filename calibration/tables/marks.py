"""The table of what clinicians marked, how far they agree on it, and what the jury scored there."""

from collections.abc import Sequence
from typing import Any

from calibration.tables.numbers import Typeface, fixed, known
from calibration.tables.spec import Column, TableSpec, between, count, number, share


def _gap(name: str) -> Column:
    """Return a column of differences with their sign."""

    def cell(row: Any, face: Typeface) -> str:
        value = getattr(row, name)
        sign = "+" if known(value) and value > 0 else ""
        return f"{sign}{fixed(value, 2, face)}"

    return Column("Jury, marked minus others", cell, (name,))


def _reading(_: Sequence[Any]) -> str:
    """Return how the columns are to be read."""
    return (
        "responses that clinicians read where marks can be made, first readings; a place is a run of "
        "marks that overlap, of responses that two or more read; F1 is of the characters that two "
        "clinicians marked; differences are of composites in points, adjusted for nothing"
    )


MARKS = TableSpec(
    "What clinicians marked, and what the jury scored there",
    "label",
    "Mark",
    (
        share("Responses", "n_marked", "n_read"),
        count("Marks", "n_marks", wide=True),
        count("Clinicians", "n_clinicians", wide=True),
        share("Places of two or more", "n_shared", "n_places"),
        number("F1", "f1"),
        between("95 %, F1", "f1_low", "f1_high", wide=True),
        number("Jury, marked", "jury_with", wide=True),
        number("Jury, others", "jury_without", wide=True),
        _gap("difference"),
        between("95 %", "low", "high"),
        number("Clinicians, marked minus others", "clinicians_difference", wide=True),
    ),
    tells=("n_marked",),
    named=str,
    reading=_reading,
)
