"""How cells of the files for analysis are written: no text in them runs as a formula."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from data.formula import guarded, guarded_name

FREE_TEXT = {"comment", "remark", "text", "note", "actor"}


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


def _cell(value: Any) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return "" if value is None else value
