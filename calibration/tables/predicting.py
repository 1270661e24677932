"""The tables of `predict`: means over all responses, single responses, and what they rest on."""

from collections.abc import Callable, Sequence
from typing import Any

from calibration.tables.numbers import TERMINAL, Typeface, fixed, icc_interval, interval
from calibration.tables.spec import Column, Table, TableSpec, count, laid_out, number
from calibration.values import Noted


def means_table(
    rows: Sequence[Noted], level: float, face: Typeface = TERMINAL, *, narrow: bool = False
) -> Table:
    """Return the means over all responses; where it is narrow, an interval below its mean."""
    between = "\n{}" if narrow else " ({})"
    spec = TableSpec(
        f"Clinicians' mean over all responses, points ({_share(level)})",
        "benchmark",
        "benchmark",
        (
            _mean("clinicians\nalone", "mean_clinicians", "clinicians", between),
            number("jury\nalone", "mean_jury"),
            _mean("corrected", "mean_corrected", "", between),
            count("n", "n_rated"),
            count("N", "n_unrated"),
            number("lambda", "weight"),
            number("gain", "gain"),
        ),
    )
    return laid_out(spec, rows, face)


def single_table(rows: Sequence[Noted], level: float, face: Typeface = TERMINAL) -> Table:
    """Return how single responses are predicted, and how often that held."""
    spec = TableSpec(
        f"Single responses ({_share(level)})",
        "benchmark",
        "benchmark",
        (
            count("both\nrated", "n_both"),
            count("to fit", "n_fit"),
            count("instances", "n_calibration"),
            number("half\nwidth", "q"),
            Column("held-out\ncoverage", _coverage, ("coverage", "n_checked")),
            count("predicted", "n_predicted"),
        ),
    )
    return laid_out(spec, rows, face)


def validation_table(rows: Sequence[Noted], face: Typeface = TERMINAL) -> Table:
    """Return how well the jury agrees with the clinicians, with the notes on all figures."""
    return laid_out(VALIDATION, rows, face)


def _share(level: float) -> str:
    return f"{100 * level:g} % intervals"


def _mean(heading: str, mean: str, ends: str, between: str) -> Column:
    """Return a column of means with their intervals."""
    low, high = (f"{ends}_{end}" if ends else end for end in ("low", "high"))

    def cell(row: Any, face: Typeface) -> str:
        found = interval(getattr(row, low), getattr(row, high), 2, face)
        return fixed(getattr(row, mean), 2, face) + (between.format(found) if found else "")

    return Column(heading, cell, (mean, low, high))


def _coverage(row: Any, face: Typeface) -> str:
    return f"{row.coverage * 100:.0f} % of {row.n_checked}" if row.n_checked else face.none


def _of_agreement(show: Callable[[Any, Typeface], str]) -> Callable[[Any, Typeface], str]:
    return lambda row, face: show(row.agreement, face)


def _ends(found: Any, face: Typeface) -> str:
    return icc_interval(found.boot_low, found.boot_high, 2, face)


VALIDATION = TableSpec(
    "Jury and clinicians",
    "benchmark",
    "benchmark",
    (
        Column("ICC(C,2)", _of_agreement(lambda found, face: fixed(found.icc, 2, face))),
        Column("95 %", _of_agreement(_ends)),
        Column("instances", _of_agreement(lambda found, _: f"{found.n_instances}")),
        Column("validated", lambda row, _: "yes" if row.validated else "no", is_words=True),
    ),
)
