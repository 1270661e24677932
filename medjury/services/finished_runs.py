"""Finished runs of HELM and logs of Inspect, stored with their jurors' ratings on the rubric that is theirs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Engine

from data.errors import BadInput, NoStudy
from data.importers.finished import FinishedRun
from data.importers.grades import Grades
from data.importers.helm import HelmRun, read_runs, usable, with_task
from data.importers.helm import finished as finished_helm
from data.importers.helm.run import TakenRun
from data.importers.inspect_logs import (
    InspectLog,
    TakenLog,
    graded_rubric,
    log_files,
    read_inspect,
)
from data.importers.inspect_logs import finished as finished_log
from data.rubric import Rubric, read_rubric
from data.rubrics.helm import Unusable
from data.study.calls import juror_cards
from data.study.families import families_of
from data.study.runs import FinishedAdded, import_finished
from data.study.standing import benchmarks, stored_rubric
from medjury.services.importing import GENERIC, rubric_for
from medjury.services.returned_runs import (
    apart,
    known_rubric,
    rejoined_log,
    rejoined_run,
    rubric_of_prompt,
    rubrics_of,
    shipped_rubrics,
)

SAME = ("criterion", "scale", "gold", "prompt")
Opened = Callable[[], Engine]
RubricNamed = Callable[[Engine, str | None], Rubric | None]


def store_runs(engine: Engine, runs: Iterable[FinishedRun]) -> FinishedAdded:
    """Store runs in one transaction, their jurors with the family that their model's name tells."""
    return import_finished(engine, [_with_families(run) for run in runs])


def _with_families(run: FinishedRun) -> FinishedRun:
    jurors = []
    for juror in run.jurors:
        families = families_of(juror.profile.get("model", ""))
        told = next(iter(families)) if len(families) == 1 else ""
        jurors.append(juror if juror.family else replace(juror, family=told))
    return replace(run, jurors=tuple(jurors))


def helm_runs(
    paths: Sequence[Path],
    benchmark: str | None,
    rubric: str | None,
    study: Opened,
    existing: Opened,
    named: RubricNamed,
) -> tuple[Engine, list[TakenRun], dict[str, str]]:
    """Read runs, and only when all can be read open the study; nothing is stored yet.

    Returns
    -------
    the study, the runs with the rubric of each, and run -> why it was skipped

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
    runs: list[HelmRun] = []
    skipped: dict[str, str] = {}
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
    return _taken_helm(engine, runs, skipped, folder or named(engine, rubric))


def _taken_helm(
    engine: Engine, runs: Sequence[HelmRun], skipped: Mapping[str, str], chosen: Rubric | None
) -> tuple[Engine, list[TakenRun], dict[str, str]]:
    skipped_runs, taken = dict(skipped), []
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
            skipped_runs[run.name] = why
        else:
            rubric = rubric_of_prompt(rubrics, run)
            own = usable(run, chosen) if chosen else rubric or run.rubric()
            taken.append(finished_helm(run, _kept_rubric(engine, run, own)))
    return engine, taken, skipped_runs


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


def inspect_logs(
    paths: Sequence[Path],
    benchmark: str | None,
    rubric: str | None,
    study: Opened,
    named: RubricNamed,
    scale: Grades | None,
) -> tuple[Engine, list[TakenLog], dict[str, str]]:
    """Read logs, and only when all can be read open the study; nothing is stored yet.

    Returns
    -------
    the study, the logs with the rubric of each, and benchmark -> why it is that one

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
    return engine, taken, {log.benchmark: w for log, (_, w) in zip(logs, rubrics, strict=True)}


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
