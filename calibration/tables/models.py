"""The tables that compare models, each declared once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from calibration.models.rows import CategoryRow, DetectableRow, ModelRow
from calibration.notes import Note, Noted, counted
from calibration.tables.numbers import PAGE, Typeface, fixed, interval, known, whole
from calibration.tables.spec import Column, Table, TableNote, TableSpec, count, laid_out, number
from calibration.values import NAN

BY = {
    "clinicians": "by clinicians",
    "jury": "by the jury, uncorrected",
    "corrected": "by the jury, corrected with the clinicians' ratings",
    "paper": "as in the MedHELM paper: by a benchmark's own metric, else by the jury",
}
MEANING = (
    "Rank: by win rate; models that cannot be distinguished share a range of ranks. "
    "Win rate: share of the other models beaten on a benchmark, a tie half a win. "
    "Macro-average: mean over benchmarks on 0 to 1. Intervals are over instances."
)
MEANING_BY_INSTANCE = "By instance: the win rate on the instances that both models have."
MEANING_DETECTABLE = (
    "As in the paper: score / top of the scale. Exact: on the scale of the macro-average. Both: "
    "detected with 80 % power."
)
NO_CATEGORY = "no category"
MOST_DIGITS = 4
DETECTABLE = TableSpec(
    "Smallest difference between two models that a benchmark detects",
    "benchmark",
    "Benchmark",
    (
        number("As in the paper", "mde", 3),
        number("Exact", "mde_exact", 3),
        count("Instances", "n_instances"),
        count("Pairs of models", "n_pairs"),
    ),
    named=str,
)
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


@dataclass(frozen=True)
class CategoryLine(Noted):
    """A model's means of all categories, in their order; NaN where there is none."""

    model: str
    means: tuple[float, ...]


def model_tables(
    rows: Sequence[ModelRow], face: Typeface = PAGE, *, narrow: bool = False
) -> tuple[Table, ...]:
    """Return a table of models for each way of scoring."""
    every = [(by, [*own]) for by, own in groupby(rows, key=lambda row: row.by)]
    return tuple(
        laid_out(
            MODELS_ON_SOME if any(_is_partial(row) for row in own) else MODELS,
            own,
            face,
            caption=f"Models {BY[by]}",
            narrow=narrow,
        )
        for by, own in every
    )


def category_tables(rows: Sequence[CategoryRow], face: Typeface = PAGE) -> tuple[Table, ...]:
    """Return a table of models and categories for each way of scoring; none for one category."""
    names = [*dict.fromkeys(row.category for row in rows)]
    if len(names) < 2:
        return ()
    return tuple(
        laid_out(
            _categories(names), _lines([*own], names), face, caption=f"Means by category, {BY[by]}"
        )
        for by, own in groupby(rows, key=lambda row: row.by)
    )


def detectable_tables(rows: Sequence[DetectableRow], face: Typeface = PAGE) -> tuple[Table, ...]:
    """Return a table of detectable differences by benchmark for each way of scoring."""
    title = "Smallest difference between two models that a benchmark detects"
    return tuple(
        laid_out(DETECTABLE, [*own], face, caption=f"{title}, {BY[by]}")
        for by, own in groupby(rows, key=lambda row: row.by)
    )


def jury_calls_table(jurors: Sequence[Noted], notes: Iterable[Note]) -> Table:
    """Return a table of what each juror's calls cost, with the notes on the jury as a whole."""
    below = tuple(TableNote(str(one)) for one in notes)
    return replace(laid_out(JURY_CALLS, jurors), notes=below)


def estimate(value: float, ends: tuple[float, float], face: Typeface = PAGE) -> str:
    """Return a figure with its interval, with the digits that keep the two ends apart."""
    low, high = ends
    if not (known(value) and known(low) and known(high)):
        return fixed(value, 2, face)
    digits = _digits(low, high)
    return f"{fixed(value, digits, face)} ({interval(low, high, digits, face)})"


def rank(row: ModelRow, face: Typeface = PAGE) -> str:
    """Return the ranks that a model may have; a range is shared with others."""
    low, high = row.shared_rank_low, row.shared_rank_high
    if low is None or high is None:
        return face.none
    return f"{low}" if low == high else f"{low} to {high}"


def rests_on(row: CategoryRow) -> str:
    """Return which benchmarks of its category a mean lacks."""
    return f"without {', '.join(row.without)}" if row.without else "all benchmarks"


def _digits(low: float, high: float) -> int:
    """Return how many decimals show that two ends differ: two, or more."""
    differ = (
        digits for digits in range(2, MOST_DIGITS) if f"{low:.{digits}f}" != f"{high:.{digits}f}"
    )
    return next(differ, MOST_DIGITS)


def _is_partial(row: ModelRow) -> bool:
    return bool(row.without) and row.n_benchmarks > 0


def _benchmarks(row: ModelRow, face: Typeface) -> str:
    every = row.n_benchmarks + len(row.without)
    return f"{whole(row.n_benchmarks, face)} of {whole(every, face)}"


def _win_rate(row: ModelRow, face: Typeface) -> str:
    ends = row.win_rate_low, row.win_rate_high
    return estimate(row.win_rate, ends, face)


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


def _category(place: int) -> Callable[[CategoryLine, Typeface], str]:
    return lambda line, face: fixed(line.means[place], 2, face)


def _categories(names: Sequence[str]) -> TableSpec:
    """Return the table of models and these categories, a word of each in a line of its heading."""
    headings = ("\n".join((name or NO_CATEGORY).split()) for name in names)
    columns = (Column(heading, _category(at)) for at, heading in enumerate(headings))
    return TableSpec("Means by category", "model", "Model", tuple(columns), named=str)


def _lines(rows: Sequence[CategoryRow], names: Sequence[str]) -> list[CategoryLine]:
    """Return a line a model; of its notes, whose scores are made up."""
    means = {(row.model, row.category): row.mean for row in rows}
    notes = {row.model: tuple(filter(None, [row.told("simulated")])) for row in rows}
    return [
        CategoryLine(model, tuple(means.get((model, name), NAN) for name in names), notes=own)
        for model, own in notes.items()
    ]


def _win_rate_by(way: str) -> Callable[[Any, Typeface], str]:
    return lambda row, face: fixed(row.win_rate[way], 2, face)


MODELS = TableSpec(
    "Models",
    "model",
    "Model",
    (
        Column("Rank", rank, ("shared_rank_low", "shared_rank_high")),
        Column("Win rate, 95 %", _win_rate, ("win_rate", "win_rate_low", "win_rate_high")),
        Column("Macro-average, 95 %", _macro_average, ("macro_average", "low", "high")),
        Column("By instance", _by_instance, ("win_rate_by_instance", "n_paired"), wide=True),
        Column("Scored", _scored, ("n_responses", "n_missing", "n_rated")),
        number("SD over opponents", "win_rate_sd", wide=True),
        number("SD over benchmarks", "macro_average_sd", wide=True),
    ),
    in_columns=frozenset(["not_detected", "rated_by_clinicians"]),
    named=str,
)
MODELS_ON_SOME = replace(
    MODELS,
    columns=(*MODELS.columns, Column("Benchmarks", _benchmarks, ("n_benchmarks", "without"))),
)


def model_cost_spec(ways: Iterable[str]) -> TableSpec:
    """Return the table of what models cost beside how often they win, by these ways of scoring."""
    wins = (Column(f"Win rate {BY[way]}", _win_rate_by(way)) for way in ways)
    columns = (number("USD", "usd"), *wins)
    return TableSpec("Cost against win rate", "model", "Model", columns, named=str)
