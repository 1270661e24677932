"""`medjury import LOG`: finished runs of Inspect into the study, with what their scorers said."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from data.errors import BadInput
from data.importers.finished import summed
from data.importers.inspect_logs import (
    InspectLog,
    Taken,
    finished,
    is_inspect,
    log_files,
    read_inspect,
)
from data.queries import benchmarks
from data.queries.study import stored_rubric
from data.rubric import Rubric, read_rubric, shipped
from medjury.cli.import_finished import Told, models_of, store_finished
from medjury.cli.options import rubric_named
from medjury.cli.output import counted
from medjury.cli.places import check_json

COLUMNS = ("log", "benchmark", "status", "responses", "ratings", "missing")
RubricFor = Callable[[str], Rubric]


def meant(paths: Sequence[Path], form: str | None) -> bool:
    """Tell whether logs of Inspect are to be imported: by what the user says, else by the files."""
    return form == "inspect" or (form is None and any(is_inspect(path) for path in paths))


def bring(
    paths: Sequence[Path],
    benchmark: str | None,
    rubric: str | None,
    json_to: Path | None,
    study: Callable[[], Engine],
    rubric_for: RubricFor,
) -> None:
    """Read logs, and only when all can be read open the study and store them in one transaction."""
    check_json(json_to)
    logs = [read_inspect(one, benchmark) for path in paths for one in log_files(path)]
    if benchmark and len({one.spec.task for one in logs}) > 1:
        several = ", ".join(sorted({one.spec.task for one in logs}))
        raise BadInput(f"--benchmark {benchmark}: the logs are of several tasks: {several}")
    engine = study()
    chosen = rubric_named(engine, rubric)
    taken = [finished(log, _rubric(engine, log, chosen, rubric_for)) for log in logs]
    store_finished(engine, [one.values for one in taken], _told(taken), json_to)


def _rubric(
    engine: Engine, log: InspectLog, chosen: Rubric | None, rubric_for: RubricFor
) -> Rubric:
    """Return the rubric of a log: the one our scorer rated on, the user's, or the benchmark's.

    Raises
    ------
    BadInput
        If our scorer rated on another one, or on one that is not known here.
    """
    own = next((one.rubric for one in benchmarks(engine) if one.name == log.benchmark), None)
    wanted = log.rubric_sha256
    if not wanted:
        return chosen or own or rubric_for(log.benchmark)
    known = [own, *(one.rubric for one in benchmarks(engine))]
    known += [one for name in shipped() for one in (stored_rubric(engine, name), read_rubric(name))]
    for one in [chosen] if chosen else known:
        if one is not None and one.sha256 == wanted:
            return one
    why = f"{chosen.name} is another" if chosen else "it is not known here"
    raise BadInput(
        f"{log.name}: medjury's scorer rated on the rubric with the hash {wanted[:12]}, and {why}; "
        "give --rubric FOLDER, the folder `rubric` of that export; nothing was imported"
    )


def _told(taken: Sequence[Taken]) -> Told:
    """Return what is told of logs."""
    figures = [_figures(one) for one in taken]
    rubrics = {one.log.benchmark: one.values.rubric for one in taken}
    left_out = summed(one.log.left_out for one in taken)
    return Told(
        "Inspect logs",
        COLUMNS,
        [[str(one[name]) for name in COLUMNS] for one in figures],
        first=[
            f"WARNING: {one.log.name}: its run ended with status {one.log.status[:20]}: only "
            "the samples that ended are in the study"
            for one in taken
            if one.log.status != "success"
        ],
        rubrics={name: f"{rubric.name} ({rubric.scale})" for name, rubric in rubrics.items()},
        jurors=_juror_lines(taken),
        left_out={what: counted(number, "sample") for what, number in left_out.items()},
        notes=summed(one.log.notes for one in taken),
        body={"format": "inspect", "logs": figures},
    )


def _figures(one: Taken) -> dict[str, Any]:
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


def _juror_lines(taken: Sequence[Taken]) -> Iterator[str]:
    models = models_of(one.values for one in taken)
    if models:
        told = (f"{name} ({model or 'model not named'})" for name, model in models.items())
        yield f"jurors: {', '.join(told)}"
    else:
        yield "no scorer rates a criterion of the rubric: there are responses, and no ratings"
    if names := dict.fromkeys(name for one in taken for name in one.not_taken):
        yield f"scorers without points on a criterion of the rubric, not taken: {', '.join(names)}"
