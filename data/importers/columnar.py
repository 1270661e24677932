"""Rows of a Parquet file, in batches; nested columns are lists and dictionaries, as in JSON."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any

from data.importers.source import Source
from data.importers.text_rows import Record, Rows, header, wrong

BATCH = 256
INSTALL = "`uv sync --no-dev --extra parquet`, or `pip install pyarrow`"
MOST_BYTES, MOST_RATIO, FREE = 8 << 30, 1_000, 64 << 20


def parquet_rows(source: Source) -> Rows:
    """Return the rows of a Parquet file."""
    with _opened(source) as file:
        columns = header(source, list(file.schema_arrow.names))
        meta = file.metadata
        size = sum(meta.row_group(one).total_byte_size for one in range(meta.num_row_groups))
    if size > MOST_BYTES or size > max(FREE, MOST_RATIO * source.size):
        raise wrong(source, "it would unpack to more than any file of rows")
    return Rows("parquet", columns, lambda: _records(source, columns), "Parquet")


def _records(source: Source, columns: tuple[str, ...]) -> Iterator[Record]:
    number = 1
    with _opened(source) as file:
        for batch in file.iter_batches(batch_size=BATCH):
            for row in batch.to_pylist():
                number += 1
                yield number, {key.strip(): _plain(value) for key, value in row.items()}


def _plain(value: Any) -> Any:
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
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


@contextmanager
def _opened(source: Source) -> Iterator[Any]:
    """Open the file; what Arrow cannot read is refused."""
    try:
        import pyarrow  # type: ignore[import-untyped]  # slow to load
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise wrong(
            source, f"reading Parquet needs pyarrow, which is not installed: {INSTALL}"
        ) from error
    with source.raw() as raw:
        try:
            with parquet.ParquetFile(raw) as file:
                yield file
        except (pyarrow.ArrowException, OSError, EOFError) as error:
            raise wrong(source, "a Parquet file that is damaged or cut short") from error
