"""`medjury verify BUNDLE`: whether a bundle says what the study says."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from sqlalchemy import Engine

from data.errors import BadFile
from data.rubric import Rubric
from jury.exports.bundle import FORMAT, FORMAT_VERSION, JSON, derived, digest, reasons, told
from medjury.cli.output import say, say_unnoted
from medjury.cli.places import check_json, write_json
from medjury.services.rubric_validation import Resampling, validation

DIFFERS = 1
MOST_BYTES = 20_000_000
MOST_REPS = 100_000
TOLERANCE = 1e-9
PARTS = {"rubric": dict, "panel": dict, "validation": dict, "sha256": str}
PASSING = {"made", "version", "juries_tried"}  # of the day of the export, not of the data
STATUS = ("validated", "not validated")
UNFIT = (KeyError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)
Body = Mapping[str, Any]


def verify_bundle(engine: Engine, path: Path, json_to: Path | None) -> None:
    """Compare a bundle with the study, say what differs, and end with 1 if anything does."""
    check_json(json_to)
    place = path / JSON if path.is_dir() else path
    body = read_bundle(place)
    try:
        found = [_printable(one) for one in (*_altered(body, place), *_against(engine, body))]
    except UNFIT as error:
        raise _bad(place, "its parts are not of a bundle's form") from error
    record = body["validation"]
    say(f"bundle {place}: {record['status']}", json_to)
    for one in found:
        say(f"DIFFERS {one}", json_to)
    say(f"{len(found)} differences" if found else "the study says the same", json_to)
    write_json({"bundle": str(place), "status": record["status"], "findings": found}, json_to)
    if found:
        raise typer.Exit(DIFFERS)


def read_bundle(place: Path) -> dict[str, Any]:
    """Return a bundle's JSON; it is not yet compared with anything.

    Raises
    ------
    BadFile
        If it cannot be read, is cut short, is no bundle, or one of another version.
    """
    body = _json(place)
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise _bad(place, f"no bundle of medjury ({JSON} has format {FORMAT!r})")
    if body.get("format_version") != FORMAT_VERSION:
        raise BadFile(
            f"bundle {place}: of another version than this medjury reads ({FORMAT_VERSION}); verify "
            "it with the medjury that wrote it, or export it anew"
        )
    for name, kind in PARTS.items():
        if not isinstance(body.get(name), kind):
            raise _bad(place, f"{name} is missing or of another type")
    if body["validation"].get("status") not in STATUS:
        raise _bad(place, f"its status is neither {STATUS[0]} nor {STATUS[1]}")
    asked = [body["validation"].get(name) for name in ("reps", "seed")]
    if not all(type(one) is int and one >= 0 for one in asked) or not 1 <= asked[0] <= MOST_REPS:
        raise _bad(place, f"reps must be a whole number from 1 to {MOST_REPS}, seed 0 or more")
    return body


def _json(place: Path) -> object:
    try:
        if place.exists() and not place.is_file():
            raise _bad(place, "no file")
        if place.stat().st_size > MOST_BYTES:
            raise _bad(place, f"over {MOST_BYTES // 1_000_000} MB, more than any bundle has")
        return json.loads(place.read_text("utf-8"), parse_constant=_no_number)
    except OSError as error:
        raise BadFile(
            f"bundle {place}: {error.strerror}; name a bundle's folder or {JSON}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise _bad(place, "not JSON, or cut short") from error


def _no_number(name: str) -> float:
    raise ValueError(name)


def _bad(place: Path, why: str) -> BadFile:
    return BadFile(
        f"bundle {place}: {why}; nothing was compared: export it anew with "
        "`medjury rubric export NAME --to medjury --out FOLDER`"
    )


def _altered(body: Body, place: Path) -> Iterator[str]:
    """Yield what in the bundle does not go with the rest of it."""
    if digest({key: value for key, value in body.items() if key != "sha256"}) != body["sha256"]:
        yield f"{place.name}: changed after it was written"
    rubric = Rubric(**body["rubric"])
    for name, value in told(rubric).items():
        if body.get(name) != value:
            yield f"{name}: not that of the bundle's own rubric"
    record = body["validation"]
    if record["reasons"] != reasons(record) or (record["status"] == "validated") != (
        not reasons(record)
    ):
        yield "status: does not follow from the bundle's own figures"
    for name, text in derived(body).items():
        beside = place.parent / name
        if beside.is_file() and beside.read_bytes() != text.encode():
            yield f"{name}: not as exported"


def _against(engine: Engine, body: Body) -> Iterator[str]:
    """Yield what the study says otherwise; figures are computed anew."""
    record = body["validation"]
    jurors = [dict(one) for one in body["panel"]["jurors"]]
    seats = [{key: value for key, value in one.items() if key != "family"} for one in jurors]
    asked = Resampling(record["reps"], record["seed"])
    found = validation(engine, Rubric(**body["rubric"]), seats, asked)
    say_unnoted(found.unnoted)
    now = found.record
    kept = {key: value for key, value in record.items() if key not in PASSING}
    for where, says, is_now in differences(
        kept, {key: now.get(key) for key in now if key not in PASSING}
    ):
        yield f"{where}: the bundle says {says}, the study {is_now}"


def differences(says: Any, found: Any, where: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield each place where two JSON values differ, with both; numbers up to rounding."""
    if isinstance(says, dict) and isinstance(found, dict):
        for key in {**says, **found}:
            yield from differences(says.get(key), found.get(key), f"{where}.{key}".strip("."))
    elif isinstance(says, list) and isinstance(found, list) and len(says) == len(found):
        for place, pair in enumerate(zip(says, found, strict=True)):
            yield from differences(*pair, f"{where}[{_named(pair[1], place)}]")
    elif not _same(says, found):
        yield where, _shown(says), _shown(found)


def _printable(line: str) -> str:
    """Return a line with nothing in it that a terminal would act on: a bundle's keys may be any."""
    return "".join(sign if sign.isprintable() else "?" for sign in line)


def _named(row: Any, place: int) -> str:
    if isinstance(row, dict) and "scorer" in row:
        return f"{row['criterion'] or 'composite'} {row['scorer']}"
    return str(place)


def _same(says: Any, found: Any) -> bool:
    numbers = [type(one) in (int, float) for one in (says, found)]
    if all(numbers):
        return bool(abs(says - found) <= TOLERANCE * max(1.0, abs(found)))
    return type(says) is type(found) and bool(says == found)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
