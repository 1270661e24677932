"""`medjury rubric`: the criteria, scales and prompts that people and jurors share."""

from pathlib import Path
from typing import Annotated

import typer

from data.queries import benchmarks
from data.rubric import Rubric, read_rubric, shipped
from data.store import add_rubric
from medjury.options import Db, study_of
from medjury.output import say, show

rubric = typer.Typer(no_args_is_help=True, help="Rubrics: list, show, add.")
Named = Annotated[str, typer.Argument(metavar="NAME|PATH", help="A shipped rubric or a folder.")]


@rubric.command("list")
def list_() -> None:
    """List the rubrics that ship with medjury."""
    rows = [_row(read_rubric(name)) for name in shipped()]
    show("Rubrics", ["name", "criteria", "scale", "gold", "sha256"], rows)


@rubric.command("show")
def show_(name: Named) -> None:
    """Show what raters read: the criteria, every anchor, and the jurors' prompt."""
    found = read_rubric(name)
    say(f"{found.name} version {found.version}, for {found.audience}, scale {found.scale}")
    say(f"sha256 {found.sha256}\n\n{found.criteria_text()}\n\n--- prompt ---\n{found.prompt}")


@rubric.command()
def add(context: typer.Context, folder: Annotated[Path, typer.Argument()], db: Db = None) -> None:
    """Check a rubric of your own and keep it in the study."""
    found = read_rubric(folder)
    sha256 = add_rubric(study_of(context, db, create=True), found)
    say(f"{found.name} version {found.version} is in the study as {sha256[:12]}")


@rubric.command()
def used(context: typer.Context, db: Db = None) -> None:
    """List which rubric each benchmark of the study is rated on."""
    found = benchmarks(study_of(context, db))
    show(
        "Rubrics in use",
        ["benchmark", "rubric", "sha256"],
        [
            [one.name, f"{one.rubric.name} {one.rubric.version}", one.rubric.sha256[:12]]
            for one in found
        ],
    )


def _row(one: Rubric) -> list[str]:
    criteria = ", ".join(one.criteria)
    return [f"{one.name} {one.version}", criteria, str(one.scale), one.gold, one.sha256[:8]]
