"""`medjury share export`: the study as files for spreadsheets, statistics packages, and another machine."""

from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from data.errors import BadFile, BadInput
from data.record import HEAD_ENDING
from data.study.export import write_folder
from data.study.package import write_package
from data.study.settings import unblind
from data.study.verify import present_head
from medjury.cli import redcap
from medjury.cli.files import write_json
from medjury.cli.options import Db, Json, Reason, Who, study_of
from medjury.cli.output import counted, say
from medjury.cli.record import write_head

Folder = Annotated[
    Path | None, typer.Argument(metavar="FOLDER", help="Folder for the CSV files; new or empty.")
]
PackageOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.zip", help="Write the study as one file, which `study import` reads."
    ),
]
RedcapFolder = Annotated[
    Path | None,
    typer.Option(
        "--redcap", metavar="FOLDER", help="Write forms and records for rating in REDCap."
    ),
]
WithoutAuthors = Annotated[
    bool, typer.Option("--without-authors", help="Leave out the authors; the default.")
]
Unblinded = Annotated[
    bool, typer.Option("--unblind", help="Include the authors of responses; recorded.")
]
AuthorsOnly = Annotated[
    bool, typer.Option("--authors-only", help="Write the authors of responses only; recorded.")
]


def export(
    context: typer.Context,
    folder: Folder = None,
    package: PackageOption = None,
    to_redcap: RedcapFolder = None,
    without_authors: WithoutAuthors = False,
    unblinded: Unblinded = False,
    authors_only: AuthorsOnly = False,
    reason: Reason = "",
    who: Who = "coordinator",
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Write the study as CSV with a data dictionary; authors only on request."""
    authors = _authors(without_authors, unblinded, authors_only, reason)
    nothing_else = to_redcap is None or authors != "without"
    if not any([folder, package]) and nothing_else:
        raise BadInput("export what? give a FOLDER, --package or --redcap")
    engine = study_of(context, db)
    _check(package)
    if to_redcap is not None:
        readings = redcap.open_readings(engine)
        _make(to_redcap)
        redcap.write_redcap(engine, to_redcap, readings)
    if folder is not None:
        _make(folder)
    who_wrote = [] if authors == "without" else unblind(engine, who, reason)
    written = {}
    if folder is not None:
        written = write_folder(engine, folder, authors, who_wrote)
        for name, rows in written.items():
            say(f"{name}: {counted(rows, 'row')}")
    packed = _pack(engine, package, authors, who_wrote) if package is not None else 0
    places = {"folder": folder, "package": package, "redcap": to_redcap}
    named = {name: str(to) if to is not None else None for name, to in places.items()}
    write_json({"authors": authors, **named, "rows": written, "package_rows": packed}, json_to)


def _authors(without: bool, unblinded: bool, only: bool, reason: str) -> str:
    """Return "with", "without" or "only", as the options say together."""
    if without + unblinded + only > 1:
        raise BadInput("--without-authors, --unblind and --authors-only: give one of them")
    lifts = unblinded or only
    if lifts != bool(reason.strip()):
        named = "--authors-only" if only else "--unblind"
        raise BadInput(f"{named} needs a --reason, which stays in the record, and only it does")
    return "only" if only else "with" if unblinded else "without"


def _pack(engine: Engine, path: Path, authors: str, who_wrote: list[tuple[str, str]]) -> int:
    """Write the package and its head; return the number of rows."""
    rows = sum(write_package(engine, path, authors, who_wrote).values())
    head = path.with_suffix(HEAD_ENDING)
    if write_head(head, present_head(engine)):
        say(f"{head}: the head of the record; sign it, and send it by another way")
    into = "an empty study"
    if authors == "only":
        into = "the study it belongs to, where that came without authors"
    named = {"without": "no author named", "with": "authors named", "only": "only authors"}
    say(
        f"{path}: {counted(rows, 'row')}, {named[authors]}; `medjury study import` reads it into {into}"
    )
    return rows


def _check(package: Path | None) -> None:
    """Refuse a place that a package cannot be written to, before any work is done."""
    if package is None:
        return
    if package.suffix.lower() != ".zip" or not package.parent.is_dir():
        raise BadFile(f"--package {package}: not a .zip in a folder that exists")
    for path in (package, package.with_suffix(HEAD_ENDING)):
        if path.exists():
            raise BadFile(f"--package {package}: {path.name} is there already; name another file")


def _make(folder: Path) -> None:
    """Make the folder, or refuse one that holds something."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise BadFile(f"{folder}: holds files already; name a new folder")
    except OSError as error:
        raise BadFile(f"{folder}: {error.strerror}") from error
