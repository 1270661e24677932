"""`medjury study backup TO`: a whole study into a file, or into another database."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from data.database import open_study, reading, shown
from data.errors import BadFile, BadInput
from data.study.copies import counts
from data.study.moving import Copied, back_up, move_study
from data.study.verify import verify
from medjury.cli.files import check_place, write_json
from medjury.cli.options import Db, Json, study_of, worked_on
from medjury.cli.output import counted, hint, progress, say, show
from medjury.cli.record import FINDINGS, KEEP

BESIDE = ("", "-wal", "-shm")
To = Annotated[
    str, typer.Argument(metavar="TO", help="A new file, or the URL of an empty database.")
]


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


def backup(context: typer.Context, to: To, json_to: Json = None, db: Db = None) -> None:
    """Write the whole study to a new SQLite file, or into an empty database, and check it."""
    if not to.strip():
        raise BadInput("backup: TO is empty; give a file or a URL")
    if "://" in to:
        _into_database(study_of(context, db), to, json_to)
        return
    file = Path(to)
    if os.path.lexists(file) and not file.is_dir():
        raise BadFile(f"backup {file}: is there already; name another file")
    check_place("backup", file)
    copied = back_up(study_of(context, db), file)
    print_copy(f"Backed up in {file}", copied.rows, copied.head, copied.findings, json_to)
    say(
        f"to go back to it: --db sqlite:///{file}. It holds all but the key of sessions, authors "
        "too: guard it like the study",
        json_to,
    )
    if copied.findings:
        raise typer.Exit(FINDINGS)


def _into_database(source: Engine, url: str, json_to: Path | None) -> None:
    """Copy a study into an empty database; it stays as it is."""
    with _removed_on_failure(url) as target:
        copied = _moved(source, target)
    findings = verify(target).findings
    for engine in (source, target):
        engine.dispose()  # a SQLite file is left without others beside it
    worked_on[:] = [shown(target.url)]
    print_copy(f"Copied into {shown(target.url)}", copied.rows, copied.head, findings, json_to)
    say(
        "every row was read again and compared; stop what still serves the old study, and name "
        "the new one from now on (--db or MEDJURY_DB)",
        json_to,
    )
    if findings:
        raise typer.Exit(FINDINGS)
