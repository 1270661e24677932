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
from data.queries import benchmarks
from data.rubric import Rubric
from medjury.cli.import_runs import Told, models_of, store_finished
from medjury.cli.options import rubric_named
from medjury.cli.output import counted
from medjury.cli.places import check_json
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
    check_json(json_to)
    logs = [read_inspect(one, benchmark) for path in paths for one in log_files(path)]
    if benchmark and len({one.spec.task for one in logs}) > 1:
        several = ", ".join(sorted({one.spec.task for one in logs}))
        raise BadInput(f"--benchmark {benchmark}: the logs are of several tasks: {several}")
    engine = study()
    chosen = rubric_named(engine, rubric)
    logs = [apart(one) if benchmark else rejoined_log(engine, one) for one in logs]
    found = [_inspect_rubric(engine, log, chosen, rubric_for, scale) for log in logs]
    taken = [finished_log(log, rubric) for log, (rubric, _) in zip(logs, found, strict=True)]
    why = {log.benchmark: reason for log, (_, reason) in zip(logs, found, strict=True)}
    store_finished(engine, [one.values for one in taken], _told_inspect(taken, why), json_to)


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
    own = next((one.rubric for one in benchmarks(engine) if one.name == log.benchmark), None)
    wanted = log.rubric_sha256
    if not wanted:
        return _of_anothers_scorer(log, chosen, own, rubric_for, scale)
    found = chosen or known_rubric(engine, wanted, log.origin)
    if found and found.sha256 == wanted:
        return found, "the one that medjury's scorer rated on"
    why = f"{chosen.name} is another" if chosen else "it is not known here"
    raise BadInput(
        f"{log.name}: medjury's scorer rated on the rubric with the hash {wanted[:12]}, and {why}; "
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
    if graded := graded_rubric(log):
        return graded, "made of its graders' own words, from worst to best"
    return shipped_one, (
        "as neither --rubric, the study nor a shipped rubric names one; --scale 0-1 or --scale "
        "bad,good takes a scorer's single values on a scale of their own"
    )


def _told_inspect(taken: Sequence[TakenLog], why: Mapping[str, str]) -> Told:
    """Return what is told of logs."""
    figures = [_inspect_figures(one) for one in taken]
    rubrics = {
        name: (one.values.rubric, why[one.log.benchmark])
        for one in taken
        for name in one.benchmarks
    }
    left_out = add_up(one.log.left_out for one in taken)
    return Told(
        "Inspect logs",
        INSPECT_COLUMNS,
        [[str(one[name]) for name in INSPECT_COLUMNS] for one in figures],
        first=[
            f"WARNING: {one.log.name}: its run ended with status {one.log.status[:20]}: only "
            "the samples that ended are in the study"
            for one in taken
            if one.log.status != "success"
        ],
        rubrics={
            name: f"{rubric.name} ({_points(rubric)}): {reason}"
            for name, (rubric, reason) in rubrics.items()
        },
        jurors=_inspect_jurors(taken),
        left_out={what: counted(number, "sample") for what, number in left_out.items()},
        notes=add_up(one.log.notes for one in taken),
        body={"format": "inspect", "logs": figures},
    )


def _points(rubric: Rubric) -> str:
    """Return a scale, with the words of its points where it was made of grades."""
    anchors = rubric.criterion[0].anchors
    named = rubric.name == GRADED and len(set(anchors.values())) == len(anchors)
    words = ", ".join(f"{point} {anchors[point]}" for point in sorted(anchors)) if named else ""
    return words or f"{rubric.scale}"


def _inspect_figures(one: TakenLog) -> dict[str, Any]:
    """Return the figures of one log, as `--json` writes them."""
    return {
        "log": one.log.name,
        "benchmark": one.log.benchmark,
        "status": one.log.status,
        "rubric": one.values.rubric.name,
        "rubric_sha256": one.values.rubric.sha256,
        "jurors": [{"name": j.handle, "model": j.profile.get("model")} for j in one.values.jurors],
        "scorers_not_taken": list(one.not_taken),
        "instances": len({row.instance_id for row in one.values.responses}),
        "responses": len(one.values.responses),
        "ratings": len(one.values.ratings),
        "missing": len(one.values.failures),
        "left_out": dict(one.log.left_out),
        "notes": dict(one.log.notes),
    }


def _inspect_jurors(taken: Sequence[TakenLog]) -> Iterator[str]:
    models = models_of(one.values for one in taken)
    if models:
        told = (f"{name} ({model or 'model not named'})" for name, model in models.items())
        yield f"jurors: {', '.join(told)}"
    else:
        yield "no scorer rates a criterion of the rubric: there are responses, and no ratings"
    if names := dict.fromkeys(name for one in taken for name in one.not_taken):
        yield f"scorers without points on a criterion of the rubric, not taken: {', '.join(names)}"
