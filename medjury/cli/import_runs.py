"""`medjury import RUN_DIR|LOG`: finished runs of HELM and Inspect, with what their jurors said."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from data.errors import BadInput
from data.importers.finished import FinishedRun, missing, summed
from data.importers.grades import Grades
from data.importers.helm import HelmRun, read_runs, usable, with_task
from data.importers.helm import finished as finished_helm
from data.importers.helm.rating import Difference, run_figures
from data.importers.helm.rating import Taken as TakenRun
from data.importers.inspect_logs import GRADED, InspectLog, graded_rubric, log_files, read_inspect
from data.importers.inspect_logs import Taken as TakenLog
from data.importers.inspect_logs import finished as finished_log
from data.queries import benchmarks, juror_cards
from data.queries.families import families_of
from data.queries.study import stored_rubric
from data.rubric import Rubric, read_rubric, shipped
from data.rubrics.helm import Unusable
from data.store.finished_runs import FinishedAdded, import_finished
from medjury.cli.blinding import mask_new
from medjury.cli.options import rubric_named
from medjury.cli.output import counted, room, say, show, width
from medjury.cli.places import STANDARD_OUTPUT, check_json, write_json

NEXT = (
    "next: clinicians, on the same rubric: `medjury assign` and `medjury serve`, or their ratings "
    "from a file with `medjury ratings`; then `medjury calibrate`"
)
HELM_COLUMNS = (
    "run",
    "benchmark",
    "responses",
    "ratings",
    "missing",
    "HELM's mean",
    "mean of verdicts",
)
CAUSES = {
    "default": "no juror gave a verdict, and HELM's default stands for a score",
    "off_scale": "HELM counted a score that is off the scale",
    "truncated": "HELM cut a fraction off",
    "extra_criterion": "HELM counted something that is no criterion",
    "unreadable": "HELM counted what is no whole verdict",
    "unexplained": "nothing in the run says why",
}
GENERIC = "generic"
SAME = ("criterion", "scale", "gold", "prompt")
INSPECT_COLUMNS = ("log", "benchmark", "status", "responses", "ratings", "missing")
RubricFor = Callable[[str], Rubric]


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of finished runs beside what came of storing them.

    Attributes
    ----------
    title, columns, rows
        Their table.
    first, jurors, last
        Lines: before all others, of the jurors, and after the jurors.
    rubrics
        Benchmark -> on what it is rated.
    left_out, notes, skipped
        What nobody can rate, and what else is not in the study -> how many; runs not read.
    body, end
        What `--json` has before and after the figures of what was added.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[list[str]]
    rubrics: Mapping[str, str]
    jurors: Iterable[str]
    left_out: Mapping[str, str]
    notes: Mapping[str, int]
    body: Mapping[str, Any]
    skipped: Iterable[str] = ()
    first: Iterable[str] = ()
    last: Iterable[str] = ()
    end: Mapping[str, Any] = field(default_factory=dict)


def store_finished(
    engine: Engine, runs: Sequence[FinishedRun], told: Told, json_to: Path | None
) -> None:
    """Store runs, look for authors' names in them, and tell what came of it."""
    added = import_finished(engine, [_with_families(one) for one in runs])
    _show_runs(told, json_to)
    for line in _lines(runs, told, added):
        say(line, json_to)
    with redirect_stdout(sys.stderr) if json_to == STANDARD_OUTPUT else nullcontext():
        mask_new(engine)  # standard output is left to the figures
    write_json({**told.body, **_added_figures(added, runs), **told.end}, json_to)


def models_of(runs: Iterable[FinishedRun]) -> Mapping[str, Any]:
    """Return juror -> its model, None where it is not named."""
    return {juror.handle: juror.profile.get("model") for one in runs for juror in one.jurors}


def _with_families(run: FinishedRun) -> FinishedRun:
    """Return a run whose jurors have the family that their model's name tells."""
    jurors = tuple(replace(one, family=_family(one.profile.get("model", ""))) for one in run.jurors)
    return replace(run, jurors=jurors)


def _family(model: str) -> str:
    found = families_of(model)
    return next(iter(found)) if len(found) == 1 else ""


def _show_runs(told: Told, json_to: Path | None) -> None:
    """Show runs as a table or, where the screen is too narrow for it, a line each."""
    if width(told.columns, told.rows) <= room(json_to):
        show(told.title, told.columns, told.rows, json_to)
        return
    for run, *cells in told.rows:
        named = (f"{name} {cell}" for name, cell in zip(told.columns[1:], cells, strict=True))
        say(f"{run}: {', '.join(named)}", json_to)


