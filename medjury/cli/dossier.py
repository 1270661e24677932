"""`medjury share dossier`: a reporting guideline filled in from the study, as one file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data.errors import BadFile
from data.guidelines import GUIDELINES, guideline
from medjury.cli.files import write_files, write_json, writes_to
from medjury.cli.options import Db, Json, NoReps, study_of
from medjury.cli.output import hint, progress, say, say_unnoted

if TYPE_CHECKING:
    from calibration.dossier import Dossier

To = Annotated[str, typer.Option("--to", metavar="|".join(GUIDELINES), help="Which guideline.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE.html|.md", help="Write the dossier there.", callback=writes_to
    ),
]


def dossier(
    context: typer.Context,
    to: To,
    out: Out = None,
    reps: NoReps = 2000,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Fill in a reporting guideline from the study: a methods section, and each item with its evidence."""
    from calibration.dossier import dossier_html, dossier_markdown, to_json
    from medjury.services.dossier import dossier as filled_in

    guideline(to)
    writers = {".html": dossier_html, ".md": dossier_markdown}
    if out is not None and out.suffix.lower() not in writers:
        raise BadFile(f"--out {out}: the name must end in .html or .md")
    engine = study_of(context, db)
    with progress("filling in", 1.0) as tick:
        made = filled_in(engine, to, tick, reps=reps)
    for warning in made.warnings:
        say_unnoted(warning)
    _show(made, json_to)
    if out is None:
        hint("give --out FILE.html or FILE.md to write it with its methods section", json_to)
    else:
        write_files({"--out": (out, writers[out.suffix.lower()](made))})
        say(f"{out}: read it before you use it", json_to)
    write_json({**to_json(made), "file": str(out) if out else None}, json_to)


def _show(made: "Dossier", json_to: Path | None) -> None:
    """Print of what it is, the decision, and every item with its status."""
    from calibration.dossier import STATUS, decision_lines, head_lines

    for line in (*head_lines(made), *decision_lines(made)):
        say(line, json_to)
    say("", json_to)
    for item in made.items:
        say(f"{item.item.number}  {STATUS[item.status]}: {item.item.about}", json_to)
