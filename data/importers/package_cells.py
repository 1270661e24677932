"""A study's tables as CSV that can be read back to the last bit: columns, types, and how a cell is written.

A text that begins with a sign a spreadsheet would run (`= + - @`, a tab, a carriage return) or
with `'` gets one `'` in front, which is taken away when it is read. An empty cell is a value that
is missing; an empty text where one could be missing is a lone `'`.
"""

import json
import math
import types
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Union, get_args, get_origin

from data import schema
from data.errors import BadFile
from data.formula import FORMULA

VERSION = 1
FORMAT = "medjury-package"
GUARDED = (*FORMULA, "'")
WHOLE = 2**63
TABLES: dict[str, type[schema.Table]] = {  # in an order in which rows can refer to earlier ones
    "rubric": schema.RubricText,
    "rater": schema.Rater,
    "benchmark": schema.Benchmark,
    "instance": schema.Instance,
    "response": schema.Response,
    "subgroup": schema.Subgroup,
    "rating": schema.Rating,
    "assignment": schema.Assignment,
    "remark": schema.Remark,
    "span": schema.Span,
    "expert": schema.Expert,
    "drill": schema.Drill,
    "attempt": schema.Attempt,
    "reference_check": schema.ReferenceCheck,
    "composition": schema.Composition,
    "report": schema.Report,
    "setting": schema.Setting,
    "event": schema.Event,
}
AUTHORS: dict[str, type[schema.Table]] = {"authorship": schema.Authorship, "mask": schema.Mask}
EVERY = TABLES | AUTHORS
# What a package has instead of, or beside, the columns of a table: name, type, can it be missing.
OWN: dict[str, dict[str, tuple[type, bool]]] = {
    "response": {"text": (str, False), "masked": (bool, False)},
    "authorship": {"original": (str, True)},
}
LEFT_OUT = {"response": {"shown"}}


def columns(table: str) -> dict[str, tuple[type, bool]]:
    """Return a table's columns as a package has them: name -> type, and whether it can be missing."""
    fields = EVERY[table].model_fields
    given = {
        name: _type(one.annotation)
        for name, one in fields.items()
        if name not in LEFT_OUT.get(table, ())
    }
    if "id" in given:
        given["id"] = (int, False)
    return given | OWN.get(table, {})


def written(value: object, missing_allowed: bool) -> object:
    """Return a value as the cell of a package."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        guarded = value.startswith(GUARDED) or (missing_allowed and not value)
        return f"'{value}" if guarded else str(value)
    return value


def read(cell: str, kind: type, missing_allowed: bool) -> Any:
    """Return the value of a cell; a ValueError says what it is not, and never quotes it."""
    if not cell and missing_allowed:
        return None
    if kind is bool:
        return _one(cell, {"0": False, "1": True}, "0 or 1")
    if kind is int:
        return _whole(cell)
    if kind is float:
        return _number(cell)
    if kind is datetime:
        return _time(cell)
    if kind in (dict, list):
        return _json(cell, kind)
    if issubclass(kind, StrEnum):
        return _one(cell, {one.value: one for one in kind}, "one of " + ", ".join(kind))
    return cell.removeprefix("'")


def row(table: str, cells: Mapping[str, str], where: str) -> dict[str, Any]:
    """Return one row as values; `where` names file and row for the message."""
    found = {}
    for name, (kind, missing_allowed) in columns(table).items():
        try:
            found[name] = read(cells[name], kind, missing_allowed)
        except ValueError as error:
            raise BadFile(f"{where}, column {name}: not {error}; nothing was imported") from error
    return found


def _type(annotation: Any) -> tuple[type, bool]:
    """Return the type of a column and whether it can be missing, from its annotation."""
    parts = (
        get_args(annotation)
        if get_origin(annotation) in (types.UnionType, Union)
        else (annotation,)
    )
    kind = next(one for one in parts if one is not types.NoneType)
    return get_origin(kind) or kind, types.NoneType in parts


def _one(cell: str, known: Mapping[str, Any], what: str) -> Any:
    if cell not in known:
        raise ValueError(what)
    return known[cell]


def _whole(cell: str) -> int:
    bare = cell.removeprefix("-")
    if not (bare.isascii() and bare.isdecimal() and len(bare) < 20 and int(bare) < WHOLE):
        raise ValueError("a whole number")
    return int(cell)


def _number(cell: str) -> float:
    try:
        found = float(cell)
    except ValueError as error:
        raise ValueError("a number") from error
    if not math.isfinite(found):
        raise ValueError("a finite number")
    return found


def _time(cell: str) -> datetime:
    try:
        found = datetime.fromisoformat(cell)
    except ValueError as error:
        raise ValueError("a time such as 2026-05-31T14:00:00+00:00") from error
    if found.tzinfo is None:
        raise ValueError("a time with its zone, such as 2026-05-31T14:00:00+00:00")
    try:
        return found.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("a time from year 1 to 9999") from error


def _json(cell: str, kind: type) -> Any:
    try:
        found = json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise ValueError("JSON") from error
    if not isinstance(found, kind):
        raise ValueError("a JSON " + ("object" if kind is dict else "list"))
    return found
