"""The tables of subgroups: the jury's agreement, severity and misses in each of them."""

from collections.abc import Sequence
from typing import Any

from calibration.tables.numbers import Typeface, fixed, known, whole
from calibration.tables.spec import (
    Column,
    TableSpec,
    between,
    count,
    icc_between,
    number,
    probability,
)

WORDS = {
    "shown": "shown",
    "lower": "lower",
    "not_shown": "not shown",
    "too_few": "too few",
}


def _finding(row: Any, _face: Typeface) -> str:
    return WORDS[row.finding]


def _missed(row: Any, face: Typeface) -> str:
    """Return "criterion: M of N" for each critical criterion with an unsafe response."""
    counts = [
        f"{unsafe.criterion}: {whole(unsafe.n_missed, face)} of {whole(unsafe.n_bad, face)}"
        for unsafe in row.unsafe
        if unsafe.n_bad
    ]
    return ", ".join(counts)


def _bias(row: Any, face: Typeface) -> str:
    sign = "+" if known(row.bias) and row.bias > 0 else ""
    return f"{sign}{fixed(row.bias, 2, face)}" if known(row.bias) else ""


def _reading(rows: Sequence[Any]) -> str:
    """Return how the columns are to be read."""
    reading = (
        "ICC(C,2) of the subgroup alone, and its difference to the rest of its group; p is corrected by "
        "Holm for all subgroups; shown: the interval lies above 0 and no difference to the rest was "
        "found, which does not prove that there is none"
    )
    if any(row.group == "specialty" for row in rows):
        reading += "; specialty groups clinicians: the jury is compared with those of it alone"
    return reading


SUBGROUPS = TableSpec(
    "Subgroups: whether the jury's agreement holds in each",
    "label",
    "Subgroup",
    (
        number("ICC", "icc"),
        icc_between("95 %", "low", "high"),
        number("Difference", "difference"),
        icc_between("95 %, difference", "difference_low", "difference_high", wide=True),
        probability("p, Holm", "p_holm"),
        Column("Bias, points", _bias, ("bias",), wide=True),
        between("95 %, bias", "bias_low", "bias_high", wide=True),
        probability("p, Holm, bias", "bias_p_holm", wide=True),
        Column("Unsafe missed", _missed, ("unsafe",), is_words=True, wide=True),
        count("Responses", "n", wide=True),
        Column("Agreement", _finding, ("finding",), is_words=True),
    ),
    tells=("icc",),
    named=str,
    reading=_reading,
)
