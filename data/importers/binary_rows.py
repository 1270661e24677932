"""Rows of Excel workbooks (.xlsx) and of Parquet files.

Of a workbook one sheet with a header and no merged cells is read. Sizes are held to bounds before
anything is unpacked: a file may come from a stranger. Nested columns of Parquet are lists and
dictionaries, as in JSON.
"""

import math
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import Any

from data.importers.safe import BROKEN, Unsafe, refuse_declarations, zip_parts
from data.importers.source import Source
from data.importers.text_rows import Record, Rows, header, wrong

MOST_UNPACKED, MOST_PARTS, MOST_RATIO = 1 << 30, 5_000, 200
MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s+ref="([A-Z0-9:]+)"')
FORMULA = re.compile(rb"<(?:\w+:)?f[ >/]")
BATCH = 256
MOST_PARQUET, MOST_PARQUET_RATIO, FREE_PARQUET = 8 << 30, 1_000, 64 << 20


def workbook_rows(source: Source, sheet: str | None = None) -> Rows:
    """Return the rows of the named sheet, or of the only sheet with rows."""
    _refuse_unsafe(source)
    with _opened(source) as book:
        name = _sheet(source, book, sheet)
        columns, indices = _columns(source, next(book[name].iter_rows(values_only=True), ()))
    parts = _sheet_parts(source)
    _refuse_merged(source, name, parts)

    def records() -> Iterator[Record]:
        yield from _records(source, name, columns, indices, any(map(FORMULA.search, parts)))

    return Rows("xlsx", columns, f"sheet {name}", records)


def _records(
    source: Source, name: str, columns: Sequence[str], indices: Sequence[int], formulas: bool
) -> Iterator[Record]:
    with _opened(source) as book:
        uncomputed = _formula_cells(source, name) if formulas else frozenset[tuple[int, int]]()
        rows = book[name].iter_rows(min_row=2)
        for number, cells in enumerate(rows, start=2):
            values = [cell.value for cell in cells]
            filled = any(value is not None and value != "" for value in values)
            if not filled and all((number, index) not in uncomputed for index in range(len(cells))):
                continue
            _refuse_bad_cells(source, number, cells, indices, uncomputed)
            row = (values[index] if index < len(values) else None for index in indices)
            yield number, {key: _text(value) for key, value in zip(columns, row, strict=True)}


def _refuse_bad_cells(
    source: Source,
    number: int,
    cells: Sequence[Any],
    indices: Sequence[int],
    uncomputed: frozenset[tuple[int, int]],
) -> None:
    """Refuse an error, a formula without its value, and a value outside the columns."""
    for index, cell in enumerate(cells):
        if cell.value is None and (number, index) not in uncomputed:
            continue
        if index not in indices:
            raise wrong(source, f"row {number} has a value beyond the header's columns")
        if cell.data_type == "e":
            raise wrong(source, f"row {number} has an error of Excel in column {index + 1}")
        if (number, index) in uncomputed and cell.value is None:
            why = "a formula that Excel has not computed yet; open it in Excel and save it"
            raise wrong(source, f"row {number} has {why}")


def _formula_cells(source: Source, name: str) -> frozenset[tuple[int, int]]:
    """Return row and index of the cells that hold a formula."""
    with _opened(source, values=False) as book:
        return frozenset(
            (number, index)
            for number, cells in enumerate(book[name].iter_rows(), start=1)
            for index, cell in enumerate(cells)
            if cell.data_type == "f"
        )


def _sheet(source: Source, book: Any, named: str | None) -> str:
    """Return the name of the sheet to be read."""
    names = [sheet.title for sheet in book.worksheets]
    if named is not None:
        if named not in names:
            raise wrong(source, f"no sheet {named!r}; there are {', '.join(names)}")
        return named
    filled = [sheet.title for sheet in book.worksheets if next(sheet.iter_rows(min_row=2), None)]
    filled = filled or [sheet.title for sheet in book.worksheets if next(sheet.iter_rows(), None)]
    if len(filled) > 1:
        why = f'has several sheets with rows: {", ".join(filled)}; say sheet = "NAME" in a map'
        raise wrong(source, f"{why}, or save the one that is meant by itself")
    if not filled:
        raise wrong(source, "no sheet of it has rows")
    return str(filled[0])


