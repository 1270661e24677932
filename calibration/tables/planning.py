"""The two tables of a plan: responses for an interval, and the differences that they find."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from calibration.messages.planning import AIMS, opponent
from calibration.planning.rows import (
    EITHER,
    NonInferiorityRow,
    PanelSizeRow,
    PlanOptions,
    PlanRow,
    PowerRow,
)
from calibration.tables.numbers import TERMINAL, Typeface, known
from calibration.tables.spec import Column, Table, TableSpec, count, laid_out, number


def plan_table(rows: Sequence[PlanRow], options: PlanOptions, face: Typeface = TERMINAL) -> Table:
    """Return the responses that each ICC takes."""
    aim = AIMS[rows[0].icc_of]
    spec = TableSpec(
        f"Responses for a 95 % interval of the {aim}, {options.width:g} wide",
        "scorer",
        "planned for",
        (
            number("ICC(C,2)", "icc_of_two"),
            number("single", "icc_single"),
            count("n, 50 %", "n_bonett"),
            count(f"n, {options.assurance * 100:g} %", "n_zou"),
            count("n", "n"),
            number("width", "width_expected"),
        ),
    )
    return laid_out(spec, [replace(row, scorer=_planned_for(row)) for row in rows], face)


def power_table(rows: Sequence[PowerRow], face: Typeface = TERMINAL) -> Table:
    """Return the differences that the responses find."""
    return laid_out(POWER, [replace(row, compared=opponent(row.compared)) for row in rows], face)


def panel_size_table(rows: Sequence[PanelSizeRow], face: Typeface = TERMINAL) -> Table:
    """Return how reliable the mean of so many raters is."""
    return laid_out(PANEL_SIZES, [replace(row, raters=_sized(row)) for row in rows], face)


def _sized(row: PanelSizeRow) -> str:
    return f"{row.number} {row.raters if row.number > 1 else row.raters[:-1]}"


def margin_table(rows: Sequence[NonInferiorityRow], face: Typeface = TERMINAL) -> Table:
    """Return what the responses show at a margin."""
    return laid_out(AT_MARGIN, rows, face)


def _planned_for(row: PlanRow) -> str:
    return row.basis if row.scorer == EITHER else f"{row.scorer}, {row.basis}"


def _percent(row: Any, face: Typeface) -> str:
    return f"{row.power * 100:.0f} %" if known(row.power) else face.none


POWER = TableSpec(
    "Difference of two ICC(C,2) that n responses detect",
    "compared",
    "jury against",
    (
        count("n", "n"),
        number("at 80 % power", "mde"),
        number("difference", "difference"),
        Column("power", _percent, ("power",)),
        count("n for it", "n_for_difference"),
    ),
)
PANEL_SIZES = TableSpec(
    "How reliable the mean of so many raters is, each kind among itself",
    "raters",
    "mean of",
    (number("ICC(C,m)", "consistency"), number("ICC(A,m)", "agreement")),
    tells=("consistency",),
    named=str,
)
AT_MARGIN = TableSpec(
    "Non-inferiority that n responses show, of a jury as good as a clinician",
    "basis",
    "planned for",
    (
        number("single", "icc_single"),
        number("margin", "margin"),
        count("n", "n"),
        Column("power", _percent, ("power",)),
        count("n for it", "n_for_power"),
    ),
    named=str,
)
