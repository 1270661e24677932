"""The tables of the paper's pages, each declared once."""

from collections.abc import Sequence
from dataclasses import dataclass

from calibration.tables.models import MODELS
from calibration.tables.numbers import fixed
from calibration.tables.spec import Column, TableSpec, count, number, text
from calibration.values import NAN, Noted

TABLE_1 = TableSpec(
    "Win rate and macro-average",
    "model",
    "Model",
    (
        *(
            column
            for column in MODELS.columns
            if column.heading in ("Win rate, 95 %", "Macro-average, 95 %")
        ),
        number("SD over opponents", "win_rate_sd"),
        number("SD over benchmarks", "macro_average_sd"),
        count("Benchmarks", "n_benchmarks"),
    ),
    in_columns=MODELS.in_columns,
    named=str,
)
TABLE_1_OF_LEADERBOARD = TableSpec(
    "Win rate and macro-average",
    "model",
    "Model",
    (
        number("Win rate", "win_rate"),
        number("SD over opponents", "win_rate_sd"),
        number("SD, ties lost", "win_rate_sd_strict"),
        number("Macro-average", "macro_average"),
        number("SD over benchmarks", "macro_average_sd"),
        count("Benchmarks", "n_benchmarks"),
    ),
    named=str,
)


@dataclass(frozen=True)
class LeaderboardLine(Noted):
    """A line of Table 1 from a leaderboard."""

    model: str
    win_rate: float
    win_rate_sd: float
    win_rate_sd_strict: float
    macro_average: float
    macro_average_sd: float
    n_benchmarks: int


@dataclass(frozen=True)
class CostLine(Noted):
    """What one model or juror cost: `usd` NaN where it is not known."""

    who: str
    what: str
    calls: int | None = None
    usd: float = NAN
    bound: float = NAN


COSTS = TableSpec(
    "Costs",
    "who",
    "Whose",
    (
        text("What", "what"),
        count("Calls", "calls"),
        number("US dollars", "usd"),
        number("Bound by the paper's formula", "bound"),
    ),
    named=str,
)


@dataclass(frozen=True)
class MeanLine(Noted):
    """Means by the names of the columns, of a model or on a benchmark; NaN where there is none."""

    name: str
    means: tuple[float, ...]


def means_table(first: str, names: Sequence[str]) -> TableSpec:
    """Return a table of means under these headings, `first` above the lines' names."""
    columns = tuple(_mean(name, at) for at, name in enumerate(names))
    return TableSpec("Means, 0 to 1", "name", first, columns, named=str)


def _mean(name: str, at: int) -> Column:
    return Column(name, lambda line, face: fixed(line.means[at], 2, face))
