"""A corpus as its authors publish it, read as rows of responses."""

from collections.abc import Callable, Iterator
from pathlib import Path

from data.importers.responses import COLUMNS
from data.importers.rows import Origin
from data.importers.table import Cells, TableFile

Rows = Iterator[tuple[Origin, Cells]]


class CorpusTable(TableFile):
    """One or more files of a corpus, iterated as the rows of one file of responses.

    Parameters
    ----------
    main
        The file that messages and the summary name.
    rows
        Gives the rows anew, in the columns of a file of responses.
    """

    def __init__(self, main: TableFile, rows: Callable[[], Rows]) -> None:
        self.path, self.form, self.encoding = main.path, main.form, main.encoding
        self.size_bytes, self._raw = main.size_bytes, None
        self.columns, self._corpus_rows = COLUMNS, rows

    def __iter__(self) -> Rows:
        return self._corpus_rows()


def csv_with(path: Path, columns: tuple[str, ...], corpus: str) -> TableFile:
    """Return a CSV file that has the corpus' columns, or refuse it."""
    table = TableFile(path, "csv")
    absent = [name for name in columns if name not in table.columns]
    if absent:
        raise table.wrong(
            f"column {absent[0]!r} is missing (a file of {corpus} has {', '.join(columns)}; "
            f"{table.header})"
        )
    return table
