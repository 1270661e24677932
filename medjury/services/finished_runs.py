"""Finished runs of HELM and logs of Inspect, stored with their jurors' ratings on the rubric that is theirs."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Engine

from calibration.notes import counted
from data.errors import BadInput, NoStudy
from data.importers.finished import FinishedRun, missing
from data.importers.grades import Grades
from data.importers.helm import HelmRun, TakenRun, read_runs, usable, with_task
from data.importers.helm import finished as finished_helm
from data.importers.inspect_logs import (
    GRADED,
    InspectLog,
    TakenLog,
    graded_rubric,
    log_files,
    read_inspect,
)
from data.importers.inspect_logs import finished as finished_log
from data.rubric import Rubric, read_rubric
from data.rubrics.helm import Unusable
from data.study.authors import families_of
from data.study.calls import juror_cards
from data.study.runs import FinishedAdded, import_finished
from data.study.standing import benchmarks, stored_rubric
from medjury.services.importing import GENERIC, OTHER_RUBRIC, rubric_for
from medjury.services.returned_runs import (
    apart,
    known_rubric,
    rejoined_log,
    rejoined_run,
    rubric_of_prompt,
    rubrics_of,
    shipped_rubrics,
)

NEXT = (
    "next: clinicians, on the same rubric: `medjury rate assign` and `medjury serve`, or their ratings "
    "from a file with `medjury rate ratings`; then `medjury analyse calibrate`"
)
CAUSES = {
    "default": "no juror gave a verdict, and HELM's default stands for a score",
    "off_scale": "HELM counted a score that is off the scale",
    "truncated": "HELM cut a fraction off",
    "extra_criterion": "HELM counted something that is no criterion",
    "unreadable": "HELM counted what is no whole verdict",
    "unexplained": "nothing in the run says why",
}
HELM_COLUMNS = (
    "run",
    "benchmark",
    "responses",
    "ratings",
    "missing",
    "HELM's mean",
    "mean of verdicts",
)
INSPECT_COLUMNS = ("log", "benchmark", "status", "responses", "ratings", "missing")
SAME = ("criterion", "scale", "gold", "prompt")
Opened = Callable[[], Engine]
RubricNamed = Callable[[Engine, str | None], Rubric | None]


class Brought(NamedTuple):
    """Finished runs that were stored: a table of them, lines on what came of it, and its JSON."""

    engine: Engine
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    lines: Sequence[str]
    body: Mapping[str, Any]


def bring_helm(
    paths: Sequence[Path],
    benchmark: str | None,
    rubric: str | None,
    study: Opened,
    existing: Opened,
    named: RubricNamed,
) -> Brought:
    """Store finished runs of HELM in one transaction, only when all can be read.

    A difference of HELM's mean names no run, since that would name the author.

    Parameters
    ----------
    paths, benchmark, rubric : as the user names them
    study, existing : open the study; the first makes it if it is not there
    named : gives the rubric that the user names

    Raises
    ------
    BadInput
        If no run gives a rubric away.
    """
    runs, skipped = list[HelmRun](), dict[str, str]()
    for path in paths:
        read, refused = read_runs(path, benchmark)
        runs, skipped = runs + read, skipped | refused
    try:
        rubrics = rubrics_of(existing())
    except NoStudy:
        rubrics = shipped_rubrics()
    whys = {run.name: _why_not(run, rubrics) for run in runs}
    if rubric is None and all(whys.values()):
        name, reason = next(iter(whys.items()))
        raise BadInput(f"{name}: {reason}; nothing was imported")
    folder = read_rubric(rubric) if rubric and Path(rubric).is_dir() else None
    if folder:
        for run in runs:
            usable(run, folder)
    engine = study()
    taken, unusable = _taken_helm(engine, runs, folder or named(engine, rubric))
    skipped |= unusable
    added = import_finished(engine, [_with_families(run.values) for run in taken])
    differences = [difference for run in taken for difference in run.differences]
    rubric_of = {name: _helm_rubric(run, taken) for run in taken for name in run.benchmarks}
    lines = _lines(taken, added, rubric_of, _helm_jurors(taken), differences=differences)
    body = {
        "format": "helm",
        "runs": [run.figures() for run in taken],
        "skipped": [{"run": run, "reason": why} for run, why in skipped.items()],
        **_added_json(added, taken),
        "differences": differences,
    }
    lines += [f"skipped {run}: {why}" for run, why in skipped.items()]
    cells = [_helm_cells(run) for run in taken]
    return Brought(engine, "HELM runs", HELM_COLUMNS, cells, [*lines, NEXT], body)


def bring_inspect(
    paths: Sequence[Path],
    benchmark: str | None,
    rubric: str | None,
    study: Opened,
    named: RubricNamed,
    scale: Grades | None,
) -> Brought:
    """Store logs of Inspect in one transaction, only when all can be read; else as `bring_helm`.

    Raises
    ------
    BadInput
        If one benchmark is named for several tasks, or a rubric is not known.
    """
    logs = [read_inspect(file, benchmark) for path in paths for file in log_files(path)]
    if benchmark and len({log.spec.task for log in logs}) > 1:
        several = ", ".join(sorted({log.spec.task for log in logs}))
        raise BadInput(f"--benchmark {benchmark}: the logs are of several tasks: {several}")
    engine = study()
    chosen = named(engine, rubric)
    logs = [apart(log) if benchmark else rejoined_log(engine, log) for log in logs]
    rubrics = [_inspect_rubric(engine, log, chosen, scale) for log in logs]
    taken = [finished_log(log, own) for log, (own, _) in zip(logs, rubrics, strict=True)]
    why = {log.benchmark: reason for log, (_, reason) in zip(logs, rubrics, strict=True)}
    added = import_finished(engine, [_with_families(log.values) for log in taken])
    rubric_of = {
        name: f"{log.values.rubric.name} ({_points(log.values.rubric)}): {why[log.run.benchmark]}"
        for log in taken
        for name in log.benchmarks
    }
    ended = [
        f"WARNING: {one.run.name}: its run ended with status {one.run.status[:20]}: only "
        "the samples that ended are in the study"
        for one in taken
        if one.run.status != "success"
    ]
    lines = _lines(taken, added, rubric_of, _inspect_jurors(taken), ended, unit="sample")
    figures = [log.figures() for log in taken]
    body = {"format": "inspect", "logs": figures, **_added_json(added, taken)}
    cells = [[row[name] for name in INSPECT_COLUMNS] for row in figures]
    return Brought(engine, "Inspect logs", INSPECT_COLUMNS, cells, [*lines, NEXT], body)


def _lines(
    taken: Sequence[TakenRun] | Sequence[TakenLog],
    added: FinishedAdded,
    rubrics: Mapping[str, str],
    jurors: Iterable[str],
    ended: Iterable[str] = (),
    differences: Sequence[Mapping[str, Any]] = (),
    unit: str = "",
) -> list[str]:
    """Return what came of runs: what was added, on which rubrics, by whom, and what is missing."""
    responses, ratings = added.responses, added.ratings
    lines = [
        f"{counted(responses.responses, 'response')} to {counted(responses.instances, 'new instance')} and "
        f"{counted(ratings.added, 'rating')} imported; {responses.unchanged} and {ratings.unchanged} were "
        f"there already, {ratings.revised} revised an earlier one"
    ]
    if not (responses.responses or ratings.added or ratings.revised or added.failures):
        lines.append("nothing changed")
    lines += ended
    for name, rated in rubrics.items():
        lines.append(f"benchmark {name} is rated on {rated}")
        lines += [OTHER_RUBRIC.format(name)] if name in ratings.other_rubric else []
    lines += jurors
    for juror, statuses in missing([run.values for run in taken]).items():
        words = ", ".join(f"{number} {status}" for status, number in statuses.items())
        lines.append(f"missing: {juror}: {words}")
    if differences:
        differing = counted(len(differences), "response")
        lines.append(f"HELM's score is another than its jurors' verdicts give in {differing}:")
    for cause, words in CAUSES.items():
        if number := sum(cause in difference["causes"] for difference in differences):
            lines.append(f"  {number} {cause}: {words}")
    for reason, number in sum((Counter(run.run.left_out) for run in taken), Counter()).items():
        shown = counted(number, unit) if unit else number
        lines.append(f"left out, as nobody can rate it: {shown} {reason}")
    notes = sum((Counter(run.run.notes) for run in taken), Counter[str]())
    return lines + [f"not in the study: {number} {note}" for note, number in notes.items()]


def _with_families(run: FinishedRun) -> FinishedRun:
    jurors = []
    for juror in run.jurors:
        families = families_of(juror.profile.get("model", ""))
        told = next(iter(families)) if len(families) == 1 else ""
        jurors.append(juror if juror.family else replace(juror, family=told))
    return replace(run, jurors=tuple(jurors))


def _taken_helm(
    engine: Engine, runs: Sequence[HelmRun], chosen: Rubric | None
) -> tuple[list[TakenRun], dict[str, str]]:
    """Return the runs with the rubric of each, and run -> why it was skipped."""
    taken, skipped = list[TakenRun](), dict[str, str]()
    tasks = {name: _task(engine, name) for name in dict.fromkeys(run.benchmark for run in runs)}
    rubrics = rubrics_of(engine)
    for read in runs:
        run, task = read, tasks[read.benchmark]
        if run.origin and (
            own := chosen or known_rubric(engine, run.origin.rubric_sha256, run.origin)
        ):
            run = rejoined_run(engine, run, usable(run, own))
            taken.append(finished_helm(run, own))
            continue
        if task is not None:
            run = with_task(read, task)
        tasks[run.benchmark] = run.task
        if chosen is None and (why := _why_not(run, rubrics)):
            skipped[run.name] = why
        else:
            rubric = rubric_of_prompt(rubrics, run)
            own = usable(run, chosen) if chosen else rubric or run.rubric()
            taken.append(finished_helm(run, _kept_rubric(engine, run, own)))
    return taken, skipped


def _task(engine: Engine, benchmark: str) -> str | None:
    """Return the task that a benchmark of the study shows, None where it is new."""
    rubric = _own_rubric(engine, benchmark)
    first = next(juror_cards(engine, benchmark, rubric), None) if rubric else None
    return first.card.prompt if first else None


def _own_rubric(engine: Engine, benchmark: str) -> Rubric | None:
    return next((one.rubric for one in benchmarks(engine) if one.name == benchmark), None)


def _why_not(run: HelmRun, rubrics: Iterable[Rubric]) -> str:
    """Return why a run gives no rubric away, or ""."""
    if (run.origin and run.origin.rubric()) or rubric_of_prompt(rubrics, run):
        return ""
    try:
        run.rubric()
    except Unusable as error:
        return str(error)
    return ""


def _kept_rubric(engine: Engine, run: HelmRun, rubric: Rubric) -> Rubric:
    """Return the study's own rubric where it is the same but for its version: ratings then meet."""
    present = (stored.rubric for stored in benchmarks(engine) if stored.name == run.benchmark)
    same = (
        candidate
        for candidate in [*present, stored_rubric(engine, rubric.name)]
        if candidate and all(getattr(candidate, n) == getattr(rubric, n) for n in SAME)
    )
    return next(same, rubric)


