"""The table of models, and the rows of a comparison; light, since the app's server loads them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any

from calibration.notes import Noted
from calibration.tables.numbers import PAGE, Typeface, fixed, interval, known, whole
from calibration.tables.spec import (
    Column,
    Group,
    Table,
    TableSpec,
    between,
    count,
    laid_out,
    number,
    probability,
    text,
)
from calibration.values import NAN

CLINICIANS, JURY, CORRECTED = "clinicians", "jury", "corrected"
BY = {
    CLINICIANS: "By clinicians",
    JURY: "By the jury, uncorrected",
    CORRECTED: "By the jury, corrected with the clinicians' ratings",
}
WAYS = tuple(BY)  # of scoring a model's responses
LEVEL = 0.05  # of p corrected for all pairs, below which two models are told apart
FEW_INSTANCES = 20  # on a benchmark; with fewer no model is said to lead
NO_CATEGORY = "no category"
MEANING = (
    "Rank: by win rate; models that cannot be distinguished share a range of ranks. "
    "Win rate: share of the other models beaten on a benchmark, a tie half a win. "
    "Macro-average: mean over benchmarks on 0 to 1. Intervals are over instances."
)


@dataclass(frozen=True)
class ModelRow(Noted):
    """One model by one way of scoring: a row of `analyse models --json`; undefined is NaN, a rank None.

    Attributes
    ----------
    by : "clinicians", "jury" or "corrected"
    win_rate, win_rate_low, win_rate_high : share of the other models beaten on a benchmark, mean
        over benchmarks; percentile 95 % interval over instances, Wilson's where all resamples agree
    macro_average, macro_average_sd, low, high : mean over benchmarks, 0 to 1; SD over benchmarks,
        ddof 1; 95 % interval of the mean by t, from its error between instances
    shared_rank_low, shared_rank_high : the ranks by win rate that the model may have, 1 the best,
        given which others it can be told apart from; None without a win rate
    not_told_apart : ranked models that it cannot be told apart from
    categories : of the benchmarks ("" for none) -> its macro-average of those alone
    n_benchmarks, without : those with a mean of this model, and the others' names
    n_responses, n_missing : its responses whose score enters, and all its others
    n_rated : those of `n_responses` that clinicians rated
    usd : what the model cost, if that is given
    """

    model: str
    by: str
    win_rate: float
    win_rate_low: float
    win_rate_high: float
    macro_average: float
    macro_average_sd: float
    low: float
    high: float
    shared_rank_low: int | None
    shared_rank_high: int | None
    not_told_apart: tuple[str, ...]
    categories: Mapping[str, float]
    n_benchmarks: int
    without: tuple[str, ...]
    n_responses: int
    n_missing: int
    n_rated: int
    usd: float = NAN


@dataclass(frozen=True)
class DifferenceRow(Noted):
    """The macro-average of one model less that of another on the same benchmarks, by one way of scoring.

    Attributes
    ----------
    first, second : the first has the higher macro-average
    low, high, p : 95 % interval and two-sided p by t, from the error of the difference between
        instances; NaN where all instances agree or a mean rests on one instance
    p_holm : p corrected for all pairs of models by this way of scoring
    instances : the fewest of a benchmark that either mean rests on
    """

    by: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float = NAN
    instances: int = 0

    @property
    def is_ahead(self) -> bool:
        """Whether the first model can be told to have the higher macro-average, at 5 % of all pairs."""
        return self.instances >= FEW_INSTANCES and self.difference > 0 and self.p_holm < LEVEL


def rank(row: ModelRow, face: Typeface = PAGE) -> str:
    """Return the ranks that a model may have; a range is shared with others."""
    low, high = row.shared_rank_low, row.shared_rank_high
    if low is None or high is None:
        return face.none
    return f"{low}" if low == high else f"{low} to {high}"


def _with_interval(heading: str, value: str, low: str, high: str, words: str) -> Column:
    def cell(row: Any, face: Typeface) -> str:
        ends = interval(getattr(row, low), getattr(row, high), 3, face)
        return fixed(getattr(row, value), 3, face) + (f" ({ends})" if ends else "")

    return Column(heading, cell, help=words)


def _scored(row: ModelRow, face: Typeface) -> str:
    every = whole(row.n_responses + row.n_missing, face)
    rated = f", {whole(row.n_rated, face)} rated" if row.by == CORRECTED else ""
    return f"{whole(row.n_responses, face)} of {every}{rated}"


MODELS = TableSpec(
    "Models",
    "model",
    "Model",
    (
        Column("Rank", rank),
        _with_interval(
            *("Win rate, 95 %", "win_rate", "win_rate_low", "win_rate_high"),
            "Share of comparisons with other models that the model wins, with its interval.",
        ),
        _with_interval(
            *("Macro-average, 95 %", "macro_average", "low", "high"),
            "Mean over benchmarks, each put on 0 to 1, with its interval over instances.",
        ),
        Column("Scored", _scored),
        count("Benchmarks", "n_benchmarks", wide=True),
        number(
            *("SD over benchmarks", "macro_average_sd"),
            wide=True,
            help="How much the figure varies between benchmarks.",
        ),
    ),
    named=str,
    within="by",
)
USD = number("USD", "usd", help="What the model cost, as your file of costs has it.")
DIFFERENCES = TableSpec(
    "The macro-average of one model minus another's",
    "first",
    "Model",
    (
        text("Minus", "second"),
        number("Difference", "difference", 3),
        between("95 %", "low", "high", 3),
        probability("p", "p"),
        probability(
            "p, Holm, all pairs",
            "p_holm",
            help="Chance of a difference this large if there were none, made larger for the number "
            "of all pairs of models in this table (Holm); below 0.05 the two are told apart.",
        ),
        count("Fewest instances", "instances", wide=True),
    ),
    named=str,
)


def model_table(rows: Sequence[ModelRow], face: Typeface = PAGE, *, narrow: bool = False) -> Table:
    """Return the table of models, under each way of scoring; with what they cost where that is given."""
    has_cost = any(known(row.usd) for row in rows)
    spec = replace(MODELS, columns=(*MODELS.columns, USD)) if has_cost else MODELS
    return _under_ways(laid_out(spec, rows, face, narrow=narrow), rows)


def category_table(rows: Sequence[ModelRow], face: Typeface = PAGE) -> Table | None:
    """Return a table of models and categories under each way of scoring; None for one category."""

    def mean(name: str) -> Column:
        heading = "\n".join((name or NO_CATEGORY).split())
        return Column(heading, lambda row, face: fixed(row.categories[name], 2, face))

    columns = tuple(map(mean, rows[0].categories))
    spec = TableSpec("Means by category", "model", "Model", columns, named=str)
    return _under_ways(laid_out(spec, rows, face), rows) if len(columns) > 1 else None


def _under_ways(table: Table, rows: Sequence[ModelRow]) -> Table:
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
