"""`medjury study` verify, lock, unblind and backup: the record of a study, and copies of it."""

import csv
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from data.database import open_study, reading, refuse_as_file, shown
from data.errors import BadFile, BadInput
from data.files import cells, write_csv
from data.record import HEAD_ENDING, Head
from data.study.copies import counts
from data.study.moving import Copied, back_up, move_study
from data.study.settings import lock as lock_study
from data.study.settings import reopen
from data.study.settings import unblind as lift_blind
from data.study.verify import Verified, locked_since, present_head
from data.study.verify import verify as verify_record
from medjury.cli.files import STANDARD_OUTPUT, check_place, writes_new, writes_to
from medjury.cli.options import Reason, Study, Who, worked_on
from medjury.cli.output import counted, emit, hint, progress, say, show, warn

FINDINGS = 1
KEEP = "keep this hash elsewhere: `medjury study verify --head HASH` proves later that nothing was cut off"
WHO_WROTE = ("response_id", "model")
SAID = ("rating", "response", "subgroup", "remark", "span", "submission")
BESIDE = ("", "-wal", "-shm")


def verify(
    study: Study,
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
) -> None:
    """Check the study against its audit record, or a bundle against the study; exit 1 on findings.

    Example:
    medjury study verify
    """
    if bundle is not None:
        refuse_as_file("verify", bundle)
        if head is not None:
            raise typer.BadParameter("does not go with a BUNDLE", param_hint="--head")
        _verify_bundle(study, bundle)
        return
    verified = verify_record(study.open(), head)
    _say_verified(verified)
    body = {
        "events": verified.events,
        "head": verified.head,
        "rows": dict(verified.rows),
        "findings": list(verified.findings),
        "authors_withheld": verified.authors_withheld,
        "since": None if verified.since is None else dict(verified.since),
    }
    study.write(body)
    if verified.findings:
        raise typer.Exit(FINDINGS)


def _verify_bundle(study: Study, path: Path) -> None:
    """Compare a bundle with the study, say what differs, and end with 1 if anything does."""
    from medjury.services.bundle_check import compared_bundle

    compared, unnoted = compared_bundle(study.open(), path)
    warn(unnoted)
    found = compared["findings"]
    say(f"bundle {compared['bundle']}: {compared['status']}")
    emit(*(f"DIFFERS {difference}" for difference in found))
    say(f"{len(found)} differences" if found else "the study says the same")
    study.write(compared)
    if found:
        raise typer.Exit(FINDINGS)


def _say_verified(verified: Verified) -> None:
    named = {table: verified.rows.get(table, 0) for table in SAID}
    others = sum(verified.rows.values()) - sum(named.values())
    rows = ", ".join(f"{number} {table}s" for table, number in named.items())
    say(f"{verified.events} events; they vouch for {rows}, {others} other rows")
    if verified.authors_withheld:
        say("its authors stayed behind: nothing is said of them")
    say(f"head {verified.head}")
    if verified.since is None:
        hint(KEEP)
    else:
        came = (f"{number} {action}" for action, number in verified.since.items())
        say(f"since the head that was kept: {', '.join(came) or 'nothing'}")
    emit(*(f"FINDING {finding}" for finding in verified.findings))
    say(f"{len(verified.findings)} findings" if verified.findings else "whole: no findings")


def lock(
    study: Study,
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
) -> None:
    """Freeze the study: no ratings, imports or assignments until it is reopened.

    Example:
    medjury study lock --who dr_lee
    """
    engine = study.open()
    if head_to is not None and (again or head_to.exists()):
        why = "is there already; name another file" if not again else "does not go with --reopen"
        raise BadInput(f"--head {head_to}: {why}")
    if again:
        reopen(engine, who, reason)
        say("reopened; the reason stays in the record and in every later report")
        study.write({"locked": None, "head": present_head(engine).sha256, "file": None})
        return
    if reason:
        raise typer.BadParameter("belongs to --reopen", param_hint="--reason")
    lock_study(engine, who)
    head = present_head(engine)
    emit(f"locked: {locked_since(engine)}", f"head {head.sha256}")
    to = head_to or _beside(engine, head)
    written = to is not None and write_head(to, head)
    if written:
        checks = f"`medjury study verify --head {to}` checks it"
        say(f"{to}: sign this file and keep it elsewhere; {checks}")
    hint(KEEP)
    body = {"locked": locked_since(engine), "head": head.sha256}
    study.write(body | {"file": str(to) if written else None})


