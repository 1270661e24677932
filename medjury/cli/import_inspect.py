"""`medjury study import LOG`: logs of Inspect, with what their scorers said, on the rubric that is theirs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from data.errors import BadInput
from data.importers.finished import add_up
from data.importers.grades import Grades
from data.importers.inspect_logs import (
    GRADED,
    InspectLog,
    TakenLog,
    graded_rubric,
    log_files,
    read_inspect,
)
from data.importers.inspect_logs import finished as finished_log
from data.rubric import Rubric
from data.study.standing import benchmarks
from medjury.cli.import_helm import ImportAccount, models_of, store_finished
from medjury.cli.options import rubric_named
from medjury.cli.output import counted
from medjury.services.returned_runs import apart, known_rubric, rejoined_log

GENERIC = "generic"
INSPECT_COLUMNS = ("log", "benchmark", "status", "responses", "ratings", "missing")
RubricFor = Callable[[str], Rubric]


def bring_inspect(
    paths: Sequence[Path],
    benchmark: str | None,
    rubric: str | None,
    json_to: Path | None,
    study: Callable[[], Engine],
    rubric_for: RubricFor,
    scale: Grades | None = None,
) -> None:
    """Read logs, and only when all can be read open the study and store them in one transaction."""
    logs = [read_inspect(file, benchmark) for path in paths for file in log_files(path)]
    if benchmark and len({log.spec.task for log in logs}) > 1:
        several = ", ".join(sorted({log.spec.task for log in logs}))
        raise BadInput(f"--benchmark {benchmark}: the logs are of several tasks: {several}")
    engine = study()
    chosen = rubric_named(engine, rubric)
    logs = [apart(log) if benchmark else rejoined_log(engine, log) for log in logs]
    rubrics = [_inspect_rubric(engine, log, chosen, rubric_for, scale) for log in logs]
    taken = [finished_log(log, rubric) for log, (rubric, _) in zip(logs, rubrics, strict=True)]
    why = {log.benchmark: reason for log, (_, reason) in zip(logs, rubrics, strict=True)}
    store_finished(engine, [log.values for log in taken], _told_inspect(taken, why), json_to)


def _inspect_rubric(
    engine: Engine,
    log: InspectLog,
    chosen: Rubric | None,
    rubric_for: RubricFor,
    scale: Grades | None,
) -> tuple[Rubric, str]:
    """Return the rubric of a log, and why it is that one.

    It is the one our scorer rated on; else the user's, that of the scale which the user names, the
    benchmark's in the study, the shipped one of its name, or one of the graders' own words.

    Raises
    ------
    BadInput
        If our scorer rated on another one, or on one that is not known here.
    """
    own = next(
        (stored.rubric for stored in benchmarks(engine) if stored.name == log.benchmark), None
    )
    sha256 = log.rubric_sha256
    if not sha256:
        return _of_anothers_scorer(log, chosen, own, rubric_for, scale)
    rubric = chosen or known_rubric(engine, sha256, log.origin)
    if rubric and rubric.sha256 == sha256:
        return rubric, "the one that medjury's scorer rated on"
    why = f"{chosen.name} is another" if chosen else "it is not known here"
    raise BadInput(
        f"{log.name}: medjury's scorer rated on the rubric with the hash {sha256[:12]}, and {why}; "
        "give --rubric FOLDER, the folder `rubric` of that export; nothing was imported"
    )


def _of_anothers_scorer(
    log: InspectLog,
    chosen: Rubric | None,
    own: Rubric | None,
    rubric_for: RubricFor,
    scale: Grades | None,
) -> tuple[Rubric, str]:
    """Return the rubric of a log that no scorer of ours rated, and why it is that one."""
    if chosen is not None:
        return chosen, "as --rubric says"
    if scale is not None:
        if named := graded_rubric(log, scale):
            return named, "made of the scale that --scale names"
        raise BadInput(f"{log.name}: --scale is for scorers with one value, and it has none")
    if own is not None:
        return own, "the benchmark's own in this study"
    shipped_one = rubric_for(log.benchmark)
    if shipped_one.name != GENERIC:
        return shipped_one, "the shipped one of this name"
    if graded := graded_rubric(log, unless=shipped_one.criteria):
        return graded, "made of its graders' own words, from worst to best"
    return shipped_one, (
        "as neither --rubric, the study nor a shipped rubric names one; --scale 0-1 or --scale "
        "bad,good takes a scorer's single values on a scale of their own"
    )


def _told_inspect(taken: Sequence[TakenLog], why: Mapping[str, str]) -> ImportAccount:
    """Return what is told of logs."""
    figures = [_inspect_figures(imported) for imported in taken]
    rubrics = {
        name: (imported.values.rubric, why[imported.log.benchmark])
        for imported in taken
        for name in imported.benchmarks
    }
    left_out = add_up(imported.log.left_out for imported in taken)
    return ImportAccount(
        "Inspect logs",
        INSPECT_COLUMNS,
        [[str(row[name]) for name in INSPECT_COLUMNS] for row in figures],
        first=[
            f"WARNING: {imported.log.name}: its run ended with status {imported.log.status[:20]}: only "
            "the samples that ended are in the study"
            for imported in taken
            if imported.log.status != "success"
        ],
        rubrics={
            name: f"{rubric.name} ({_points(rubric)}): {reason}"
            for name, (rubric, reason) in rubrics.items()
        },
        jurors=_inspect_jurors(taken),
        left_out={reason: counted(number, "sample") for reason, number in left_out.items()},
        notes=add_up(imported.log.notes for imported in taken),
        body={"format": "inspect", "logs": figures},
    )


def _points(rubric: Rubric) -> str:
    """Return a scale, with the words of its points where it was made of grades."""
    anchors = rubric.criterion[0].anchors
    named = rubric.name == GRADED and len(set(anchors.values())) == len(anchors)
    words = ", ".join(f"{point} {anchors[point]}" for point in sorted(anchors)) if named else ""
    return words or f"{rubric.scale}"


def _inspect_figures(imported: TakenLog) -> dict[str, Any]:
    """Return the figures of one log, as `--json` writes them."""
    return {
        "log": imported.log.name,
        "benchmark": imported.log.benchmark,
        "status": imported.log.status,
        "rubric": imported.values.rubric.name,
        "rubric_sha256": imported.values.rubric.sha256,
        "jurors": [
            {"name": j.handle, "model": j.profile.get("model")} for j in imported.values.jurors
        ],
        "scorers_not_taken": list(imported.not_taken),
        "instances": len({row.instance_id for row in imported.values.responses}),
        "responses": len(imported.values.responses),
        "ratings": len(imported.values.ratings),
        "missing": len(imported.values.failures),
        "left_out": dict(imported.log.left_out),
        "notes": dict(imported.log.notes),
    }


def _inspect_jurors(taken: Sequence[TakenLog]) -> Iterator[str]:
    models = models_of(log.values for log in taken)
    if models:
        named = (f"{name} ({model or 'model not named'})" for name, model in models.items())
        yield f"jurors: {', '.join(named)}"
    else:
        yield "no scorer rates a criterion of the rubric: there are responses, and no ratings"
    if names := dict.fromkeys(name for log in taken for name in log.not_taken):
        yield f"scorers without points on a criterion of the rubric, not taken: {', '.join(names)}"
