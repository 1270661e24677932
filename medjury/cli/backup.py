"""`medjury backup FILE`: the whole study in one file, while clinicians rate."""

import os
from pathlib import Path
from typing import Annotated

import typer

from data.address import refuse_as_file
from data.errors import BadFile
from data.store.moving import back_up
from medjury.cli.moving import print_copy
from medjury.cli.options import Db, Json, study_of
from medjury.cli.output import say
from medjury.cli.places import check_place
from medjury.cli.record import FINDINGS

File = Annotated[Path, typer.Argument(metavar="FILE", help="A new file; it becomes SQLite.")]


def backup(context: typer.Context, file: File, json_to: Json = None, db: Db = None) -> None:
    """Write the whole study into a new file, as it stands at one moment, and check it."""
    refuse_as_file("backup", file)
    if os.path.lexists(file) and not file.is_dir():
        raise BadFile(f"backup {file}: is there already; name another file")
    check_place("backup", file)
    found = back_up(study_of(context, db), file)
    print_copy(f"Backed up in {file}", found.rows, found.head, found.findings, json_to)
    say(
        f"to go back to it: --db sqlite:///{file}, or `medjury move {file} TO` into an empty "
        "database. It holds all but the key of sessions, authors too: guard it like the study",
        json_to,
    )
    if found.findings:
        raise typer.Exit(FINDINGS)
