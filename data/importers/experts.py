"""Rows of expert scores for training, long (one score a row) or wide (one column a criterion)."""

from collections.abc import Iterator
from dataclasses import dataclass

from data.formula import unguarded
from data.importers.rows import Origin
from data.importers.table import Cells, TableFile

LONG = ("criterion", "score")


@dataclass(frozen=True, slots=True)
class ExpertRow:
    """An expert's score of a response; `score` is as the file has it, checked on the rubric."""

    origin: Origin
    response_id: str
    criterion: str
    score: str
    why: str = ""


class ExpertFile:
    """A file of expert scores; iterating gives one `ExpertRow` a score.

    In a wide file every column but response_id and why is a criterion, and the why stands
    for all of them.

    Raises
    ------
    BadFile
        If a column that is needed is missing.
    BadRow
        While iterating, at the first row that is wrong.
    """

    def __init__(self, table: TableFile) -> None:
        self.table = table
        self.long = set(LONG) <= set(table.columns)
        self.criteria = tuple(one for one in table.columns if one not in ("response_id", "why"))
        absent = "response_id" if "response_id" not in table.columns else "criterion"
        if absent == "response_id" or not self.criteria:
            raise table.wrong(
                f"column {absent!r} is missing (expert scores have response_id, then criterion and "
                "score or a column a criterion, and optionally why; "
                f"{table.header})"
            )

    def __iter__(self) -> Iterator[ExpertRow]:
        for origin, cells in self.table:
            response = unguarded(_filled(origin, cells, "response_id"))
            why = cells.get("why", "").strip()
            if self.long:
                name = unguarded(_filled(origin, cells, "criterion"))
                yield ExpertRow(origin, response, name, _filled(origin, cells, "score"), why)
                continue
            self.table.refuse_new_keys(origin, cells, ("why",))
            for name in self.criteria:
                yield ExpertRow(origin, response, name, _filled(origin, cells, name), why)


def _filled(origin: Origin, cells: Cells, column: str) -> str:
    value = cells.get(column, "").strip()
    if not value:
        raise origin.wrong(column, value, "must not be empty")
    return value
