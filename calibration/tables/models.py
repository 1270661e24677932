"""The tables that compare models, each declared once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import Any

from calibration.model_values import CategoryRow, DifferenceRow, ModelRow
from calibration.notes import Note, Noted
from calibration.tables.numbers import (
    PAGE,
    Typeface,
    all_simulated,
    fixed,
    interval,
    known,
    marked,
    whole,
)
from calibration.tables.spec import (
    Column,
    Group,
    Table,
    TableNote,
    TableSpec,
    between,
    count,
    laid_out,
    number,
    probability,
    text,
)

BY = {
    "clinicians": "By clinicians",
    "jury": "By the jury, uncorrected",
    "corrected": "By the jury, corrected with the clinicians' ratings",
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
HOLM_OF_PAIRS = (
    "Chance of a difference this large if there were none, made larger for the number of all pairs "
    "of models in this table (Holm); below 0.05 the two are told apart."
)
DIFFERENCES = TableSpec(
    "The macro-average of one model minus another's",
    "first",
    "Model",
    (
        text("Minus", "second"),
        number("Difference", "difference", 3),
        between("95 %", "low", "high", 3),
        probability("p", "p"),
        probability("p, Holm, all pairs", "p_holm", help=HOLM_OF_PAIRS),
        count("Fewest instances", "instances", wide=True),
    ),
    named=str,
)


def model_table(rows: Sequence[ModelRow], face: Typeface = PAGE, *, narrow: bool = False) -> Table:
    """Return a table of models, under each way of scoring in the order of the rows."""
    table = laid_out(MODELS, rows, face, narrow=narrow)
    cells = iter([row for group in table.groups for row in group.rows])
    ways = groupby(row.by for row in rows)
    groups = (Group(BY[way], tuple(islice(cells, len([*own])))) for way, own in ways)
    return replace(table, groups=tuple(groups))


def difference_table(
    rows: Sequence[DifferenceRow], face: Typeface = PAGE, *, narrow: bool = False
) -> Table:
    """Return a table of the differences of all pairs of models, by one way of scoring."""
    way = BY[rows[0].by]
    caption = f"{DIFFERENCES.caption}, {way[0].lower()}{way[1:]}"
    return laid_out(DIFFERENCES, rows, face, caption=caption, narrow=narrow)


def category_table(rows: Sequence[CategoryRow], face: Typeface = PAGE) -> Table | None:
    """Return a table of models and categories under each way of scoring; None for one category."""
    names = [*dict.fromkeys(row.category for row in rows)]
    if len(names) < 2:
        return None
    every = all_simulated(rows)
    lines: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows:
        name = row.model if every else marked(row.model, row)
        means = lines.setdefault(row.by, {}).setdefault(name, {})
        means[row.category] = fixed(row.mean, 2, face)
    caption = "Simulated. Means by category" if every else "Means by category"
    heads = ["\n".join((name or NO_CATEGORY).split()) for name in names]
    groups = (
        Group(BY[way], tuple((name, *(means[one] for one in names)) for name, means in own.items()))
        for way, own in lines.items()
    )
    return Table(caption, ("Model", *heads), tuple(groups))


def model_cost_spec(ways: Iterable[str]) -> TableSpec:
    """Return the table of what models cost beside how often they win, by these ways of scoring."""

    def rate(way: str) -> Callable[[Any, Typeface], str]:
        return lambda row, face: fixed(row.win_rate.get(way), 2, face)

    wins = (Column(f"Win rate, {BY[way][0].lower()}{BY[way][1:]}", rate(way)) for way in ways)
    columns = (number("USD", "usd"), *wins)
    return TableSpec("Cost against win rate", "model", "Model", columns, named=str)


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


MODELS = TableSpec(
    "Models",
    "model",
    "Model",
    (
        Column("Rank", rank),
        Column("Win rate, 95 %", _win_rate, help=WIN_RATE),
        Column("Macro-average, 95 %", _macro_average, help=MACRO_AVERAGE),
        Column("Scored", _scored),
        count("Benchmarks", "n_benchmarks"),
        number("SD over opponents", "win_rate_sd", wide=True, help=OPPONENTS),
        number("SD over benchmarks", "macro_average_sd", wide=True, help=BENCHMARKS),
    ),
    named=str,
    within="by",
)