def _lines(runs: Sequence[FinishedRun], told: Told, added: FinishedAdded) -> Iterator[str]:
    new, old = added.responses, added.ratings
    yield (
        f"{counted(new.responses, 'response')} to {counted(new.instances, 'new instance')} and "
        f"{counted(old.added, 'rating')} imported; {new.unchanged} and {old.unchanged} were there "
        f"already, {old.revised} revised an earlier one"
    )
    if not (new.responses or old.added or old.revised or added.failures):
        yield "nothing changed"
    yield from told.first
    for name, rated in told.rubrics.items():
        yield f"benchmark {name} is rated on {rated}"
        if name in old.other_rubric:
            yield (
                f"{name} already has ratings on another rubric: these are kept apart and do not "
                "count in calibrate, which reads the benchmark's own rubric"
            )
    yield from told.jurors
    for juror, counts in missing(runs).items():
        each = ", ".join(f"{number} {status}" for status, number in counts.items())
        yield f"missing: {juror}: {each}"
    yield from told.last
    yield from (
        f"left out, as nobody can rate it: {of} {what}" for what, of in told.left_out.items()
    )
    yield from (f"not in the study: {number} {what}" for what, number in told.notes.items())
    yield from told.skipped
    yield NEXT


def _added_figures(added: FinishedAdded, runs: Iterable[FinishedRun]) -> dict[str, Any]:
    """Return what an import added, as `medjury import --json` writes it."""
    return {
        "instances": added.responses.instances,
        "responses": added.responses.responses,
        "responses_unchanged": added.responses.unchanged,
        "ratings": added.ratings.added,
        "ratings_revised": added.ratings.revised,
        "ratings_unchanged": added.ratings.unchanged,
        "failures": added.failures,
        "missing": missing(runs),
        "other_rubric": sorted(added.ratings.other_rubric),
    }


def bring_helm(
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
    _store_helm(engine, runs, skipped, folder or rubric_named(engine, rubric), json_to)


def _store_helm(
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
            kept = _kept_rubric(engine, run, own)
            taken.append(TakenRun(run, kept, *finished_helm(run, kept)))
    store_finished(engine, [one.values for one in taken], _told_helm(taken, left), json_to)


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


def _kept_rubric(engine: Engine, run: HelmRun, rubric: Rubric) -> Rubric:
    """Return the study's own rubric where it is the same but for its version: ratings then meet."""
    present = (one.rubric for one in benchmarks(engine) if one.name == run.benchmark)
    known = [*present, stored_rubric(engine, rubric.name)]
    same = (one for one in known if one and all(_of(one, n) == _of(rubric, n) for n in SAME))
    return next(same, rubric)


def _of(rubric: Rubric, name: str) -> Any:
    return getattr(rubric, name)


def _told_helm(taken: Sequence[TakenRun], left: Mapping[str, str]) -> Told:
    """Return what is told of runs; a difference names none, since that would name the author."""
    differences = [one for run in taken for one in run.differences]
    left_out = summed(one.run.left_out for one in taken)
    return Told(
        "HELM runs",
        HELM_COLUMNS,
        [_helm_cells(one) for one in taken],
        rubrics={one.run.benchmark: _helm_rubric(one, taken) for one in taken},
        jurors=_helm_jurors(taken),
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


def _helm_cells(one: TakenRun) -> list[str]:
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


def _helm_rubric(of: TakenRun, taken: Sequence[TakenRun]) -> str:
    """Return on what a benchmark is rated, and what is known of the prompt."""
    runs = [one.run for one in taken if one.run.benchmark == of.run.benchmark]
    prompts = sum(run.prompt.checked for run in runs)
    known = f"its jurors' own prompt, held against {counted(prompts, 'prompt')} as sent"
    if any(run.prompt.template is None for run in runs):
        known = "WARNING: the prompt is not in the run; ask no further jurors on this rubric"
    return f"{of.rubric.name} ({of.rubric.scale}): {known}"


def _helm_jurors(taken: Sequence[TakenRun]) -> Iterator[str]:
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
    known = [own, *(one.rubric for one in benchmarks(engine))]
    known += [one for name in shipped() for one in (stored_rubric(engine, name), read_rubric(name))]
    for one in [chosen] if chosen else known:
        if one is not None and one.sha256 == wanted:
            return one, "the one that medjury's scorer rated on"
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
    rubrics = {one.log.benchmark: one.values.rubric for one in taken}
    left_out = summed(one.log.left_out for one in taken)
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
            name: f"{rubric.name} ({_points(rubric)}): {why[name]}"
            for name, rubric in rubrics.items()
        },
        jurors=_inspect_jurors(taken),
        left_out={what: counted(number, "sample") for what, number in left_out.items()},
        notes=summed(one.log.notes for one in taken),
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
