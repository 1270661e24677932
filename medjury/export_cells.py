"""How cells of the files for analysis are written: no text in them runs as a formula."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")
FREE_TEXT = {"comment", "remark", "text", "note", "actor"}


def cells(columns: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[list[object]]:
    """Yield rows as a file has them; free text can be no formula in a spreadsheet."""
    free = [name in FREE_TEXT for name in columns]
    for row in rows:
        yield [
            _harmless(value) if text and isinstance(value, str) else _cell(value)
            for text, value in zip(free, row, strict=True)
        ]


def _harmless(text: str) -> str:
    return "'" + text if text.startswith(FORMULA) else text


def _cell(value: Any) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return "" if value is None else value
