"""`medjury rubric`: the criteria, scales and prompts that people and jurors share."""

import re
from pathlib import Path
from typing import Annotated

import typer

from data.importers.helm_rubrics import read_helm
from data.queries import benchmarks
from data.rubric import Gold, Rubric, read_rubric, shipped
from data.rubrics.files import write_rubrics
from data.store import add_rubric
from medjury.cli.options import Db, study_of
from medjury.cli.output import counted, say, show

rubric = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Rubrics: list, show, add, import.",
)
GOLD: dict[Gold, str] = {
    "never": "never shown",
    "when_needed": "shown, to be turned to when in doubt",
    "always": "shown, to be compared with on every criterion",
}
HASH = re.compile(r",? ?(?:prompt )?sha256 [0-9a-f]{64}")
Named = Annotated[str, typer.Argument(metavar="NAME|PATH", help="A shipped rubric or a folder.")]


@rubric.command("list")
def list_() -> None:
    """List the rubrics that ship with medjury."""
    rows = [_row(name, read_rubric(name)) for name in shipped()]
    show("Rubrics", ["name", "criteria", "on", "gold"], rows)
    say("`medjury rubric show NAME` prints every anchor, the jurors' prompt and the rubric's hash.")


@rubric.command("show")
def show_(name: Named) -> None:
    """Show what raters read: the criteria, every anchor, and the jurors' prompt."""
    found = read_rubric(name)
    say(f"{found.name} version {found.version}, for {found.audience}, scale {found.scale}")
    say(f"reference answer: {GOLD[found.gold]} (gold = {found.gold})")
    for criterion, points in found.critical:
        say(f"critical: a response scored {points:g} or less on {criterion} is unsafe")
    say(f"sha256 {found.sha256}\n\n{found.criteria_text()}\n\n--- prompt ---\n{found.prompt}")


@rubric.command()
def add(context: typer.Context, folder: Annotated[Path, typer.Argument()], db: Db = None) -> None:
    """Check a rubric of your own and keep it in the study."""
    found = read_rubric(folder)
    sha256 = add_rubric(study_of(context, db, create=True), found)
    say(f"{found.name} version {_short(found.version)} is in the study as {sha256[:12]}")


@rubric.command()
def used(context: typer.Context, db: Db = None) -> None:
    """List which rubric each benchmark of the study is rated on."""
    found = benchmarks(study_of(context, db))
    show(
        "Rubrics in use",
        ["benchmark", "rubric", "sha256"],
        [
            [one.name, f"{one.rubric.name} {_short(one.rubric.version)}", one.rubric.sha256[:12]]
            for one in found
        ],
    )


@rubric.command("import-helm")
def import_helm(
    helm: Annotated[
        str,
        typer.Argument(
            metavar="PATH|NAME",
            help="A HELM wheel, checkout or installation; or the name of an installed package.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="New, or empty.")] = Path("helm_rubrics"),
) -> None:
    """Take the jury prompts word for word out of a HELM of your own, a rubric for each benchmark.

    HELM is read as text; nothing of it is run.
    """
    found = read_helm(helm)
    write_rubrics(out, found.rubrics)
    rows = [_row(name, one) for name, one in sorted(found.rubrics.items())]
    show(f"Prompts of {found.release}", ["benchmark", "criteria", "on", "gold"], rows)
    for name, why in sorted(found.refused.items()):
        say(f"not taken: {name}: {why}")
    say(f"{counted(len(rows), 'rubric')} in {out}; use one with --rubric {out / rows[0][0]}")


def _short(version: str) -> str:
    """Return a version without the hash in it: the rubric's own is enough to tell it apart."""
    return HASH.sub("", version)


def _row(name: str, one: Rubric) -> list[str]:
    return [name, ", ".join(one.criteria), str(one.scale), one.gold]
