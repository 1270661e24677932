"""`medjury study verify`, `lock`, `unblind`, `settings`: the record of a study, and what is decided in it.

Also how commands write CSV: no text in a cell runs as a formula.
"""

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from data.database import refuse_as_file
from data.errors import BadFile, BadInput
from data.files import whole_file
from data.queries.record import Verified, locked_since, present_head
from data.queries.record import verify as verify_record
from data.queries.study import settings as stored_settings
from data.record import HEAD_ENDING, Head
from data.rubric import Rubric
from data.safe_text import guarded, guarded_name
from data.store.record import lock as lock_study
from data.store.record import reopen
from data.store.record import unblind as lift_blind
from data.store.settings import set_setting
from jury.exports.bundle import FORMAT, FORMAT_VERSION, JSON, derived, digest, reasons, told
from medjury.cli.options import Db, Json, study_of
from medjury.cli.output import hint, say, say_unnoted, show
from medjury.cli.places import STANDARD_OUTPUT, check_json, write_json, writes_to
from medjury.services.rubric_validation import Resampling, validation

FINDINGS = 1
AUTHORS = ("response_id", "model")
FOR_SPREADSHEETS = "utf-8-sig"
KEEP = "keep this hash elsewhere: `medjury study verify --head HASH` proves later that nothing was cut off"
Who = Annotated[str, typer.Option(metavar="NAME", help="Who does it; kept in the record.")]
Reason = Annotated[str, typer.Option(help="Why; kept in the record and in every later report.")]
SAID = ("rating", "response", "subgroup", "remark", "span", "submission")
SINCE = (
    "raters, accounts, assignments, settings, rubrics, calls and the texts apart from their "
    "authors were taken as they were found then; what was changed before, nothing tells"
)
FREE_TEXT = {"comment", "remark", "text", "note", "actor", "title"}
DIFFERS = 1
MOST_BYTES = 20_000_000
MOST_REPS = 100_000
TOLERANCE = 1e-9
PARTS = {"rubric": dict, "panel": dict, "validation": dict, "sha256": str}
PASSING = {"made", "version", "juries_tried"}  # of the day of the export, not of the data
STATUS = ("validated", "not validated")
UNFIT = (KeyError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)
Body = Mapping[str, Any]


def verify(
    context: typer.Context,
    bundle: Annotated[
        Path | None,
        typer.Argument(
            metavar="BUNDLE", help="Folder or file written by `share rubric --to medjury`."
        ),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="HASH|FILE", help="Hash, or its file, that was kept outside the study."
        ),
    ] = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Check the study against its audit record, or a bundle against the study; exit 1 on findings."""
    if bundle is not None:
        refuse_as_file("verify", bundle)
        if head is not None:
            raise typer.BadParameter("does not go with a BUNDLE", param_hint="--head")
        verify_bundle(study_of(context, db), bundle, json_to)
        return
    found = verify_record(study_of(context, db), head)
    _say_verified(found, json_to)
    body = {
        "events": found.events,
        "head": found.head,
        "rows": dict(found.rows),
        "findings": list(found.findings),
        "sealed_since": None if found.since is None else found.since.isoformat(),
        "authors_withheld": found.authors_withheld,
    }
    write_json(body, json_to)
    if found.findings:
        raise typer.Exit(FINDINGS)


def lock(
    context: typer.Context,
    who: Who = "coordinator",
    again: Annotated[bool, typer.Option("--reopen", help="Open a locked study again.")] = False,
    reason: Reason = "",
    head_to: Annotated[
        Path | None,
        typer.Option(
            "--head",
            metavar="FILE",
            help="File for the head of the record, to be signed; by default beside the study.",
            callback=writes_to,
        ),
    ] = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Freeze the study: no ratings, imports or assignments until it is reopened."""
    engine = study_of(context, db)
    if head_to is not None and (again or head_to.exists()):
        why = "is there already; name another file" if not again else "does not go with --reopen"
        raise BadInput(f"--head {head_to}: {why}")
    if again:
        reopen(engine, who, reason)
        say("reopened; the reason stays in the record and in every later report")
        write_json({"locked": None, "head": present_head(engine).sha256, "file": None}, json_to)
        return
    if reason:
        raise typer.BadParameter("belongs to --reopen", param_hint="--reason")
    lock_study(engine, who)
    head = present_head(engine)
    say(f"locked: {locked_since(engine)}")
    say(f"head {head.sha256}")
    to = head_to or head_beside(engine, head)
    written = to is not None and write_head(to, head)
    if written:
        checks = f"`medjury study verify --head {to}` checks it"
        say(f"{to}: sign this file and keep it elsewhere; {checks}")
    hint(KEEP)
    body = {"locked": locked_since(engine), "head": head.sha256}
    write_json(body | {"file": str(to) if written else None}, json_to)


