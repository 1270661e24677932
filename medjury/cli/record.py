"""`medjury verify`, `lock`, `unblind`, `settings`: the record of a study, and what is decided in it.

Also how commands write CSV: no text in a cell runs as a formula.
"""

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from data.address import refuse_as_file
from data.errors import BadFile, BadInput
from data.formula import guarded, guarded_name
from data.person import OPERATOR
from data.queries.record import Verified, locked_since
from data.queries.record import verify as verify_record
from data.queries.settings import settings as stored_settings
from data.queries.validation import PREFIX, needed
from data.store.record import lock as lock_study
from data.store.record import reopen
from data.store.record import unblind as lift_blind
from data.store.settings import set_setting
from data.store.validity import state_valid
from data.whole_files import whole_file
from medjury.cli.bundle_verify import verify_bundle
from medjury.cli.options import Db, Json, study_of
from medjury.cli.output import say, show
from medjury.cli.places import write_json, writes_to

FINDINGS = 1
AUTHORS = ("response_id", "model")
KEEP = (
    "keep this hash elsewhere: `medjury verify --head HASH` proves later that nothing was cut off"
)
Who = Annotated[str, typer.Option(metavar="NAME", help="Who does it; stays in the record.")]
Reason = Annotated[str, typer.Option(help="Why; stays in the record and in every later report.")]
FREE_TEXT = {"comment", "remark", "text", "note", "actor"}


def verify(
    context: typer.Context,
    bundle: Annotated[
        Path | None, typer.Argument(metavar="BUNDLE", help="Of `rubric export --to medjury`.")
    ] = None,
    head: Annotated[
        str | None, typer.Option(metavar="HASH", help="A head that was kept elsewhere.")
    ] = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Check that nothing was changed behind the record's back, or in a bundle; exit 1 if so."""
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
    }
    write_json(body, json_to)
    if found.findings:
        raise typer.Exit(FINDINGS)


def lock(
    context: typer.Context,
    who: Who = "coordinator",
    again: Annotated[bool, typer.Option("--reopen", help="Open a locked study again.")] = False,
    reason: Reason = "",
    db: Db = None,
) -> None:
    """Freeze the study: nobody rates, imports or assigns until it is reopened with a reason."""
    engine = study_of(context, db)
    if again:
        reopen(engine, who, reason)
        say("reopened; the reason stays in the record and in every later report")
        return
    if reason:
        raise typer.BadParameter("belongs to --reopen", param_hint="--reason")
    head = lock_study(engine, who)
    say(f"locked: {locked_since(engine)}")
    say(f"head {head}")
    say(KEEP)


def unblind(
    context: typer.Context,
    reason: Reason = "",
    who: Who = "coordinator",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Instead of standard output.", callback=writes_to),
    ] = None,
    db: Db = None,
) -> None:
    """Say who wrote which response; recorded, and told in every later report."""
    engine = study_of(context, db)
    if out is None:
        rows = cells(AUTHORS, lift_blind(engine, who, reason))
        csv.writer(sys.stdout, lineterminator="\n").writerows([AUTHORS, *rows])
        return
    if out.exists():
        raise BadFile(f"--out {out}: is there already; name another file")
    written = write_csv(out, AUTHORS, cells(AUTHORS, lift_blind(engine, who, reason)))
    say(f"{written} responses with their authors in {out}; recorded")


def settings(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="NAME")] = None,
    value: Annotated[str | None, typer.Argument(metavar="VALUE")] = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Show what the study decides for all who work on it, or set one thing of it."""
    engine = study_of(context, db)
    if name is not None:
        if value is None:
            raise BadInput(f"settings {name}: give the value too, or no name to see them all")
        if name.startswith(PREFIX):
            _state_validity(engine, name.removeprefix(PREFIX), value)
        else:
            set_setting(engine, name, value)
    stated = asdict(needed(engine))
    kept = stored_settings(engine).as_text() | {
        PREFIX + one: f"{least:g}" for one, least in stated.items()
    }
    show("Settings", ["name", "value"], [[*pair] for pair in kept.items()], json_to)
    write_json(kept, json_to)


def _state_validity(engine: Engine, name: str, value: str) -> None:
    """State one part of what this study asks for before a jury counts as validated."""
    stated = needed(engine)
    if name not in asdict(stated):
        known = ", ".join(PREFIX + one for one in asdict(stated))
        raise BadInput(f"settings {PREFIX}{name}: unknown; there are {known}")
    try:
        wanted = replace(stated, **{name: float(value)})
    except ValueError:
        raise BadInput(f"settings {PREFIX}{name} {value!r}: must be a number") from None
    state_valid(OPERATOR, engine, wanted)


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """Write rows to a new CSV file in UTF-8, whole or not at all; return how many there were."""
    written = 0
    try:
        with whole_file(path) as part, part.open("x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            for row in rows:
                writer.writerow(row)
                written += 1
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error
    return written


def _say_verified(found: Verified, json_to: Path | None) -> None:
    rows = ", ".join(f"{number} {table}s" for table, number in found.rows.items())
    say(f"{found.events} events; they vouch for {rows}", json_to)
    say(f"head {found.head}", json_to)
    say(KEEP, json_to)
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
