"""`medjury study points`: points of the case, and agreement on them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from sqlalchemy import Engine

from data.errors import BadInput, Unknown, Unrated
from data.importers.points import PointFile
from data.importers.table import TableFile
from data.person import OPERATOR
from data.points import points_of, points_rubric
from data.study.cases import CaseRubric, case_rubrics, without_points
from data.study.points import add_points
from data.study.standing import benchmarks
from medjury.cli.files import write_json
from medjury.cli.options import (
    BenchmarkOption,
    Db,
    Json,
    Jurors,
    PanelOption,
    Reps,
    Seed,
    named_jurors,
    study_of,
    table_format,
)
from medjury.cli.output import counted, hint, say, show, show_table

if TYPE_CHECKING:
    from medjury.services.points import BenchmarkPoints

KINDS = {"must": "must", "must_not": "must not", "nice": "nice to have"}


def points(
    context: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="instance_id, point, weight, kind, critical; CSV or JSON Lines."
        ),
    ] = None,
    benchmark: BenchmarkOption = None,
    rubric: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help='Your own rubric with points = "clipped" or "unclipped".'
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="[csv|jsonl]", help="By default from the name."),
    ] = None,
    instance: Annotated[str | None, typer.Option(metavar="ID", help="This instance only.")] = None,
    panel: PanelOption = None,
    jurors: Jurors = None,
    reps: Reps = 2000,
    seed: Seed = 0,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Have a benchmark rated by points of the case; without a file show points and agreement on them."""
    engine = study_of(context, db)
    if path is None:
        _show(engine, benchmark, instance, (named_jurors(panel, jurors), reps, seed), json_to)
        return
    if benchmark is None:
        raise BadInput("points: give --benchmark, the benchmark whose instances have these points")
    given = engine, benchmark, PointFile(TableFile(path, table_format(form))), points_rubric(rubric)
    added = add_points(*given, OPERATOR.actor)
    bare = without_points(engine, benchmark)
    say(
        f"{path.name}: points of {counted(added.added, 'instance')} imported, {added.changed} changed, "
        f"{added.unchanged} as they were",
        json_to,
    )
    if bare:
        hint(
            f"{counted(len(bare), 'instance')} of {benchmark} without points yet, such as {bare[0]}"
        )
    body = {"added": added.added, "changed": added.changed, "unchanged": added.unchanged}
    write_json(body | {"points": added.points, "without": bare}, json_to)


def _show(
    engine: Engine,
    benchmark: str | None,
    instance: str | None,
    asked: tuple[tuple[str, ...] | None, int, int],
    json_to: Path | None,
) -> None:
    """Show the points of each instance, and the agreement on them where clinicians have answered."""
    from calibration.json_values import json_value
    from medjury.services.points import PointsQuestion, points_agreement

    question = PointsQuestion(benchmark, *asked)
    names = [benchmark] if benchmark else [one.name for one in benchmarks(engine)]
    cases = [
        (name, case)
        for name in names
        for case in case_rubrics(engine, name)
        if instance in (None, case.instance_id)
    ]
    if not cases:
        which = f"benchmark {benchmark}" if benchmark else "no benchmark"
        which += f", instance {instance}" if instance else ""
        raise Unknown(f"{which}: the study has no points for it")
    for _, case in cases:
        _show_case(case, json_to)
    body: dict[str, object] = {
        "instances": [{"benchmark": name} | _json(case) for name, case in cases],
        "reps": question.reps,
        "seed": question.seed,
        "benchmarks": [],
    }
    try:
        found = points_agreement(engine, question)
    except Unrated as error:
        say(str(error), json_to)
    else:
        for one in found:
            _show_agreement(one, json_to)
        body["benchmarks"] = [json_value(one) for one in found]
    write_json(body, json_to)


def _show_case(case: CaseRubric, json_to: Path | None) -> None:
    rows = [
        [
            f"{number}",
            f"{one.weight:g}",
            KINDS[one.kind],
            "critical" if one.critical else "",
            one.point,
        ]
        for number, one in enumerate(points_of(case.rubric), 1)
    ]
    title = f"{case.instance_id} ({case.rubric.sha256[:12]})"
    show(title, ["", "weight", "kind", "", "point"], rows, json_to, words=("kind", "point"))


def _json(case: CaseRubric) -> dict[str, object]:
    own = [one.model_dump() for one in points_of(case.rubric)]
    return {"instance_id": case.instance_id, "sha256": case.rubric.sha256, "points": own}


def _show_agreement(found: "BenchmarkPoints", json_to: Path | None) -> None:
    from calibration.tables.numbers import TERMINAL
    from medjury.services.points import tables_of

    for table in tables_of(found, TERMINAL)[:-1]:  # each point by itself has no room here
        show_table(table, json_to)
    hint("Each point by itself: --json, or the page Agreement.")
