"""`medjury study verify`, `lock`, `unblind`: the record of a study, and a bundle checked against it."""

import csv
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from data.csv_files import cells, write_csv
from data.database import refuse_as_file
from data.errors import BadFile, BadInput
from data.record import HEAD_ENDING, Head
from data.rubric import Rubric
from data.study.settings import lock as lock_study
from data.study.settings import reopen
from data.study.settings import unblind as lift_blind
from data.study.verify import Verified, locked_since, present_head
from data.study.verify import verify as verify_record
from jury.exports.bundle import FORMAT, FORMAT_VERSION, JSON, derived, digest, reasons, told
from medjury.cli.files import STANDARD_OUTPUT, write_json, writes_to
from medjury.cli.options import Db, Json, Reason, Who, study_of
from medjury.cli.output import hint, say, say_unnoted
from medjury.services.rubric_export import Resampling, validation

FINDINGS = 1
KEEP = "keep this hash elsewhere: `medjury study verify --head HASH` proves later that nothing was cut off"
WHO_WROTE = ("response_id", "model")
SAID = ("rating", "response", "subgroup", "remark", "span", "submission")
DIFFERS = 1
MOST_BYTES = 20_000_000
MOST_REPS = 100_000
TOLERANCE = 1e-9
PARTS = {"rubric": dict, "panel": dict, "validation": dict, "sha256": str}
PASSING = {
    "made",
    "version",
    "juries_tried",
    "checked_with",
}  # of the day of the export, not of the data
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
    verified = verify_record(study_of(context, db), head)
    _say_verified(verified, json_to)
    body = {
        "events": verified.events,
        "head": verified.head,
        "rows": dict(verified.rows),
        "findings": list(verified.findings),
        "authors_withheld": verified.authors_withheld,
        "since": None if verified.since is None else dict(verified.since),
    }
    write_json(body, json_to)
    if verified.findings:
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
        written = write_csv(out, WHO_WROTE, cells(WHO_WROTE, wrote))
        say(f"{written} responses with their authors in {out}; recorded")
    elif json_to != STANDARD_OUTPUT:
        rows = cells(WHO_WROTE, wrote)
        csv.writer(sys.stdout, lineterminator="\n").writerows([WHO_WROTE, *rows])
    write_json({"authors": [dict(zip(WHO_WROTE, row, strict=True)) for row in wrote]}, json_to)


def _say_verified(verified: Verified, json_to: Path | None) -> None:
    named = {table: verified.rows.get(table, 0) for table in SAID}
    others = sum(verified.rows.values()) - sum(named.values())
    rows = ", ".join(f"{number} {table}s" for table, number in named.items())
    say(f"{verified.events} events; they vouch for {rows}, {others} other rows", json_to)
    if verified.authors_withheld:
        say("its authors stayed behind: nothing is said of them", json_to)
    say(f"head {verified.head}", json_to)
    if verified.since is None:
        hint(KEEP, json_to)
    else:
        came = (f"{number} {action}" for action, number in verified.since.items())
        say(f"since the head that was kept: {', '.join(came) or 'nothing'}", json_to)
    for finding in verified.findings:
        say(f"FINDING {finding}", json_to)
    say(
        f"{len(verified.findings)} findings" if verified.findings else "whole: no findings", json_to
    )


def verify_bundle(engine: Engine, path: Path, json_to: Path | None) -> None:
    """Compare a bundle with the study, say what differs, and end with 1 if anything does."""
    file = path / JSON if path.is_dir() else path
    body = read_bundle(file)
    try:
        differing = [
            _printable(finding) for finding in (*_altered(body, file), *_against(engine, body))
        ]
    except UNFIT as error:
        raise _bad(file, "its parts are not of a bundle's form") from error
    record = body["validation"]
    say(f"bundle {file}: {record['status']}", json_to)
    for difference in differing:
        say(f"DIFFERS {difference}", json_to)
    say(
        f"{len(differing)} differences" if differing else "the study says the same",
        json_to,
    )
    write_json({"bundle": str(file), "status": record["status"], "findings": differing}, json_to)
    if differing:
        raise typer.Exit(DIFFERS)


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


def _against(engine: Engine, body: Body) -> Iterator[str]:
    """Yield what the study says otherwise; figures are computed anew."""
    record = body["validation"]
    jurors = [dict(juror) for juror in body["panel"]["jurors"]]
    seats = [{key: value for key, value in juror.items() if key != "family"} for juror in jurors]
    resampling = Resampling(record["reps"], record["seed"])
    validated = validation(engine, Rubric(**body["rubric"]), seats, resampling)
    say_unnoted(validated.unnoted)
    now = validated.record
    lasting = {key: value for key, value in record.items() if key not in PASSING}
    for where, says, is_now in differences(
        lasting, {key: now.get(key) for key in now if key not in PASSING}
    ):
        yield f"{where}: the bundle says {says}, the study {is_now}"


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


def _printable(line: str) -> str:
    """Return a line with nothing in it that a terminal would act on: a bundle's keys may be any."""
    return "".join(sign if sign.isprintable() else "?" for sign in line)


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
