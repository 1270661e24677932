"""`medjury study rubric`: the criteria, scales and prompts that people and jurors share."""

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from data.errors import BadInput, NoStudy
from data.files import refuse_full
from data.rubric import Gold, Rubric, read_rubric, shipped
from data.rubrics.helm import is_helm_source, read_helm
from data.study.calls import juror_profiles
from data.study.rubrics import add_rubric
from data.study.standing import benchmarks
from jury.exports.bundle import write_folder
from jury.panel import Panel, read_panel
from jury.panel import shipped as shipped_panels
from medjury.cli.files import write_json
from medjury.cli.options import Db, Json, NoSeed, PanelOption, rubric_named, study_of
from medjury.cli.output import hint, progress, say, say_unnoted, show
from medjury.services.rubric_export import (
    EXPORT_FORMATS,
    RubricExport,
    exported_rubric,
    refuse_other,
    tools,
)

GOLD: dict[Gold, str] = {
    "never": "never shown",
    "when_needed": "shown, to be turned to when in doubt",
    "always": "shown, to be compared with on every criterion",
}
MOST_NAMED = 3  # criteria in a list
HASH = re.compile(r",? ?(?:prompt )?sha256 [0-9a-f]{64}")
Named = Annotated[str, typer.Argument(metavar="NAME|PATH", help="A shipped rubric or a folder.")]


def list_(context: typer.Context, json_to: Json = None, db: Db = None) -> None:
    """List the rubrics that ship with medjury, and which each benchmark of the study is rated on."""
    rubrics = {name: read_rubric(name) for name in shipped()}
    rows = [_row(name, rubric) for name, rubric in rubrics.items()]
    show("Rubrics", ["name", "criteria", "on", "gold"], rows)
    try:
        in_study = benchmarks(study_of(context, db))
    except NoStudy:
        in_study = []
    if in_study:
        used = [
            [one.name, f"{one.rubric.name} {_short(one.rubric.version)}", one.rubric.sha256[:12]]
            for one in in_study
        ]
        show("Rubrics in use", ["benchmark", "rubric", "sha256"], used)
    body = {"rubrics": [_json(rubric) for rubric in rubrics.values()]}
    used_on = [{"benchmark": one.name} | _json(one.rubric) for one in in_study]
    write_json(body | {"benchmarks": used_on}, json_to)
    hint("`medjury study rubric show NAME` prints every anchor, the jurors' prompt and the hash.")


def show_(name: Named, json_to: Json = None) -> None:
    """Show a rubric: criteria, anchors of the scale, and the jurors' prompt."""
    rubric = read_rubric(name)
    say(f"{rubric.name} version {rubric.version}, for {rubric.audience}, scale {rubric.scale}")
    say(f"reference answer: {GOLD[rubric.gold]} (gold = {rubric.gold})")
    for criterion, points in rubric.critical:
        say(f"critical: a response scored {points:g} or less on {criterion} is unsafe")
    say(f"sha256 {rubric.sha256}\n\n{rubric.criteria_text()}\n\n--- prompt ---\n{rubric.prompt}")
    write_json({"rubric": json.loads(rubric.to_json()) | {"sha256": rubric.sha256}}, json_to)


def add(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER|HELM",
            help="Has rubric.toml and prompt.txt; or a HELM wheel, checkout or installed package.",
        ),
    ],
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Check your own rubric, or read those of a HELM installation, and store them in the study.

    HELM is read as text; nothing of it is run.
    """
    folder = Path(source)
    if (folder / "rubric.toml").is_file() or (folder.is_dir() and not is_helm_source(source)):
        rubrics, body = {"": read_rubric(folder)}, {}
    else:
        prompts = read_helm(source)
        rubrics = dict(sorted(prompts.rubrics.items()))
        body = {"release": prompts.release, "refused": dict(prompts.refused)}
        for name, why in sorted(prompts.refused.items()):
            say(f"not taken: {name}: {why}")
    engine = study_of(context, db, create=True)
    for rubric in rubrics.values():
        sha256 = add_rubric(engine, rubric)
        say(f"{rubric.name} version {_short(rubric.version)} is in the study as {sha256[:12]}")
    if body:
        write_json(body | {"rubrics": [_json(one) for one in rubrics.values()]}, json_to)
    else:
        write_json(_json(rubrics[""]), json_to)


def _short(version: str) -> str:
    """Return a version without the hash in it: the rubric's own is enough to tell it apart."""
    return HASH.sub("", version)


def _json(rubric: Rubric) -> dict[str, Any]:
    """Return a rubric in short; `study rubric show --json` has all of it."""
    scale = {"scale_min": rubric.scale.min, "scale_max": rubric.scale.max}
    named = {"name": rubric.name, "version": rubric.version, "criteria": list(rubric.criteria)}
    return named | scale | {"gold": rubric.gold, "sha256": rubric.sha256}


def _row(name: str, rubric: Rubric) -> list[str]:
    every = rubric.criteria
    first = every if len(every) <= MOST_NAMED else every[: MOST_NAMED - 1]  # fits 80 columns
    more = len(every) - len(first)
    criteria = ", ".join(first) + (f", +{more}" if more else "")
    return [name, criteria, str(rubric.scale), rubric.gold]


def export(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME|FOLDER", help="A rubric of the study.")],
    to: Annotated[
        str,
        typer.Option("--to", metavar=f"[{'|'.join(EXPORT_FORMATS)}]", help="Tool to write for."),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write; new or empty.")],
    panel: PanelOption = None,
    reps: Annotated[int, typer.Option(min=1, max=100_000, hidden=True)] = 2000,
    seed: NoSeed = 0,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Write a rubric, its jury and its validation for the tool that runs evaluations."""
    if to not in tools():
        raise typer.BadParameter(f"{to!r} is none of {', '.join(tools())}", param_hint="--to")
    engine = study_of(context, db)
    rubric = rubric_of(engine, name)
    jury = read_panel(panel) if panel else _own_panel(engine)
    refuse_other(jury, rubric)
    refuse_full(out, f"--out {out}")
    with progress("resampling", 1.0) as at:
        request = RubricExport(rubric.to_json(), jury, to, reps, seed)
        exported = exported_rubric(engine, request, at)
    say_unnoted(exported.unnoted)
    write_folder(out, exported.files)
    say(f"{rubric.name} for {to}: {', '.join(sorted(exported.files))} in {out}")
    say("VALIDATED" if exported.validated else "NOT VALIDATED")
    for line in (*exported.reasons, *exported.caveats):
        say(f"- {line}")
    body = {"rubric": rubric.name, "to": to, "out": str(out), "files": sorted(exported.files)}
    reasons = {"reasons": list(exported.reasons), "caveats": list(exported.caveats)}
    write_json(body | {"validated": exported.validated} | reasons, json_to)


def _own_panel(engine: Engine) -> Panel:
    """Return the shipped panel whose jurors, as they are now, have all rated in the study."""
    for panel in map(read_panel, sorted(shipped_panels(), key=lambda name: name == "simulated")):
        profiles = juror_profiles(engine, [juror.name for juror in panel.juror])
        if all(profiles.get(juror.name) == juror.profile() for juror in panel.juror):
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
    used = {
        benchmark.rubric.sha256: benchmark.rubric
        for benchmark in benchmarks(engine)
        if benchmark.rubric.name == name
    }
    if len(used) > 1:
        raise BadInput(f"rubric {name}: the study uses several of that name: give a folder")
    return next(iter(used.values()), None) or rubric_named(engine, name) or read_rubric(name)
