"""`medjury export`: the study as files for spreadsheets, statistics packages, and another machine."""

from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from data.errors import BadFile, BadInput
from data.store.record import unblind
from medjury.cli import methods, redcap
from medjury.cli.export_files import files_of, write_folder, write_package
from medjury.cli.options import Db, study_of
from medjury.cli.output import counted, say
from medjury.cli.places import writes_to
from medjury.cli.record import Reason, Who

Folder = Annotated[Path | None, typer.Argument(metavar="FOLDER", help="New, or empty.")]
PackageOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE.zip", help="All in one file; `medjury import` reads it back."),
]


def export(
    context: typer.Context,
    folder: Folder = None,
    package: PackageOption = None,
    to_redcap: Annotated[
        Path | None, typer.Option("--redcap", metavar="FOLDER", help="For rating in REDCap.")
    ] = None,
    to_methods: Annotated[
        Path | None,
        typer.Option(
            "--methods",
            metavar="FILE.md",
            help="A methods section and a GRRAS checklist.",
            callback=writes_to,
        ),
    ] = None,
    without_authors: Annotated[
        bool, typer.Option("--without-authors", help="Name no author; so it is by default.")
    ] = False,
    unblinded: Annotated[
        bool, typer.Option("--unblind", help="Name the authors too; recorded.")
    ] = False,
    authors_only: Annotated[
        bool, typer.Option("--authors-only", help="Only who wrote what; recorded.")
    ] = False,
    reason: Reason = "",
    who: Who = "coordinator",
    db: Db = None,
) -> None:
    """Write the study as CSV with a data dictionary; no author unless asked."""
    authors = _authors(without_authors, unblinded, authors_only, reason)
    nothing_else = to_redcap is None and to_methods is None
    if folder is None and package is None and (nothing_else or authors != "without"):
        raise BadInput("export what? give a FOLDER, --package, --redcap or --methods")
    engine = study_of(context, db)
    _check(package)
    if to_redcap is not None:
        found = redcap.open_readings(engine)
        _make(to_redcap)
        redcap.write_redcap(engine, to_redcap, found)
    if to_methods is not None:
        methods.write_methods(engine, to_methods)
    if folder is not None:
        _make(folder)
    who_wrote = [] if authors == "without" else unblind(engine, who, reason)
    if folder is not None:
        for name, rows in write_folder(folder, files_of(engine, authors, who_wrote)):
            say(f"{name}: {counted(rows, 'row')}")
    if package is not None:
        _pack(engine, package, authors, who_wrote)


def _authors(without: bool, unblinded: bool, only: bool, reason: str) -> str:
    """Return "with", "without" or "only", as the options say together."""
    if without + unblinded + only > 1:
        raise BadInput("--without-authors, --unblind and --authors-only: give one of them")
    lifts = unblinded or only
    if lifts != bool(reason.strip()):
        named = "--authors-only" if only else "--unblind"
        raise BadInput(f"{named} needs a --reason, which stays in the record, and only it does")
    return "only" if only else "with" if unblinded else "without"


def _pack(engine: Engine, path: Path, authors: str, who_wrote: list[tuple[str, str]]) -> None:
    rows = write_package(engine, path, authors, files_of(engine, authors, who_wrote))
    into = "an empty study"
    if authors == "only":
        into = "the study it belongs to, where that came without authors"
    named = {"without": "no author named", "with": "authors named", "only": "only authors"}
    say(f"{path}: {counted(rows, 'row')}, {named[authors]}; `medjury import` reads it into {into}")


def _check(package: Path | None) -> None:
    """Refuse a place that a package cannot be written to, before any work is done."""
    if package is None:
        return
    if package.suffix.lower() != ".zip" or not package.parent.is_dir():
        raise BadFile(f"--package {package}: not a .zip in a folder that exists")
    if package.exists():
        raise BadFile(f"--package {package}: is there already; name another file")


def _make(folder: Path) -> None:
    """Make the folder, or refuse one that holds something."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise BadFile(f"{folder}: holds files already; name a new folder")
    except OSError as error:
        raise BadFile(f"{folder}: {error.strerror}") from error
