"""`medjury import RUN_DIR`: finished HELM runs into the study, with what their jurors said."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from data.errors import BadInput
from data.importers.finished import summed
from data.importers.helm import HelmRun, finished, is_helm, read_runs, usable, with_task
from data.importers.helm.rating import Difference, Taken, run_figures
from data.queries import benchmarks, juror_cards
from data.queries.study import stored_rubric
from data.rubric import Rubric, read_rubric
from data.rubrics.helm import Unusable
from medjury.cli.import_finished import Told, models_of, store_finished
from medjury.cli.options import rubric_named
from medjury.cli.output import counted
from medjury.cli.places import check_json

COLUMNS = ("run", "benchmark", "responses", "ratings", "missing", "HELM's mean", "mean of verdicts")
CAUSES = {
    "default": "no juror gave a verdict, and HELM's default stands for a score",
    "off_scale": "HELM counted a score that is off the scale",
    "truncated": "HELM cut a fraction off",
    "extra_criterion": "HELM counted something that is no criterion",
    "unreadable": "HELM counted what is no whole verdict",
    "unexplained": "nothing in the run says why",
}
SAME = ("criterion", "scale", "gold", "prompt")


def meant(paths: Sequence[Path], form: str | None) -> bool:
    """Tell whether HELM runs are to be imported: by what the user says, else by the files."""
    return form == "helm" or (form is None and any(is_helm(path) for path in paths))


def bring(
    paths: Sequence[Path],
    benchmark: str | None,
    rubric: str | None,
    json_to: Path | None,
    study: Callable[[], Engine],
) -> None:
    """Read runs, and only when all can be read open the study and store them in one transaction."""
    check_json(json_to)
    runs: list[HelmRun] = []
    skipped: dict[str, str] = {}
    for path in paths:
        found, why = read_runs(path, benchmark)
        runs, skipped = runs + found, skipped | why
    given_away = {run.name: _why_not(run) for run in runs}
    if rubric is None and all(given_away.values()):
        name, reason = next(iter(given_away.items()))
        raise BadInput(f"{name}: {reason}; nothing was imported")
    folder = read_rubric(rubric) if rubric and Path(rubric).is_dir() else None
    if folder:
        for run in runs:
            usable(run, folder)
    engine = study()
    store(engine, runs, skipped, folder or rubric_named(engine, rubric), json_to)


def store(
    engine: Engine,
    runs: Sequence[HelmRun],
    skipped: Mapping[str, str],
    chosen: Rubric | None,
    json_to: Path | None,
) -> None:
    """Store runs, look for authors' names in them, and tell what came of it."""
    left, taken = dict(skipped), []
    shown = {name: _task(engine, name) for name in dict.fromkeys(run.benchmark for run in runs)}
    for read in runs:
        run, task = read, shown[read.benchmark]
        if task is not None:
            run = with_task(read, task)
        shown[run.benchmark] = run.task
        if chosen is None and (why := _why_not(run)):
            left[run.name] = why
        else:
            own = usable(run, chosen) if chosen else run.prompt.rubric()
            kept = _kept(engine, run, own)
            taken.append(Taken(run, kept, *finished(run, kept)))
    store_finished(engine, [one.values for one in taken], _told(taken, left), json_to)


def _task(engine: Engine, benchmark: str) -> str | None:
    """Return the task that a benchmark of the study shows, None where it is new."""
    rubric = next((one.rubric for one in benchmarks(engine) if one.name == benchmark), None)
    first = next(juror_cards(engine, benchmark, rubric), None) if rubric else None
    return first.card.prompt if first else None


def _why_not(run: HelmRun) -> str:
    """Return why a run gives no rubric away, or ""."""
    try:
        run.prompt.rubric()
    except Unusable as error:
        return str(error)
    return ""


def _kept(engine: Engine, run: HelmRun, rubric: Rubric) -> Rubric:
    """Return the study's own rubric where it is the same but for its version: ratings then meet."""
    present = (one.rubric for one in benchmarks(engine) if one.name == run.benchmark)
    known = [*present, stored_rubric(engine, rubric.name)]
    same = (one for one in known if one and all(_of(one, n) == _of(rubric, n) for n in SAME))
    return next(same, rubric)


def _of(rubric: Rubric, name: str) -> Any:
    return getattr(rubric, name)


def _told(taken: Sequence[Taken], left: Mapping[str, str]) -> Told:
    """Return what is told of runs; a difference names none, since that would name the author."""
    differences = [one for run in taken for one in run.differences]
    left_out = summed(one.run.left_out for one in taken)
    return Told(
        "HELM runs",
        COLUMNS,
        [_cells(one) for one in taken],
        rubrics={one.run.benchmark: _rubric(one, taken) for one in taken},
        jurors=_juror_lines(taken),
        last=_difference_lines(differences),
        left_out={what: f"{number}" for what, number in left_out.items()},
        notes=summed(one.run.notes for one in taken),
        skipped=[f"skipped {run}: {why}" for run, why in left.items()],
        body={
            "format": "helm",
            "runs": [run_figures(one) for one in taken],
            "skipped": [{"run": run, "reason": why} for run, why in left.items()],
        },
        end={"differences": [asdict(one) | {"causes": list(one.causes)} for one in differences]},
    )


def _cells(one: Taken) -> list[str]:
    figures = run_figures(one)
    means = (figures["helm_mean"], figures["recomputed_mean"])
    heard = f"{figures['with_any_juror']} of {figures['responses']}"
    shown = ["-" if mean is None else f"{mean:.3f}" for mean in means]
    return [
        one.run.name,
        one.run.benchmark,
        *(str(figures[name]) for name in ("responses", "ratings", "missing")),
        shown[0],
        f"{shown[1]} ({heard})",
    ]


def _rubric(of: Taken, taken: Sequence[Taken]) -> str:
    """Return on what a benchmark is rated, and what is known of the prompt."""
    runs = [one.run for one in taken if one.run.benchmark == of.run.benchmark]
    prompts = sum(run.prompt.checked for run in runs)
    known = f"its jurors' own prompt, held against {counted(prompts, 'prompt')} as sent"
    if any(run.prompt.template is None for run in runs):
        known = "WARNING: the prompt is not in the run; ask no further jurors on this rubric"
    return f"{of.rubric.name} ({of.rubric.scale}): {known}"


def _juror_lines(taken: Sequence[Taken]) -> Iterator[str]:
    models = models_of(one.values for one in taken)
    yield "jurors: " + ", ".join(f"{name} ({model or 'unknown'})" for name, model in models.items())
    if any(one.run.assumed for one in taken):
        yield (
            "WARNING: a run does not name its jurors' models, as HELM up to 0.5.7: the three of "
            "the MedHELM paper are assumed"
        )


def _difference_lines(found: Sequence[Difference]) -> Iterator[str]:
    if found:
        yield f"HELM's score is another than its jurors' verdicts give in {counted(len(found), 'response')}:"
    for cause, words in CAUSES.items():
        if number := sum(cause in one.causes for one in found):
            yield f"  {number} {cause}: {words}"
