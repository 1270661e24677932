"""`medjury study import RUN_DIR`: finished runs of HELM, and how finished runs of any tool are stored."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from data.errors import BadInput, NoStudy
from data.importers.finished import FinishedRun, add_up, missing
from data.importers.helm import HelmRun, read_runs, usable, with_task
from data.importers.helm import finished as finished_helm
from data.importers.helm.run import TakenRun
from data.rubric import Rubric, read_rubric
from data.rubrics.helm import Unusable
from data.study.calls import juror_cards
from data.study.families import families_of
from data.study.runs import FinishedAdded, import_finished
from data.study.standing import benchmarks, stored_rubric
from medjury.cli.blinding import mask_new
from medjury.cli.files import STANDARD_OUTPUT, write_json
from medjury.cli.options import rubric_named
from medjury.cli.output import counted, room, say, show, width
from medjury.services.returned_runs import (
    known_rubric,
    rejoined_run,
    rubric_of_prompt,
    rubrics_of,
    shipped_rubrics,
)

NEXT = (
    "next: clinicians, on the same rubric: `medjury rate assign` and `medjury serve`, or their ratings "
    "from a file with `medjury rate ratings`; then `medjury analyse calibrate`"
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
SAME = ("criterion", "scale", "gold", "prompt")


@dataclass(frozen=True, slots=True)
class ImportAccount:
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
    engine: Engine, runs: Sequence[FinishedRun], account: ImportAccount, json_to: Path | None
) -> None:
    """Store runs, look for authors' names in them, and tell what came of it."""
    added = import_finished(engine, [_with_families(run) for run in runs])
    _show_runs(account, json_to)
    for line in _lines(runs, account, added):
        say(line, json_to)
    with redirect_stdout(sys.stderr) if json_to == STANDARD_OUTPUT else nullcontext():
        mask_new(engine)  # standard output is left to the figures
    write_json({**account.body, **_added_figures(added, runs), **account.end}, json_to)


def models_of(runs: Iterable[FinishedRun]) -> Mapping[str, Any]:
    """Return juror -> its model, None where it is not named."""
    return {juror.handle: juror.profile.get("model") for run in runs for juror in run.jurors}


def _with_families(run: FinishedRun) -> FinishedRun:
    """Return a run whose jurors have the family that their model's name tells."""
    jurors = (
        juror if juror.family else replace(juror, family=_family(juror.profile.get("model", "")))
        for juror in run.jurors
    )
    return replace(run, jurors=tuple(jurors))


def _family(model: str) -> str:
    families = families_of(model)
    return next(iter(families)) if len(families) == 1 else ""


def _show_runs(account: ImportAccount, json_to: Path | None) -> None:
    """Show runs as a table or, where the screen is too narrow for it, a line each."""
    if width(account.columns, account.rows) <= room(json_to):
        show(account.title, account.columns, account.rows, json_to)
        return
    for run, *cells in account.rows:
        named = (f"{name} {cell}" for name, cell in zip(account.columns[1:], cells, strict=True))
        say(f"{run}: {', '.join(named)}", json_to)


def _lines(
    runs: Sequence[FinishedRun], account: ImportAccount, added: FinishedAdded
) -> Iterator[str]:
    responses, ratings = added.responses, added.ratings
    yield (
        f"{counted(responses.responses, 'response')} to {counted(responses.instances, 'new instance')} and "
        f"{counted(ratings.added, 'rating')} imported; {responses.unchanged} and {ratings.unchanged} were there "
        f"already, {ratings.revised} revised an earlier one"
    )
    if not (responses.responses or ratings.added or ratings.revised or added.failures):
        yield "nothing changed"
    yield from account.first
    for name, rated in account.rubrics.items():
        yield f"benchmark {name} is rated on {rated}"
        if name in ratings.other_rubric:
            yield (
                f"{name} already has ratings on another rubric: these are kept apart and do not "
                "count in calibrate, which reads the benchmark's own rubric"
            )
    yield from account.jurors
    for juror, counts in missing(runs).items():
        counted_statuses = ", ".join(f"{number} {status}" for status, number in counts.items())
        yield f"missing: {juror}: {counted_statuses}"
    yield from account.last
    yield from (
        f"left out, as nobody can rate it: {of} {reason}" for reason, of in account.left_out.items()
    )
    yield from (f"not in the study: {number} {reason}" for reason, number in account.notes.items())
    yield from account.skipped
    yield NEXT