def _beside(engine: Engine, head: Head) -> Path | None:
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
    study: Study,
    reason: Reason = "",
    who: Who = "coordinator",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="New file to write; by default standard output.",
            callback=writes_new,
        ),
    ] = None,
) -> None:
    """Print who wrote which response; recorded, and stated in every later report.

    Example:
    medjury study unblind --reason "rating has ended" --out authors.csv
    """
    wrote = lift_blind(study.open(), who, reason)
    if out is not None:
        written = write_csv(out, WHO_WROTE, cells(WHO_WROTE, wrote))
        say(f"{written} responses with their authors in {out}; recorded")
    elif study.json_to != STANDARD_OUTPUT:
        rows = cells(WHO_WROTE, wrote)
        csv.writer(sys.stdout, lineterminator="\n").writerows([WHO_WROTE, *rows])
    study.write({"authors": [dict(zip(WHO_WROTE, row, strict=True)) for row in wrote]})


def backup(
    study: Study,
    to: Annotated[
        str, typer.Argument(metavar="TO", help="A new file, or the URL of an empty database.")
    ],
) -> None:
    """Write the whole study to a new SQLite file, or into an empty database, and check it.

    Example:
    medjury study backup backup.db
    """
    if not to.strip():
        raise BadInput("backup: TO is empty; give a file or a URL")
    if "://" in to:
        _into_database(study, to)
        return
    file = Path(to)
    if os.path.lexists(file) and not file.is_dir():
        raise BadFile(f"backup {file}: is there already; name another file")
    check_place("backup", file)
    copied = back_up(study.open(), file)
    after = (
        f"to go back to it: --db sqlite:///{file}. It holds all but the key of sessions, authors "
        "too: guard it like the study"
    )
    _end_copy(study, f"Backed up in {file}", copied, copied.findings, after)


def _into_database(study: Study, url: str) -> None:
    """Copy a study into an empty database; it stays as it is."""
    source = study.open()
    with _removed_on_failure(url) as target:
        copied = _moved(source, target)
    findings = verify_record(target).findings
    for engine in (source, target):
        engine.dispose()  # a SQLite file is left without others beside it
    worked_on[:] = [shown(target.url)]
    after = (
        "every row was read again and compared; stop what still serves the old study, and name "
        "the new one from now on (--db or MEDJURY_DB)"
    )
    _end_copy(study, f"Copied into {shown(target.url)}", copied, findings, after)


def _end_copy(
    study: Study, title: str, copied: Copied, findings: tuple[str, ...], after: str
) -> None:
    """Say what a copy holds and what its record has to say; exit 1 if that has findings."""
    filled = [(table, number) for table, number in copied.rows.items() if number]
    show(title, ["table", "rows"], filled)
    say(f"head {copied.head}")
    hint(KEEP)
    emit(*(f"FINDING {finding}" for finding in findings))
    summary = f"{counted(len(findings), 'finding')}, of the study itself"
    say(summary if findings else "the record is whole")
    study.write({"rows": copied.rows, "head": copied.head, "findings": list(findings)})
    say(after)
    if findings:
        raise typer.Exit(FINDINGS)


def _moved(source: Engine, target: Engine) -> Copied:
    with reading(source) as session:
        total = sum(counts(session).values())
    moved = 0
    with progress("moving", total) as at:

        def step(rows: int) -> None:
            nonlocal moved
            moved += rows
            at(moved)

        return move_study(source, target, step)


@contextmanager
def _removed_on_failure(url: str) -> Iterator[Engine]:
    """Open the target; a SQLite file that was made for a move that failed is taken away."""
    path = Path(url.removeprefix("sqlite:///"))
    new = url.startswith("sqlite:///") and not path.exists()
    engine: Engine | None = None
    try:
        engine = open_study(url, create=True)
        yield engine
    except BaseException:
        if engine is not None:
            engine.dispose()
        for ending in BESIDE if new else ():
            path.with_name(path.name + ending).unlink(missing_ok=True)
        raise
