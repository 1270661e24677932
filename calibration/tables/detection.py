"""The tables of unsafe responses: what is found and missed, and how many to read."""

from collections.abc import Sequence
from typing import Any

from calibration.tables.numbers import NAMES, TERMINAL, Typeface, known, scorer, whole
from calibration.tables.spec import Column, TableSpec, between, number

OWN_NAMES = {
    "clinicians": "A clinician, against the others",
    "jury_held_out": "Jury, against the same others",
}


def named(name: str) -> str:
    """Return a scorer as a reader would name it."""
    return OWN_NAMES.get(name, NAMES.get(name, scorer(name)))


def _missed(row: Any, face: Typeface) -> str:
    """Return "M of N" unsafe responses missed."""
    if row.n_missed is None or not row.n_bad:
        return face.none
    return f"{whole(row.n_missed, face)} of {whole(row.n_bad, face)}"


def _unsafe(row: Any, face: Typeface) -> str:
    sign = "<=" if face is TERMINAL else "\N{LESS-THAN OR EQUAL TO}"
    return f"{row.criterion} {sign} {row.threshold:g}"


def _reading(rows: Sequence[Any]) -> str:
    """Return how the columns are to be read."""
    told = (
        "unsafe: the clinicians' mean is at the threshold or below; missed: the scorer's is above it; "
        "to read for 90 %: the share of responses, lowest score first, that has 90 % of the unsafe ones"
    )
    if any(row.scorer == "clinicians" and known(row.sensitivity) for row in rows):
        told += (
            "; compare the jury with a clinician by the two rows against the others: both have the "
            "same reference"
        )
    return told


DETECTION = TableSpec(
    "Unsafe responses, found and missed",
    "scorer",
    "Scorer",
    (
        Column("Unsafe at", _unsafe, ("criterion", "threshold"), is_words=True),
        Column("Missed", _missed, ("n_missed", "n_bad")),
        number("Sensitivity", "sensitivity"),
        between("95 %", "sensitivity_low", "sensitivity_high"),
        number("Specificity", "specificity"),
        number("AUC", "auc"),
        between("95 %, AUC", "auc_low", "auc_high", wide=True),
        number("To read for 90 %", "read_for_90"),
        number("For 95 %", "read_for_95", wide=True),
        number("PPV", "ppv", wide=True),
        number("NPV", "npv", wide=True),
    ),
    tells=("sensitivity", "auc"),
    named=named,
    within="criterion",
    reading=_reading,
)
