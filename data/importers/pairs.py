"""Files of pairs: one row a pair, with its instance and both responses."""

from collections.abc import Iterator
from dataclasses import dataclass

from data.importers.ratings import pair_id_of
from data.importers.responses import ID_MADE
from data.importers.rows import Origin, ResponseRow, benchmark_of, response_row
from data.importers.table import Cells, TableFile
from data.safe_text import unguarded

SHARED = ("context", "prompt", "reference")
SIDES = ("first", "second")
REQUIRED = ("instance_id", "first_model", "first", "second_model", "second")
COLUMNS = ("pair_id", "benchmark", *SHARED, *REQUIRED, "first_id", "second_id")


@dataclass(frozen=True, slots=True)
class PairRow:
    """A pair with the rows of its two responses."""

    origin: Origin
    pair_id: str
    rows: tuple[ResponseRow, ResponseRow]

    @property
    def names(self) -> tuple[str, str, str]:
        """The ids of the pair and of its responses."""
        first, second = self.rows
        return self.pair_id, first.response_id, second.response_id

    @property
    def instance_id(self) -> str:
        """The id of what both answer."""
        return self.rows[0].instance_id

    @property
    def first(self) -> str:
        """The text of its first response."""
        return self.rows[0].response

    @property
    def second(self) -> str:
        """The text of its second response."""
        return self.rows[1].response


class PairFile:
    """A file of pairs; iterating gives one `PairRow` a row.

    Ids that it does not give are made: a pair's from its texts, a response's from its pair.

    Attributes
    ----------
    ignored
        Columns of the file that mean nothing here.

    Raises
    ------
    BadFile
        If a column that is needed is missing.
    BadRow
        While iterating, at the first row that is wrong.
    """

    def __init__(self, table: TableFile, benchmark: str | None = None) -> None:
        self.table, self.benchmark = table, benchmark
        self.ignored = tuple(one for one in table.columns if one not in (*COLUMNS, ID_MADE))
        missing = [name for name in REQUIRED if name not in table.columns]
        if not {"context", "prompt"} & set(table.columns):
            missing.append("context")
        if benchmark is None and "benchmark" not in table.columns:
            missing.append("benchmark")
        if missing:
            raise table.wrong(
                f"column {missing[0]!r} is missing (a file of pairs has {', '.join(COLUMNS)}; "
                f"{table.header}); columns of other names need a map"
            )

    def __iter__(self) -> Iterator[PairRow]:
        for origin, cells in self.table:
            yield self._row(origin, cells)

    def _row(self, origin: Origin, cells: Cells) -> PairRow:
        def name(column: str) -> str:
            return unguarded(cells.get(column, "").strip())

        benchmark = benchmark_of(origin, name("benchmark"), self.benchmark)
        both = [cells.get(side, "") for side in SIDES]
        pair_id = name("pair_id") or pair_id_of(benchmark, name("instance_id"), *both)
        shared = {column: cells.get(column, "") for column in SHARED}
        shared |= {"benchmark": benchmark, "instance_id": name("instance_id")}
        first, second = (
            response_row(
                origin,
                {
                    **shared,
                    "response_id": name(f"{side}_id") or f"{pair_id}-{side}",
                    "model": name(f"{side}_model"),
                    "response": text,
                },
            )
            for side, text in zip(SIDES, both, strict=True)
        )
        if first.response_id == second.response_id:
            raise origin.wrong(
                "second_id", second.response_id, "is the first one's; ids must differ"
            )
        return PairRow(origin, pair_id, (first, second))
