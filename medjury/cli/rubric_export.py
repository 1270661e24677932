"""`medjury rubric export`: a rubric, its panel and what was validated, for other tools."""

from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from data.errors import BadInput
from data.queries import benchmarks
from data.queries.jury import juror_profiles
from data.rubric import Rubric, read_rubric
from jury.exports.export import refuse_full, write_folder
from jury.panel import Panel, read_panel, shipped
from medjury.cli.options import Db, Seed, rubric_named, study_of
from medjury.cli.output import progress, say, say_unnoted
from medjury.services.rubric_export import (
    MODULES,
    RubricExport,
    exported_rubric,
    refuse_other,
    tools,
)


def export(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME|FOLDER", help="A rubric of the study.")],
    to: Annotated[str, typer.Option("--to", metavar=f"[{'|'.join(MODULES)}]")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New, or empty.")],
    panel: Annotated[str | None, typer.Option(metavar="PANEL", help="Who rates.")] = None,
    reps: Annotated[int, typer.Option(min=1, max=100_000)] = 2000,
    seed: Seed = 0,
    db: Db = None,
) -> None:
    """Take a rubric with its jury and what was validated to the tool that runs evaluations."""
    if to not in tools():
        raise typer.BadParameter(f"{to!r} is none of {', '.join(tools())}", param_hint="--to")
    engine = study_of(context, db)
    rubric = rubric_of(engine, name)
    jury = read_panel(panel) if panel else _own_panel(engine)
    refuse_other(jury, rubric)
    refuse_full(out)
    with progress("resampling", 1.0) as at:
        asked = RubricExport(rubric.to_json(), jury, to, reps, seed)
        exported = exported_rubric(engine, asked, at)
    say_unnoted(exported.unnoted)
    write_folder(out, exported.files)
    say(f"{rubric.name} for {to}: {', '.join(sorted(exported.files))} in {out}")
    say("VALIDATED" if exported.validated else "NOT VALIDATED")
    for line in (*exported.reasons, *exported.caveats):
        say(f"- {line}")


def _own_panel(engine: Engine) -> Panel:
    """Return the shipped panel whose jurors, as they are now, have all rated in the study."""
    for panel in map(read_panel, sorted(shipped(), key=lambda name: name == "simulated")):
        known = juror_profiles(engine, [one.name for one in panel.juror])
        if all(known.get(one.name) == one.profile() for one in panel.juror):
            return panel
    raise BadInput(
        "whose jury is to be exported? No panel that ships with medjury has rated in this study: "
        "give --panel PANEL"
    )


def rubric_of(engine: Engine, name: str) -> Rubric:
    """Return the rubric that the study's benchmarks use by that name, else a shipped or own one.

    Raises
    ------
    BadInput
        If benchmarks use several rubrics of that name.
    """
    used = {one.rubric.sha256: one.rubric for one in benchmarks(engine) if one.rubric.name == name}
    if len(used) > 1:
        raise BadInput(f"rubric {name}: the study uses several of that name: give a folder")
    return next(iter(used.values()), None) or rubric_named(engine, name) or read_rubric(name)
