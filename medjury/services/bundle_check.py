"""A bundle of a validated rubric, held against itself and against a study."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from data.errors import BadFile
from data.rubric import Rubric
from jury.exports.bundle import FORMAT, FORMAT_VERSION, JSON, derived, digest, reasons, told
from medjury.services.rubric_export import Resampling, validation

MOST_BYTES = 20_000_000
MOST_REPS = 100_000
TOLERANCE = 1e-9
PARTS = {"rubric": dict, "panel": dict, "validation": dict, "sha256": str}
PASSING = {"made", "version", "juries_tried", "checked_with"}  # of the export's day, not the data
STATUS = ("validated", "not validated")
UNFIT = (KeyError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)
Body = Mapping[str, Any]


def compared_bundle(engine: Engine, path: Path) -> tuple[dict[str, Any], str]:
    """Return what `study verify BUNDLE --json` has, and why the ledger was not written, or "".

    `path` is a bundle's folder or its JSON file.

    Raises
    ------
    BadFile
        As `read_bundle`, or if its parts are not of a bundle's form.
    """
    file = path / JSON if path.is_dir() else path
    body = read_bundle(file)
    try:
        against, unnoted = _against(engine, body)
        found = [_printable(finding) for finding in (*_altered(body, file), *against)]
    except UNFIT as error:
        raise _bad(file, "its parts are not of a bundle's form") from error
    return {"bundle": str(file), "status": body["validation"]["status"], "findings": found}, unnoted


def _printable(line: str) -> str:
    """Return a line with nothing in it that a terminal would act on: a bundle's keys may be any."""
    return "".join(sign if sign.isprintable() else "?" for sign in line)


def read_bundle(file: Path) -> dict[str, Any]:
    """Return a bundle's JSON; it is not yet compared with anything.

    Raises
    ------
    BadFile
        If it cannot be read, is cut short, is no bundle, or one of another version.
    """
    body = _bundle_json(file)
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise _bad(file, f"no bundle of medjury ({JSON} has format {FORMAT!r})")
    if body.get("format_version") != FORMAT_VERSION:
        raise BadFile(
            f"bundle {file}: of another version than this medjury reads ({FORMAT_VERSION}); verify "
            "it with the medjury that wrote it, or export it anew"
        )
    for name, kind in PARTS.items():
        if not isinstance(body.get(name), kind):
            raise _bad(file, f"{name} is missing or of another type")
    if body["validation"].get("status") not in STATUS:
        raise _bad(file, f"its status is neither {STATUS[0]} nor {STATUS[1]}")
    resampling = [body["validation"].get(name) for name in ("reps", "seed")]
    if (
        not all(type(number) is int and number >= 0 for number in resampling)
        or not 1 <= resampling[0] <= MOST_REPS
    ):
        raise _bad(file, f"reps must be a whole number from 1 to {MOST_REPS}, seed 0 or more")
    return body


def _bundle_json(file: Path) -> object:
    try:
        if file.exists() and not file.is_file():
            raise _bad(file, "no file")
        if file.stat().st_size > MOST_BYTES:
            raise _bad(file, f"over {MOST_BYTES // 1_000_000} MB, more than any bundle has")
        return json.loads(file.read_text("utf-8"), parse_constant=_no_number)
    except OSError as error:
        raise BadFile(
            f"bundle {file}: {error.strerror}; name a bundle's folder or {JSON}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise _bad(file, "not JSON, or cut short") from error


def _no_number(name: str) -> float:
    raise ValueError(name)


def _bad(file: Path, why: str) -> BadFile:
    return BadFile(
        f"bundle {file}: {why}; nothing was compared: export it anew with "
        "`medjury share rubric NAME --to medjury --out FOLDER`"
    )


def _altered(body: Body, file: Path) -> Iterator[str]:
    """Yield what in the bundle does not go with the rest of it."""
    if digest({key: value for key, value in body.items() if key != "sha256"}) != body["sha256"]:
        yield f"{file.name}: changed after it was written"
    rubric = Rubric(**body["rubric"])
    for name, value in told(rubric, body["panel"]["jurors"]).items():
        if body.get(name) != value:
            yield f"{name}: not that of the bundle's own rubric"
    record = body["validation"]
    if record["reasons"] != reasons(record) or (record["status"] == "validated") != (
        not reasons(record)
    ):
        yield "status: does not follow from the bundle's own figures"
    for name, text in derived(body).items():
        beside = file.parent / name
        if beside.is_file() and beside.read_bytes() != text.encode():
            yield f"{name}: not as exported"


def _against(engine: Engine, body: Body) -> tuple[list[str], str]:
    """Return what the study says otherwise; figures are computed anew."""
    record = body["validation"]
    jurors = [dict(juror) for juror in body["panel"]["jurors"]]
    seats = [{key: value for key, value in juror.items() if key != "family"} for juror in jurors]
    resampling = Resampling(record["reps"], record["seed"])
    validated = validation(engine, Rubric(**body["rubric"]), seats, resampling)
    old, now = (
        {key: value for key, value in figures.items() if key not in PASSING}
        for figures in (record, validated.record)
    )
    found = [
        f"{where}: the bundle says {says}, the study {is_now}"
        for where, says, is_now in differences(old, now)
    ]
    return found, validated.unnoted


def differences(says: Any, now: Any, where: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield each place where two JSON values differ, with both; numbers up to rounding."""
    if isinstance(says, dict) and isinstance(now, dict):
        for key in {**says, **now}:
            yield from differences(says.get(key), now.get(key), f"{where}.{key}".strip("."))
    elif isinstance(says, list) and isinstance(now, list) and len(says) == len(now):
        for index, pair in enumerate(zip(says, now, strict=True)):
            yield from differences(*pair, f"{where}[{_row_named(pair[1], index)}]")
    elif not _same(says, now):
        yield where, _shown(says), _shown(now)


def _row_named(row: Any, index: int) -> str:
    if isinstance(row, dict) and "scorer" in row:
        return f"{row['criterion'] or 'composite'} {row['scorer']}"
    return str(index)


def _same(says: Any, now: Any) -> bool:
    numbers = [type(value) in (int, float) for value in (says, now)]
    if all(numbers):
        return bool(abs(says - now) <= TOLERANCE * max(1.0, abs(now)))
    return type(says) is type(now) and bool(says == now)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
