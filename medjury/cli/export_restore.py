"""`medjury import PACKAGE.zip`: a study that was exported elsewhere, on this machine."""

from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy import Engine

from data.errors import BadInput
from data.importers.package import Package, is_package
from data.queries.record import verify
from data.store.package import import_package
from medjury.cli.output import counted, say

IMPORTER = "researcher"


def meant(paths: Sequence[Path], form: str | None) -> bool:
    """Tell whether a package is to be imported: by what the user says, else by the file."""
    return form == "package" or (form is None and any(is_package(path) for path in paths))


def restore(paths: Sequence[Path], study: Callable[[], Engine]) -> None:
    """Read a package whole, and only when it holds open the study and store it."""
    if len(paths) > 1:
        raise BadInput("a package becomes a study of its own: import one, and alone")
    package = Package(paths[0])
    engine = study()
    added = import_package(engine, package, IMPORTER)
    if added.unchanged:
        say(f"{package.path.name}: was imported before; nothing changed")
        return
    for table, number in added.rows.items():
        say(f"{table}: {counted(number, 'row')}")
    if package.authors == "without":
        say(
            "no author is in it; `medjury import` of a package made with --authors-only adds them, "
            "and until then `medjury verify` cannot vouch for the responses"
        )
        return
    found = verify(engine).findings
    say(
        "the record is whole"
        if not found
        else f"WARNING: `medjury verify` has {counted(len(found), 'finding')}"
    )
