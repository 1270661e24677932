"""The tables of a plan, and those of predictions from a jury."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from calibration.notes import Noted, counted
from calibration.tables.numbers import TERMINAL, Typeface, fixed, interval
from calibration.tables.spec import Column, Table, TableSpec, count, laid_out, number
from calibration.values import PlanOptions

SCORES = Column(
    "scores", lambda row, _: f"{row.ceiling * 100:.0f} % top" if row.ceiling else "normal"
)
PANEL_SIZES = TableSpec(
    "How reliable the mean of so many raters is, each kind among itself",
    "raters",
    "mean of",
    (
        number(
            "ICC(C,m)", "consistency", help="Consistency of the mean of m raters with m others."
        ),
        number("ICC(A,m)", "agreement", help="The same, to the point."),
    ),
    tells=("consistency",),
    named=str,
)


def plan_tables(
    rows: Sequence[Any], options: PlanOptions, face: Typeface = TERMINAL
) -> tuple[Table, ...]:
    """Return the responses that each ICC takes, and at a margin what they show."""
    share = f"{options.assurance * 100:g} %"
    spec = TableSpec(
        f"Responses for a 95 % interval of the jury's ICC(C,2), {options.width:g} wide",
        "basis",
        "planned for",
        (
            number("ICC(C,2)", "icc"),
            number("single", "icc_single"),
            SCORES,
            count(f"n, {share}", "n_for_width"),
            count("n", "n"),
            number("width", "width_expected"),
        ),
        named=str,
    )
    first = {(row.basis, row.ceiling): row for row in reversed(rows)}
    widths = laid_out(spec, [*reversed(first.values())], face)
    return (widths, laid_out(AT_MARGIN, rows, face)) if options.margin else (widths,)


def panel_size_table(rows: Sequence[Any], face: Typeface = TERMINAL) -> Table:
    """Return how reliable the mean of so many raters is."""
    named = [replace(row, raters=counted(row.number, row.raters[:-1])) for row in rows]
    return laid_out(PANEL_SIZES, named, face)


AT_MARGIN = TableSpec(
    "Share of studies that show an equal jury no worse, for these clinicians and others like these",
    "basis",
    "planned for",
    (
        SCORES,
        Column(
            "read by",
            lambda row, _: f"{row.per_response} of {row.clinicians}",
        ),
        count("n", "n"),
        number("these", "power"),
        number("like these", "power_like_these"),
        count("n for it", "n_for_power"),
    ),
    named=str,
)


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
    """Return how single responses are predicted, and whether the jury is validated."""
    spec = TableSpec(
        f"Single responses ({_share(level)})",
        "benchmark",
        "benchmark",
        (
            count("rated\ninstances", "n_calibration"),
            number("half\nwidth", "q"),
            count("predicted", "n_predicted"),
            Column(
                "jury\nvalidated", lambda row, _: "yes" if row.validated else "no", is_words=True
            ),
        ),
    )
    return laid_out(spec, rows, face)


def _share(level: float) -> str:
    return f"{100 * level:g} % intervals"


def _mean(heading: str, mean: str, ends: str, between: str) -> Column:
    """Return a column of means with their intervals."""
    low, high = (f"{ends}_{end}" if ends else end for end in ("low", "high"))

    def cell(row: Any, face: Typeface) -> str:
        text = interval(getattr(row, low), getattr(row, high), 2, face)
        return fixed(getattr(row, mean), 2, face) + (between.format(text) if text else "")

    return Column(heading, cell)