def _columns(source: Source, first: Sequence[Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the names in the header and their indices; unnamed columns are left out."""
    indices = tuple(index for index, name in enumerate(first) if _text(name).strip())
    if not indices:
        raise wrong(source, "the first row of its sheet is no header: it is empty")
    return header(source, [_text(first[index]) for index in indices]), indices


def _text(value: Any) -> str:
    """Return a cell as text; whole numbers without a point, times as ISO 8601."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


@contextmanager
def _opened(source: Source, values: bool = True) -> Iterator[Any]:
    """Open a workbook as a stream; refuse one that openpyxl cannot read."""
    import openpyxl  # slow to load

    with source.raw() as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and extensions that hold no rows
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=values)
        except (*BROKEN, KeyError, TypeError, AttributeError, SyntaxError) as error:
            raise wrong(source, "an Excel workbook that is damaged; save it anew") from error
        try:
            yield book
        finally:
            book.close()


def _refuse_unsafe(source: Source) -> None:
    """Refuse a workbook that unpacks to too much, or declares XML entities."""
    try:
        with source.raw() as file:
            parts = zip_parts(file, MOST_RATIO, MOST_PARTS, MOST_UNPACKED)
            with zipfile.ZipFile(file) as archive:
                for part in parts.values():
                    with archive.open(part) as stream:
                        refuse_declarations(stream)
    except Unsafe as error:
        raise wrong(source, str(error)) from error
    except BROKEN as error:
        raise wrong(source, "an Excel workbook that is damaged; save it anew") from error


def _sheet_parts(source: Source) -> list[bytes]:
    """Return the sheets as XML, to see what a stream of rows does not show."""
    with source.raw() as file, zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if name.startswith("xl/worksheets/sheet")]
        return [archive.read(name) for name in names]


def _refuse_merged(source: Source, name: str, parts: Sequence[bytes]) -> None:
    if merged := next((cells for part in parts if (cells := MERGED.search(part))), None):
        where = merged[1].decode("ascii")
        why = f"cells {where} are merged; unmerge them and write the value in every row"
        raise wrong(source, f"{why} (sheet {name})" if len(parts) == 1 else why)


def parquet_rows(source: Source) -> Rows:
    """Return the rows of a Parquet file."""
    with _opened_parquet(source) as file:
        columns = header(source, list(file.schema_arrow.names))
        meta = file.metadata
        size = sum(meta.row_group(group).total_byte_size for group in range(meta.num_row_groups))
    if size > MOST_PARQUET or size > max(FREE_PARQUET, MOST_PARQUET_RATIO * source.size):
        raise wrong(source, "it would unpack to more than any file of rows")
    return Rows("parquet", columns, "Parquet", lambda: _parquet_records(source, columns))


def _parquet_records(source: Source, columns: tuple[str, ...]) -> Iterator[Record]:
    number = 1
    with _opened_parquet(source) as file:
        for batch in file.iter_batches(batch_size=BATCH):
            for row in batch.to_pylist():
                number += 1
                yield number, {key.strip(): _json_value(value) for key, value in row.items()}


def _json_value(value: Any) -> Any:
    """Return a value as JSON has it: NaN is missing, times are ISO 8601, whole floats are whole."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return {key: _json_value(item) for key, item in value.items()}
    return [_json_value(item) for item in value] if isinstance(value, list) else value


@contextmanager
def _opened_parquet(source: Source) -> Iterator[Any]:
    """Open the file; what Arrow cannot read is refused."""
    import pyarrow  # type: ignore[import-untyped]  # slow to load
    from pyarrow import parquet

    with source.raw() as raw:
        try:
            with parquet.ParquetFile(raw) as file:
                yield file
        except (pyarrow.ArrowException, OSError, EOFError) as error:
            raise wrong(source, "a Parquet file that is damaged or cut short") from error