def _inspect_rubric(
    engine: Engine, log: InspectLog, chosen: Rubric | None, scale: Grades | None
) -> tuple[Rubric, str]:
    """Return the rubric of a log, and why it is that one.

    It is the one our scorer rated on; else the user's, that of the scale which the user names, the
    benchmark's in the study, the shipped one of its name, or one of the graders' own words.

    Raises
    ------
    BadInput
        If our scorer rated on another one, or on one that is not known here.
    """
    sha256 = log.rubric_sha256
    if not sha256:
        return _of_anothers_scorer(log, chosen, _own_rubric(engine, log.benchmark), scale)
    rubric = chosen or known_rubric(engine, sha256, log.origin)
    if rubric and rubric.sha256 == sha256:
        return rubric, "the one that medjury's scorer rated on"
    why = f"{chosen.name} is another" if chosen else "it is not known here"
    raise BadInput(
        f"{log.name}: medjury's scorer rated on the rubric with the hash {sha256[:12]}, and {why}; "
        "give --rubric FOLDER, the folder `rubric` of that export; nothing was imported"
    )


def _of_anothers_scorer(
    log: InspectLog, chosen: Rubric | None, own: Rubric | None, scale: Grades | None
) -> tuple[Rubric, str]:
    """Return the rubric of a log that no scorer of ours rated, and why it is that one."""
    if chosen is not None:
        return chosen, "as --rubric says"
    if scale is not None:
        if graded := graded_rubric(log, scale):
            return graded, "made of the scale that --scale names"
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


