"""`medjury study move FROM TO` and `medjury study backup FILE`: a whole study into another database or a file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from data.database import open_study, reading, refuse_as_file, shown
from data.errors import BadFile, BadInput
from data.queries.package import counts
from data.queries.record import verify
from data.store.moving import Copied, back_up, move_study
from medjury.cli.files import check_place, write_json
from medjury.cli.options import Db, Json, study_of, worked_on
from medjury.cli.output import counted, hint, progress, say, show
from medjury.cli.record import FINDINGS, KEEP

From = Annotated[str, typer.Argument(metavar="FROM", help="A database URL, or a SQLite file.")]
To = Annotated[str, typer.Argument(metavar="TO", help="The same, new or empty.")]
BESIDE = ("", "-wal", "-shm")
File = Annotated[Path, typer.Argument(metavar="FILE", help="A new file; it becomes SQLite.")]


def move(source: From, target: To, json_to: Json = None) -> None:
    """Copy a study into an empty database, SQLite or PostgreSQL; FROM stays as it is."""
    source_engine = open_study(_url(source))
    with _removed_on_failure(_url(target)) as target_engine:
        copied = _moved(source_engine, target_engine)
    findings = verify(target_engine).findings
    for engine in (source_engine, target_engine):
        engine.dispose()  # a SQLite file is left without others beside it
    worked_on[:] = [shown(target_engine.url)]
    print_copy("Moved", copied.rows, copied.head, findings, json_to)
    say(
        "every row was read again and compared; stop what still serves the old study, and name "
        "the new one from now on (--db or MEDJURY_DB)",
        json_to,
    )
    if findings:
        raise typer.Exit(FINDINGS)


def print_copy(
    title: str, rows: dict[str, int], head: str, findings: tuple[str, ...], json_to: Path | None
) -> None:
    """Say what a copy of a study holds, and what its record has to say."""
    filled = {table: number for table, number in rows.items() if number}
    show(title, ["table", "rows"], [[name, str(n)] for name, n in filled.items()], json_to)
    say(f"head {head}", json_to)
    hint(KEEP, json_to)
    for finding in findings:
        say(f"FINDING {finding}", json_to)
    summary = f"{counted(len(findings), 'finding')}, of the study itself"
    say(summary if findings else "the record is whole", json_to)
    write_json({"rows": rows, "head": head, "findings": list(findings)}, json_to)


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


def _url(database: str) -> str:
    """Return the URL that is meant; a plain path is a SQLite file."""
    if not database.strip():
        raise BadInput("move: FROM or TO is empty; give a URL or a file")
    return database if "://" in database else f"sqlite:///{database}"


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


def backup(context: typer.Context, file: File, json_to: Json = None, db: Db = None) -> None:
    """Write the whole study to a new SQLite file and check it."""
    refuse_as_file("backup", file)
    if os.path.lexists(file) and not file.is_dir():
        raise BadFile(f"backup {file}: is there already; name another file")
    check_place("backup", file)
    copied = back_up(study_of(context, db), file)
    print_copy(f"Backed up in {file}", copied.rows, copied.head, copied.findings, json_to)
    say(
        f"to go back to it: --db sqlite:///{file}, or `medjury study move {file} TO` into an empty "
        "database. It holds all but the key of sessions, authors too: guard it like the study",
        json_to,
    )
    if copied.findings:
        raise typer.Exit(FINDINGS)
