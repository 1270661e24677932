"""`medjury study rubric`: the criteria, scales and prompts that people and jurors share."""

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from data.errors import NoStudy
from data.rubric import Gold, Rubric, read_rubric, shipped
from data.rubrics.helm import is_helm_source, read_helm
from data.study.rubrics import add_rubric
from data.study.standing import benchmarks
from medjury.cli.options import Study
from medjury.cli.output import emit, hint, say, show

GOLD: dict[Gold, str] = {
    "never": "never shown",
    "when_needed": "shown, to be turned to when in doubt",
    "always": "shown, to be compared with on every criterion",
}
MOST_NAMED = 3  # criteria in a list
HASH = re.compile(r",? ?(?:prompt )?sha256 [0-9a-f]{64}")


def show_(
    study: Study,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|PATH]", help="A shipped rubric or a folder; without it, list them."
        ),
    ] = None,
) -> None:
    """Show a rubric: criteria, anchors, the jurors' prompt; without a name list those there are.

    Example:
    medjury study rubric show generic
    """
    if name is None:
        _list(study)
        return
    rubric = read_rubric(name)
    emit(
        f"{rubric.name} version {rubric.version}, for {rubric.audience}, scale {rubric.scales}",
        f"reference answer: {GOLD[rubric.gold]} (gold = {rubric.gold})",
    )
    for criterion, points in rubric.critical:
        say(f"critical: a response scored {points:g} or less on {criterion} is unsafe")
    say(f"sha256 {rubric.sha256}\n\n{rubric.criteria_text()}\n\n--- prompt ---\n{rubric.prompt}")
    study.write({"rubric": json.loads(rubric.to_json()) | {"sha256": rubric.sha256}})


def _list(study: Study) -> None:
    """List the rubrics that ship, and which each benchmark of the study is rated on."""
    rubrics = {name: read_rubric(name) for name in shipped()}
    rows = [_row(name, rubric) for name, rubric in rubrics.items()]
    show("Rubrics", ["name", "criteria", "on", "gold"], rows)
    try:
        in_study = benchmarks(study.open())
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
    study.write(body | {"benchmarks": used_on})
    hint("`medjury study rubric show NAME` prints every anchor, the jurors' prompt and the hash.")


def add(
    study: Study,
    source: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER|HELM",
            help="Has rubric.toml and prompt.txt; or a HELM wheel, checkout or installed package.",
        ),
    ],
) -> None:
    """Check your own rubric, or read those of a HELM installation, and store them in the study.

    HELM is read as text; nothing of it is run.

    Example:
    medjury study rubric add our_rubric
    """
    folder = Path(source)
    body: dict[str, Any] = {}
    if (folder / "rubric.toml").is_file() or (folder.is_dir() and not is_helm_source(source)):
        rubrics = [read_rubric(folder)]
    else:
        prompts = read_helm(source)
        rubrics = [rubric for _, rubric in sorted(prompts.rubrics.items())]
        body = {"release": prompts.release, "refused": dict(prompts.refused)}
        emit(*(f"not taken: {name}: {why}" for name, why in sorted(prompts.refused.items())))
    engine = study.open(create=True)
    for rubric in rubrics:
        sha256 = add_rubric(engine, rubric)
        say(f"{rubric.name} version {_short(rubric.version)} is in the study as {sha256[:12]}")
    added = [_json(rubric) for rubric in rubrics]
    study.write(body | {"rubrics": added} if body else added[0])


def _short(version: str) -> str:
    """Return a version without the hash in it: the rubric's own is enough to tell it apart."""
    return HASH.sub("", version)


def _json(rubric: Rubric) -> dict[str, Any]:
    """Return a rubric in short; `study rubric show --json` has all of it."""
    low, high = rubric.composite_ends
    scale = {"scale_min": low, "scale_max": high}
    named = {"name": rubric.name, "version": rubric.version, "criteria": list(rubric.criteria)}
    return named | scale | {"gold": rubric.gold, "sha256": rubric.sha256}


def _row(name: str, rubric: Rubric) -> list[str]:
    every = rubric.criteria
    first = every if len(every) <= MOST_NAMED else every[: MOST_NAMED - 1]  # fits 80 columns
    more = len(every) - len(first)
    criteria = ", ".join(first) + (f", +{more}" if more else "")
    return [name, criteria, "mixed" if rubric.is_mixed else rubric.scales, rubric.gold]