def _added_json(
    added: FinishedAdded, taken: Sequence[TakenRun] | Sequence[TakenLog]
) -> dict[str, Any]:
    """Return what an import of runs added, as `medjury study import --json` writes it."""
    return {
        "instances": added.responses.instances,
        "responses": added.responses.responses,
        "responses_unchanged": added.responses.unchanged,
        "ratings": added.ratings.added,
        "ratings_revised": added.ratings.revised,
        "ratings_unchanged": added.ratings.unchanged,
        "failures": added.failures,
        "missing": missing([run.values for run in taken]),
        "other_rubric": sorted(added.ratings.other_rubric),
    }


def _helm_cells(taken: TakenRun) -> list[str]:
    figures = taken.figures()
    means = (figures["helm_mean"], figures["recomputed_mean"])
    rated = f"{figures['with_any_juror']} of {figures['responses']}"
    shown = ["-" if mean is None else f"{mean:.3f}" for mean in means]
    counts = (str(figures[name]) for name in ("responses", "ratings", "missing"))
    return [taken.run.name, taken.run.benchmark, *counts, shown[0], f"{shown[1]} ({rated})"]


def _helm_rubric(of: TakenRun, taken: Sequence[TakenRun]) -> str:
    """Return on what a benchmark is rated, and what is known of the prompt."""
    rubric = of.values.rubric
    runs = [other.run for other in taken if other.run.benchmark == of.run.benchmark]
    prompts = sum(run.checked for run in runs)
    source = f"its jurors' own prompt, held against {counted(prompts, 'prompt')} as sent"
    if any(run.prompt is None and not run.checked for run in runs):
        source = "WARNING: the prompt is not in the run; ask no further jurors on this rubric"
    return f"{rubric.name} ({rubric.scales}): {source}"


