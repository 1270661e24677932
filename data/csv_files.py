"""CSV files: written whole or not at all, and no text in a cell runs as a formula."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import BadFile
from data.files import private, whole_file
from data.safe_text import guarded, guarded_name

if TYPE_CHECKING:
    import pandas as pd

FOR_SPREADSHEETS = "utf-8-sig"
FREE_TEXT = {"comment", "remark", "text", "note", "actor", "title"}


def write_csv(
    path: Path,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    encoding: str = "utf-8",
) -> int:
    """Write rows to a new CSV file that its owner alone may read, whole or not at all; return how many there were.

    With the mark of `FOR_SPREADSHEETS` Excel knows that it is UTF-8, not Windows-1252.
    """
    written = 0
    try:
        with (
            whole_file(path) as part,
            open(part, "x", encoding=encoding, newline="", opener=private) as file,
        ):
            writer = csv.writer(file)
            writer.writerow(columns)
            for row in rows:
                writer.writerow(row)
                written += 1
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error
    return written


def csv_bytes(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Return a CSV file as a browser saves it, in UTF-8 with the mark of `FOR_SPREADSHEETS`."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue().encode(FOR_SPREADSHEETS)


def cells(columns: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[list[object]]:
    """Yield rows as a file has them: no text can be a formula in a spreadsheet.

    A name that is a number, such as -5, stays one; free text that begins like one does not.
    """
    guards = [guarded if name in FREE_TEXT else guarded_name for name in columns]
    for row in rows:
        yield [
            guard(value) if isinstance(value, str) else _cell(value)
            for guard, value in zip(guards, row, strict=True)
        ]


def frame_cells(table: "pd.DataFrame") -> tuple[list[str], Iterator[list[object]]]:
    """Return a frame of responses as `cells` with its columns: each instance has its own name.

    What is missing in the frame is an empty cell.
    """
    columns = [str(name) for name in table.columns]
    values = table.astype(object)
    if "instance_id" in table:
        values["instance_id"] = [
            str(name).removeprefix(f"{benchmark}/")
            for name, benchmark in zip(table["instance_id"], table["benchmark"], strict=True)
        ]
    rows = values.where(values.notna(), None).itertuples(index=False, name=None)
    return columns, cells(columns, rows)


def _cell(value: Any) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True)
    return "" if value is None else value
