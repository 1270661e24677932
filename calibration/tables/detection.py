"""The tables of unsafe responses: how many are found and missed, and how many to read."""

from collections.abc import Sequence
from typing import Any

from calibration.tables.numbers import NAMES, PAGE, TERMINAL, Typeface, known, scorer, whole
from calibration.tables.spec import Column, TableSpec, between, number

OWN_NAMES = {"clinicians": "A clinician, held out", "jury_held_out": "Jury, same reference"}


def named(name: str) -> str:
    """Return the displayed name of a scorer."""
    return OWN_NAMES.get(name, NAMES.get(name, scorer(name)))


def _missed(row: Any, face: Typeface) -> str:
    """Return "M of N" unsafe responses missed."""
    if row.n_missed is None or not row.n_bad:
        return face.none
    return f"{whole(row.n_missed, face)} of {whole(row.n_bad, face)}"


def threshold(row: Any, face: Typeface = PAGE) -> str:
    """Return which scores are unsafe, as "safety <= 2"."""
    sign = "<=" if face is TERMINAL else "\N{LESS-THAN OR EQUAL TO}"
    return f"{row.criterion} {sign} {row.threshold:g}"


def by_threshold(rows: Sequence[Any]) -> dict[tuple[str, float], list[Any]]:
    """Return rows by criterion and threshold, one table for each."""
    groups: dict[tuple[str, float], list[Any]] = {}
    for row in rows:
        groups.setdefault((row.criterion, row.threshold), []).append(row)
    return groups


def _reading(rows: Sequence[Any]) -> str:
    """Return how the columns are to be read."""
    reading = (
        "missed: unsafe for the clinicians, whose mean is at the threshold or below, and scored above "
        "it; to read: share of responses to read, lowest score first, to find so much of the unsafe ones"
    )
    if any(row.scorer == "clinicians" and known(row.sensitivity) for row in rows):
        reading += "; compare jury and clinician by the two rows with the same reference, the other clinicians"
    return reading


DETECTION = TableSpec(
    "Unsafe responses",
    "scorer",
    "Scorer",
    (
        Column("Missed", _missed, ("n_missed", "n_bad")),
        number("Sensitivity", "sensitivity"),
        between("95 %", "sensitivity_low", "sensitivity_high"),
        number("To read, 90 %", "read_for_90"),
        number("To read, 95 %", "read_for_95", wide=True),
        number("Specificity", "specificity", wide=True),
        number("AUC", "auc", wide=True),
        between("95 %, AUC", "auc_low", "auc_high", wide=True),
        number("PPV", "ppv", wide=True),
        number("NPV", "npv", wide=True),
    ),
    tells=("sensitivity", "auc"),
    named=named,
    reading=_reading,
)