def head_beside(engine: Engine, head: Head) -> Path | None:
    """Return where the head of a study that is a file goes by itself; None on a server."""
    if engine.dialect.name != "sqlite" or not engine.url.database:
        return None
    study = Path(engine.url.database)
    return study.with_name(f"{study.stem}-{head.sha256[:12]}{HEAD_ENDING}")


def write_head(path: Path, head: Head) -> bool:
    """Write a head's file; what cannot be written is told, since the hash is told anyway."""
    try:
        path.write_text(head.to_text(), "ascii")
    except OSError as error:
        typer.echo(f"WARNING: {path}: {error.strerror}; no file of the head was written", err=True)
        return False
    return True


def unblind(
    context: typer.Context,
    reason: Reason = "",
    who: Who = "coordinator",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="File to write; by default standard output.",
            callback=writes_to,
        ),
    ] = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Print who wrote which response; recorded, and stated in every later report."""
    engine = study_of(context, db)
    if out is not None and out.exists():
        raise BadFile(f"--out {out}: is there already; name another file")
    wrote = lift_blind(engine, who, reason)
    if out is not None:
        written = write_csv(out, AUTHORS, cells(AUTHORS, wrote))
        say(f"{written} responses with their authors in {out}; recorded")
    elif json_to != STANDARD_OUTPUT:
        rows = cells(AUTHORS, wrote)
        csv.writer(sys.stdout, lineterminator="\n").writerows([AUTHORS, *rows])
    write_json({"authors": [dict(zip(AUTHORS, row, strict=True)) for row in wrote]}, json_to)


def settings(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Setting to change; without it, show all.")
    ] = None,
    value: Annotated[str | None, typer.Argument(metavar="VALUE", help="Its new value.")] = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Show the settings of the study, or change one."""
    engine = study_of(context, db)
    if name is not None:
        if value is None:
            raise BadInput(f"settings {name}: give the value too, or no name to see them all")
        set_setting(engine, name, value)
    kept = stored_settings(engine).as_text()
    show("Settings", ["name", "value"], [[*pair] for pair in kept.items()], json_to)
    write_json(kept, json_to)


def write_csv(
    path: Path,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    encoding: str = "utf-8",
) -> int:
    """Write rows to a new CSV file, whole or not at all; return how many there were.

    With the mark of `FOR_SPREADSHEETS` Excel knows that it is UTF-8, not Windows-1252.
    """
    written = 0
    try:
        with whole_file(path) as part, part.open("x", encoding=encoding, newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            for row in rows:
                writer.writerow(row)
                written += 1
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error
    return written


def _say_verified(found: Verified, json_to: Path | None) -> None:
    named = {table: found.rows.get(table, 0) for table in SAID}
    rest = sum(found.rows.values()) - sum(named.values())
    rows = ", ".join(f"{number} {table}s" for table, number in named.items())
    say(f"{found.events} events; they vouch for {rows}, {rest} other rows", json_to)
    if found.since is not None:
        since = f"{found.since:%Y-%m-%d %H:%M} UTC"
        say(f"sealed since {since}: {SINCE}", json_to)
    if found.authors_withheld:
        say("its authors stayed behind: nothing is said of them", json_to)
    say(f"head {found.head}", json_to)
    hint(KEEP, json_to)
    for finding in found.findings:
        say(f"FINDING {finding}", json_to)
    say(f"{len(found.findings)} findings" if found.findings else "whole: no findings", json_to)


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
    body = _bundle_json(place)
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


def _bundle_json(place: Path) -> object:
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
        "`medjury share rubric NAME --to medjury --out FOLDER`"
    )


def _altered(body: Body, place: Path) -> Iterator[str]:
    """Yield what in the bundle does not go with the rest of it."""
    if digest({key: value for key, value in body.items() if key != "sha256"}) != body["sha256"]:
        yield f"{place.name}: changed after it was written"
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
            yield from differences(*pair, f"{where}[{_row_named(pair[1], place)}]")
    elif not _same(says, found):
        yield where, _shown(says), _shown(found)


def _printable(line: str) -> str:
    """Return a line with nothing in it that a terminal would act on: a bundle's keys may be any."""
    return "".join(sign if sign.isprintable() else "?" for sign in line)


def _row_named(row: Any, place: int) -> str:
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