def _added_figures(added: FinishedAdded, runs: Iterable[FinishedRun]) -> dict[str, Any]:
    """Return what an import added, as `medjury study import --json` writes it."""
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
    existing: Callable[[], Engine],
) -> None:
    """Read runs, and only when all can be read open the study and store them in one transaction.

    `study` makes it if it is not there; `existing` does not.
    """
    runs: list[HelmRun] = []
    skipped: dict[str, str] = {}
    for path in paths:
        read, refused = read_runs(path, benchmark)
        runs, skipped = runs + read, skipped | refused
    rubrics = _rubrics_there(existing)
    given_away = {run.name: _why_not(run, rubrics) for run in runs}
    if rubric is None and all(given_away.values()):
        name, reason = next(iter(given_away.items()))
        raise BadInput(f"{name}: {reason}; nothing was imported")
    folder = read_rubric(rubric) if rubric and Path(rubric).is_dir() else None
    if folder:
        for run in runs:
            usable(run, folder)
    engine = study()
    _store_helm(engine, runs, skipped, folder or rubric_named(engine, rubric), json_to)


def _rubrics_there(existing: Callable[[], Engine]) -> list[Rubric]:
    """Return the rubrics of the study, if there is one, and those that ship."""
    try:
        return rubrics_of(existing())
    except NoStudy:
        return shipped_rubrics()


def _store_helm(
    engine: Engine,
    runs: Sequence[HelmRun],
    skipped: Mapping[str, str],
    chosen: Rubric | None,
    json_to: Path | None,
) -> None:
    """Store runs, look for authors' names in them, and tell what came of it."""
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
            named = rubric_of_prompt(rubrics, run)
            own = usable(run, chosen) if chosen else named or run.rubric()
            kept_rubric = _kept_rubric(engine, run, own)
            taken.append(finished_helm(run, kept_rubric))
    store_finished(engine, [run.values for run in taken], _told_helm(taken, skipped_runs), json_to)


def _task(engine: Engine, benchmark: str) -> str | None:
    """Return the task that a benchmark of the study shows, None where it is new."""
    rubric = next(
        (stored.rubric for stored in benchmarks(engine) if stored.name == benchmark), None
    )
    first = next(juror_cards(engine, benchmark, rubric), None) if rubric else None
    return first.card.prompt if first else None


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
    candidates = [*present, stored_rubric(engine, rubric.name)]
    same = (
        candidate
        for candidate in candidates
        if candidate and all(getattr(candidate, n) == getattr(rubric, n) for n in SAME)
    )
    return next(same, rubric)


def _told_helm(taken: Sequence[TakenRun], skipped: Mapping[str, str]) -> ImportAccount:
    """Return what is told of runs; a difference names none, since that would name the author."""
    differences = [difference for run in taken for difference in run.differences]
    left_out = add_up(imported.run.left_out for imported in taken)
    return ImportAccount(
        "HELM runs",
        HELM_COLUMNS,
        [_helm_cells(imported) for imported in taken],
        rubrics={
            name: _helm_rubric(imported, taken)
            for imported in taken
            for name in imported.benchmarks
        },
        jurors=_helm_jurors(taken),
        last=_difference_lines(differences),
        left_out={reason: f"{number}" for reason, number in left_out.items()},
        notes=add_up(imported.run.notes for imported in taken),
        skipped=[f"skipped {run}: {why}" for run, why in skipped.items()],
        body={
            "format": "helm",
            "runs": [imported.figures() for imported in taken],
            "skipped": [{"run": run, "reason": why} for run, why in skipped.items()],
        },
        end={"differences": differences},
    )


def _helm_cells(imported: TakenRun) -> list[str]:
    figures = imported.figures()
    means = (figures["helm_mean"], figures["recomputed_mean"])
    rated = f"{figures['with_any_juror']} of {figures['responses']}"
    shown = ["-" if mean is None else f"{mean:.3f}" for mean in means]
    return [
        imported.run.name,
        imported.run.benchmark,
        *(str(figures[name]) for name in ("responses", "ratings", "missing")),
        shown[0],
        f"{shown[1]} ({rated})",
    ]


def _helm_rubric(of: TakenRun, taken: Sequence[TakenRun]) -> str:
    """Return on what a benchmark is rated, and what is known of the prompt."""
    rubric = of.values.rubric
    runs = [other.run for other in taken if other.run.benchmark == of.run.benchmark]
    prompts = sum(run.checked for run in runs)
    source = f"its jurors' own prompt, held against {counted(prompts, 'prompt')} as sent"
    if any(run.prompt is None and not run.checked for run in runs):
        source = "WARNING: the prompt is not in the run; ask no further jurors on this rubric"
    return f"{rubric.name} ({rubric.scale}): {source}"


def _helm_jurors(taken: Sequence[TakenRun]) -> Iterator[str]:
    models = models_of(run.values for run in taken)
    yield "jurors: " + ", ".join(f"{name} ({model or 'unknown'})" for name, model in models.items())
    if any(run.run.assumed for run in taken):
        yield (
            "WARNING: a run does not name its jurors' models, as HELM up to 0.5.7: the three of "
            "the MedHELM paper are assumed"
        )


def _difference_lines(differences: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if differences:
        yield f"HELM's score is another than its jurors' verdicts give in {counted(len(differences), 'response')}:"
    for cause, words in CAUSES.items():
        if number := sum(cause in difference["causes"] for difference in differences):
            yield f"  {number} {cause}: {words}"