def _models_of(taken: Sequence[TakenRun] | Sequence[TakenLog], unknown: str) -> str:
    """Return the jurors with their models."""
    jurors = {juror.handle: juror for run in taken for juror in run.values.jurors}
    named = (f"{name} ({one.profile.get('model') or unknown})" for name, one in jurors.items())
    return ", ".join(named)


def _helm_jurors(taken: Sequence[TakenRun]) -> Iterator[str]:
    yield f"jurors: {_models_of(taken, 'unknown')}"
    if any(run.run.assumed for run in taken):
        yield (
            "WARNING: a run does not name its jurors' models, as HELM up to 0.5.7: the three of "
            "the MedHELM paper are assumed"
        )


def _points(rubric: Rubric) -> str:
    """Return a scale, with the words of its points where it was made of grades."""
    anchors = rubric.criterion[0].anchors
    named = rubric.name == GRADED and len(set(anchors.values())) == len(anchors)
    words = ", ".join(f"{point} {anchors[point]}" for point in sorted(anchors)) if named else ""
    return words or rubric.scales


def _inspect_jurors(taken: Sequence[TakenLog]) -> Iterator[str]:
    if jurors := _models_of(taken, "model not named"):
        yield f"jurors: {jurors}"
    else:
        yield "no scorer rates a criterion of the rubric: there are responses, and no ratings"
    if names := dict.fromkeys(name for log in taken for name in log.not_taken):
        yield f"scorers without points on a criterion of the rubric, not taken: {', '.join(names)}"
