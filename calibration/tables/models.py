"""The tables that compare models, each declared once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any

from calibration.models.rows import CategoryRow, ModelRow
from calibration.notes import Note, Noted, counted, noted
from calibration.tables.numbers import PAGE, Typeface, fixed, interval, known, whole
from calibration.tables.spec import (
    Column,
    Group,
    Table,
    TableNote,
    TableSpec,
    count,
    laid_out,
    number,
)

BY = {
    "clinicians": "By clinicians",
    "jury": "By the jury, uncorrected",
    "corrected": "By the jury, corrected with the clinicians' ratings",
    "paper": "As in the MedHELM paper: by a benchmark's own metric, else by the jury",
}
WIN_RATE = "Share of comparisons with other models that the model wins, with its interval."
MACRO_AVERAGE = "Mean over benchmarks, each put on 0 to 1, with its interval over instances."
OPPONENTS = "How much the win rate varies from one opponent to another."
BENCHMARKS = "How much the figure varies between benchmarks."
MEANING = (
    "Rank: by win rate; models that cannot be distinguished share a range of ranks. "
    "Win rate: share of the other models beaten on a benchmark, a tie half a win. "
    "Macro-average: mean over benchmarks on 0 to 1. Intervals are over instances."
)
MEANING_BY_INSTANCE = "By instance: the win rate on the instances that both models have."
NO_CATEGORY = "no category"
MOST_DIGITS = 4
JURY_CALLS = TableSpec(
    "What the jury's recorded calls cost",
    "juror",
    "Juror",
    (
        count("Calls", "calls"),
        count("Input tokens", "tokens_in"),
        number("USD", "usd"),
        count("Calls of unknown price", "unknown"),
    ),
    named=str,
)


def model_table(rows: Sequence[ModelRow], face: Typeface = PAGE, *, narrow: bool = False) -> Table:
    """Return a table of models, under each way of scoring in the order of the rows."""
    return _under_ways(laid_out(MODELS, rows, face, narrow=narrow), rows)


def _under_ways(table: Table, rows: Sequence[ModelRow] | Sequence["CategoryLine"]) -> Table:
    """Return a table with its rows under the ways of scoring."""
    cells = iter([row for group in table.groups for row in group.rows])
    ways = groupby(row.by for row in rows)
    groups = (Group(BY[way], tuple(islice(cells, len([*own])))) for way, own in ways)
    return replace(table, groups=tuple(groups))


@dataclass(frozen=True)
class CategoryLine(Noted):
    """A model's means by one way of scoring: category -> mean."""

    model: str
    by: str
    means: Mapping[str, float]


def category_table(rows: Sequence[CategoryRow], face: Typeface = PAGE) -> Table | None:
    """Return a table of models and categories under each way of scoring; None for one category.

    Of the rows' notes it has those on simulated raters.
    """
    names = [*dict.fromkeys(row.category for row in rows)]
    if len(names) < 2:
        return None
    of_model: dict[tuple[str, str], list[CategoryRow]] = {}
    for row in rows:
        of_model.setdefault((row.model, row.by), []).append(row)
    lines = [
        CategoryLine(
            *key, {row.category: row.mean for row in own}, notes=noted(own[0].told("simulated"))
        )
        for key, own in of_model.items()
    ]
    columns = (
        Column("\n".join((name or NO_CATEGORY).split()), _figure("means", name)) for name in names
    )
    spec = TableSpec("Means by category", "model", "Model", tuple(columns), named=str, within="by")
    return _under_ways(laid_out(spec, lines, face), lines)


def model_cost_spec(ways: Iterable[str]) -> TableSpec:
    """Return the table of what models cost beside how often they win, by these ways of scoring."""
    wins = (
        Column(f"Win rate, {BY[way][0].lower()}{BY[way][1:]}", _figure("win_rate", way))
        for way in ways
    )
    columns = (number("USD", "usd"), *wins)
    return TableSpec("Cost against win rate", "model", "Model", columns, named=str)


def _figure(field: str, name: str) -> Callable[[Any, Typeface], str]:
    return lambda row, face: fixed(getattr(row, field).get(name), 2, face)


def jury_calls_table(jurors: Sequence[Noted], notes: Iterable[Note]) -> Table:
    """Return a table of what each juror's calls cost, with the notes on the jury as a whole."""
    below = tuple(TableNote(str(note)) for note in notes)
    return replace(laid_out(JURY_CALLS, jurors), notes=below)


def estimate(value: float, ends: tuple[float, float], face: Typeface = PAGE) -> str:
    """Return a figure with its interval, with the digits that keep the two ends apart."""
    low, high = ends
    if not (known(value) and known(low) and known(high)):
        return fixed(value, 2, face)
    several = range(2, MOST_DIGITS)
    apart = (digits for digits in several if f"{low:.{digits}f}" != f"{high:.{digits}f}")
    digits = next(apart, MOST_DIGITS)
    return f"{fixed(value, digits, face)} ({interval(low, high, digits, face)})"


def rank(row: ModelRow, face: Typeface = PAGE) -> str:
    """Return the ranks that a model may have; a range is shared with others."""
    low, high = row.shared_rank_low, row.shared_rank_high
    if low is None or high is None:
        return face.none
    return f"{low}" if low == high else f"{low} to {high}"


def _win_rate(row: ModelRow, face: Typeface) -> str:
    return estimate(row.win_rate, (row.win_rate_low, row.win_rate_high), face)


def _macro_average(row: ModelRow, face: Typeface) -> str:
    return estimate(row.macro_average, (row.low, row.high), face)


def _scored(row: ModelRow, face: Typeface) -> str:
    every = whole(row.n_responses + row.n_missing, face)
    rated = f", {whole(row.n_rated, face)} rated" if row.by == "corrected" else ""
    return f"{whole(row.n_responses, face)} of {every}{rated}"


def _by_instance(row: ModelRow, face: Typeface) -> str:
    if not known(row.win_rate_by_instance):
        return face.none
    return f"{fixed(row.win_rate_by_instance, 2, face)}, {counted(row.n_paired, 'pair')}"


MODELS = TableSpec(
    "Models",
    "model",
    "Model",
    (
        Column("Rank", rank),
        Column("Win rate, 95 %", _win_rate, help=WIN_RATE),
        Column("Macro-average, 95 %", _macro_average, help=MACRO_AVERAGE),
        Column("By instance", _by_instance, wide=True),
        Column("Scored", _scored),
        count("Benchmarks", "n_benchmarks"),
        number("SD over opponents", "win_rate_sd", wide=True, help=OPPONENTS),
        number("SD over benchmarks", "macro_average_sd", wide=True, help=BENCHMARKS),
    ),
    named=str,
    within="by",
)
