"""Juries for their screen: which to take and all of them ranked, and two beside each other.

The worker process runs the functions; the server imports what they answer with, and nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from annotate import tables
from calibration.decision import Decision
from calibration.json_values import json_row, json_value
from calibration.messages import words
from calibration.tables.juries import COMPARISON, RANKING, legend
from calibration.tables.spec import Table, laid_out
from medjury.services.juries import (
    ComparisonQuestion,
    RankingQuestion,
    compare_juries,
    rank_juries,
)

if TYPE_CHECKING:
    from calibration.juries.ranking import JuryRow

MOST = 100
FIRST = 10
Row = Mapping[str, Any]


@dataclass(frozen=True)
class ShownRanking:
    """A ranking of juries for its screen.

    Attributes
    ----------
    decision : which jury to take
    by_size, ranking, front : the best of each size, the first `MOST`, the best for their cost
    notes : what must be known beside the tables
    first : rows of `chart_comparisons.chart_first`
    costs : rows of `chart_comparisons.chart_jury_costs`, of every jury of known cost
    without_cost : how many juries have none
    csv : every jury
    """

    decision: Decision
    by_size: Table
    ranking: Table
    front: Table
    notes: tuple[str, ...]
    first: Sequence[Row]
    costs: Sequence[Row]
    without_cost: int
    csv: str


@dataclass(frozen=True)
class ShownComparison:
    """Two juries for their screen; `told` is what every report owes its reader."""

    decision: Decision
    table: Table
    told: tuple[str, ...]


def ranking(engine: Engine, question: RankingQuestion) -> ShownRanking:
    """Return the ranking that is asked for, laid out."""
    ranked = rank_juries(engine, question)
    ranking_rows = ranked.ranking
    rows, more = ranking_rows.rows, len(ranking_rows.rows) - MOST
    left_out = (f"{more:,} more juries stand in the CSV",) if more > 0 else ()
    by_size = [best.row for best in ranking_rows.by_size]
    return ShownRanking(
        ranked.decision,
        laid_out(RANKING, by_size, caption="The best jury of each size"),
        laid_out(RANKING, rows[:MOST]),
        laid_out(
            RANKING,
            ranking_rows.front,
            caption="No cheaper jury agrees as well, the cheapest first",
        ),
        notes=(*legend(ranking_rows.front), *left_out, *map(words, ranked.notes), *ranked.told),
        first=[_of_first(row) for row in rows[:FIRST] if row.rank],
        costs=[
            _of_cost(row) | {"made_up": bool(ranked.made_up)}
            for row in rows
            if row.rank and row.usd_per_response is not None
        ],
        without_cost=ranking_rows.n_unknown_cost,
        csv=tables.csv_of([_of_csv(row) for row in rows]),
    )


def comparison(engine: Engine, question: ComparisonQuestion) -> ShownComparison:
    """Return two juries side by side, laid out."""
    from calibration.juries.comparison import compared_rows

    compared = compare_juries(engine, question)
    rows = compared_rows(compared.row, question.first, question.second)
    return ShownComparison(compared.decision, laid_out(COMPARISON, rows), compared.told)


def _of_first(row: "JuryRow") -> dict[str, Any]:
    figures = {"icc": row.icc, "low": row.low, "high": row.high, "expected": row.icc_honest}
    return {"jury": row.name} | dict(json_value(figures))


def _of_cost(row: "JuryRow") -> dict[str, Any]:
    figures = {"usd": row.usd_per_response, "icc": row.icc, "low": row.low, "high": row.high}
    return {"jury": row.name} | dict(json_value(figures)) | {"on_front": row.on_front}


def _of_csv(row: "JuryRow") -> Row:
    return {key: value for key, value in json_row(row).items() if key != "notes"}
