"""The tables of the clinicians' own reliability, and of agreement corrected for their error."""

from typing import Any

from calibration.messages.agreement import QUOTES
from calibration.tables.numbers import Typeface
from calibration.tables.spec import Column, TableSpec, count, icc_between, number


def _quote(row: Any, face: Typeface) -> str:
    return QUOTES[row.form]


RELIABILITY = TableSpec(
    "The clinicians' own reliability: their mean is the reference of every comparison",
    "form",
    "Form",
    (
        number("ICC", "icc", 3),
        icc_between("95 %", "low", "high"),
        number("k", "n_raters"),
        number("SEM, points", "sem"),
        number("Smallest change", "smallest_change", wide=True),
        count("Responses", "n_responses", wide=True),
        count("Clinicians", "n_clinicians", wide=True),
        Column("What to quote it for", _quote, ("form",), is_words=True, wide=True),
    ),
    tells=("icc",),
    named=str,
)
TRUE_AGREEMENT = TableSpec(
    "Jury and clinicians: correlation corrected for the clinicians' own error (disattenuated)",
    "benchmark",
    "Benchmark",
    (
        number("With one clinician", "observed", 3),
        number("Two clinicians", "single", 3),
        number("Corrected for error", "disattenuated", 3),
        icc_between("Bootstrap 95 %", "low", "high"),
        count("Responses", "n_responses", wide=True),
    ),
    tells=("observed",),
)
