"""Rows of a file of any form, which is read here or in a process of its own.

Plain CSV and JSON Lines are read here, line by line, in memory that is bounded whatever is in them.
What must be unpacked or read whole (Excel, Parquet, JSON arrays and objects, gzip) is read by a
child; the rows of a small file are kept, so that it is read once.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

from data.importers.binary_rows import parquet_rows, workbook_rows
from data.importers.child import in_child
from data.importers.source import Form, Source
from data.importers.text_rows import Record, Rows, text_rows

KEPT = 500  # rows, and characters of them, that are kept of a file
KEPT_CHARACTERS = 4_000_000
_kept: WeakKeyDictionary[Source, dict[tuple[Form, str | None], Rows]] = WeakKeyDictionary()


def file_rows(source: Source, form: Form, sheet: str | None = None) -> Rows:
    """Return the rows of a file; of a workbook those of a sheet.

    Raises
    ------
    BadFile
        If it is damaged, or needs more than the limits of `child.py`.
    """
    if form in ("csv", "jsonl") and not source.packed:
        return text_rows(source, form)
    known = _kept.setdefault(source, {})
    if (form, sheet) not in known:
        known[form, sheet] = _read_by_child(source, form, sheet)
    return known[form, sheet]


def _read_by_child(source: Source, form: Form, sheet: str | None) -> Rows:
    """Return rows that a child reads: those of a small file at once, others when they are asked for."""

    def records() -> Iterator[Record]:
        items = in_child(_items, source, form, sheet, name=source.path, size=source.size)
        yield from islice(items, 1, None)

    items = in_child(_items, source, form, sheet, name=source.path, size=source.size)
    rows: Rows = next(items)
    first: list[Record] = []
    characters = 0
    for record in items:
        first.append(record)
        characters += sum(len(str(value)) for value in record[1].values())
        if len(first) > KEPT or characters > KEPT_CHARACTERS:
            items.close()
            return replace(rows, records=records)
    return replace(rows, records=lambda: iter(first))


def _items(source: Source, form: Form, sheet: str | None) -> Iterator[Any]:
    """Yield what is known of a file's rows, and then each of them."""
    if form == "xlsx":
        rows = workbook_rows(source, sheet)
    elif form == "parquet":
        rows = parquet_rows(source)
    else:
        rows = text_rows(source, form)
    yield replace(rows, records=no_records)
    yield from rows.records()


def no_records() -> Iterator[Record]:
    """Return none: of a head that is handed over, the records follow by themselves."""
    return iter(())
