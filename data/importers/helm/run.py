"""HELM runs in folders: benchmark, author, jurors and their verdicts."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from data.errors import BadFile, BadInput
from data.importers.finished import ExportOrigin, ResponsePlace, origin_of, place_of
from data.importers.helm.files import (
    SPEC,
    STATE,
    ClassSpec,
    HelmInstance,
    RequestState,
    RunSpec,
    States,
    Stored,
    read_part,
    read_stored,
    wrong,
)
from data.importers.helm.prompts import FilledPrompt, JuryPrompt, prompt_of
from data.importers.rows import JurorRecord, Origin, ResponseRow, checklist_of, made_id

METRIC = "LLMJuryMetric"
SOURCE = "HELM run"
OWN = "medjury"  # the key under which our own plugin keeps what it says
# HELM 0.5.5 to 0.5.7 had these three in its code, and a run does not name them.
DEFAULT_JURORS = {
    "gpt": "openai/gpt-4o-2024-05-13",
    "llama": "meta/llama-3.3-70b-instruct",
    "claude": "anthropic/claude-3-7-sonnet-20250219",
}
Verdicts = Mapping[str, Any]
PARTS = re.compile(r"[:,]")
ASIDE = {"eval_cache", "groups"}  # of a suite, beside its runs
DEEPEST = 4  # folders from the one that is named down to a run


def ratable_answers(
    states: list[RequestState],
) -> tuple[list[tuple[int, RequestState]], dict[str, int]]:
    """Return the answers that can be rated, with their numbers, and why others are left out."""
    taken, left_out = [], Counter[str]()
    for number, state in enumerate(states, start=1):
        if why := _exclusion_reason(state):
            left_out[why] += 1
        else:
            taken.append((number, state))
    return taken, dict(left_out)


def _exclusion_reason(state: RequestState) -> str:
    """Return why an answer cannot be rated, or ""."""
    instance = state.instance
    reasons = {
        "perturbed": instance.perturbation is not None,
        "training instance": instance.split == "train",
        "redacted": instance.input.redacted or state.output.redacted,
        "empty question": instance.input.absent,
        "empty response": state.output.absent,
    }
    return next((why for why, holds in reasons.items() if holds), "")


def notes_of(states: Iterator[RequestState]) -> dict[str, int]:
    """Count the parts of ratable answers that a study does not take."""
    counts = Counter[str]()
    for state in states:
        counts["redacted reference"] += state.gold.redacted
        counts["further reference"] += max(0, len(state.instance.references) - 1)
        counts["further completion"] += len(state.result.completions) - 1 if state.result else 0
    return {note: number for note, number in counts.items() if number}


def metric_of(spec: RunSpec) -> ClassSpec | None:
    """Return the specification of the jury's metric; None in HELM 0.5.5 to 0.5.7."""
    ours = (metric for metric in spec.metric_specs if metric.class_name.endswith(f".{METRIC}"))
    return next(ours, None)


def jurors_of(spec: RunSpec, verdicts: Iterable[Verdicts]) -> tuple[tuple[JurorRecord, ...], bool]:
    """Return the jurors of a run, and whether their models are assumed."""
    specs = [
        class_spec.args for class_spec in (metric_of(spec), *(spec.annotators or ())) if class_spec
    ]
    models = (args.get("annotator_models") for args in specs)
    named = next((listed for listed in models if listed and isinstance(listed, dict)), None)
    answering = dict.fromkeys(name for verdict in verdicts for name in verdict)
    assumed = named is None and set(answering) <= set(DEFAULT_JURORS)
    settings_of = named or (
        {name: {"model_name": DEFAULT_JURORS[name]} for name in DEFAULT_JURORS} if assumed else {}
    )
    names = dict.fromkeys([*settings_of, *answering])
    return tuple(_juror(name, settings_of.get(name)) for name in names), assumed


def _juror(name: str, body: object) -> JurorRecord:
    """Return a juror with the model that the run names."""
    settings = body if isinstance(body, dict) else {}
    keys = {"model": "model_name", "deployment": "model_deployment"}
    profile = {ours: str(settings[theirs]) for ours, theirs in keys.items() if settings.get(theirs)}
    return JurorRecord(name, {"provider": SOURCE} | profile)


class NoJury(ValueError):
    """A run without anything to import, with the reason."""


@dataclass(frozen=True, slots=True)
class JudgedResponse:
    """A response as a row of the study, with its verdicts from HELM's jury.

    Attributes
    ----------
    said
        Juror -> what stands there; a juror whose reply HELM could not use is not in it.
    stored
        The score that HELM gives the response, None where the run does not hold it.
    own
        Juror -> what our own plugin keeps of it; None where another annotator asked.
    place
        Where the response belongs in the study that the plugin was exported from.
    sent
        The prompt that jurors were sent, None where the run does not hold it.
    gold
        The reference as HELM shows it.
    """

    row: ResponseRow
    said: Verdicts
    stored: float | None
    own: Verdicts | None = None
    place: ResponsePlace | None = None
    sent: str | None = None
    gold: str = ""


@dataclass(frozen=True, slots=True)
class HelmRun:
    """A run with a jury.

    Attributes
    ----------
    own_name
        What HELM calls the benchmark, where `benchmark` is the user's name for it.
    left_out
        Reason -> answers that were not taken.
    notes
        Of what was taken: texts that are redacted, further references and completions.
    assumed
        Whether the jurors' models are not in the run but known from HELM's release.
    origin
        What our own export was of, None where the run is not of our plugin.
    template
        What our own plugin filled in for data that are not the study's.
    """

    name: str
    benchmark: str
    own_name: str
    jurors: tuple[JurorRecord, ...]
    judged: tuple[JudgedResponse, ...]
    prompt: JuryPrompt
    stored: Stored
    left_out: Mapping[str, int]
    notes: Mapping[str, int]
    assumed: bool
    origin: ExportOrigin | None = None
    template: str = ""

    @property
    def task(self) -> str:
        """Return the instruction that goes before every instance."""
        return self.judged[0].row.prompt


def with_task(run: HelmRun, task: str) -> HelmRun:
    """Return a run whose instances show another run's instruction, which is noted if it differs.

    HELM may instruct each model otherwise, while an instance of a study has one task. Its jurors
    are shown none.
    """
    if run.task == task:
        return run
    judged = tuple(replace(answer, row=replace(answer.row, prompt=task)) for answer in run.judged)
    notes = {"instruction of its own": len(judged)} | dict(run.notes)
    return replace(run, judged=judged, notes=notes)


def read_run(folder: Path, name: str, benchmark: str | None = None) -> HelmRun:
    """Read one run folder, its benchmark under HELM's name or another one.

    Raises
    ------
    NoJury
        If it is unfinished, or no jury took part in it.
    BadFile
        If a file of it cannot be read as HELM's.
    """
    _refuse_unfinished(folder)
    spec = read_part(folder, SPEC, RunSpec)
    states = read_part(folder, STATE, States).request_states
    key = _annotator(spec, states)
    if key is None:
        raise NoJury("no jury took part in it: HELM's other figures are no ratings")
    own_name = benchmark_of(spec)
    benchmark = benchmark or own_name
    taken, left_out = ratable_answers(states)
    if not taken:
        reasons = ", ".join(f"{number} {why}" for why, number in left_out.items())
        raise NoJury(f"nothing to rate in it: {reasons or 'no answers'}")
    stored = read_stored(folder, metric_of(spec), key)
    model = spec.adapter_spec.model or spec.adapter_spec.model_deployment
    if not model.strip():
        raise wrong(folder, SPEC, "adapter_spec.model is missing: who wrote the responses?")
    questions = [_filled_prompt(state, key) for _, state in taken]
    judged = tuple(
        JudgedResponse(
            _response_row(spec, benchmark, model, Origin(f"{name}/{STATE}", number), state),
            _verdicts_of(state, key),
            stored.of(str(state.instance.id), state.train_trial_index),
            *_plugin_record(state, key),
            sent=question.prompt,
            gold=state.gold.said,
        )
        for (number, state), question in zip(taken, questions, strict=True)
    )
    jurors, assumed = jurors_of(spec, [answer.said for answer in judged])
    args = _template_settings(spec)
    prompt = prompt_of(key, args, questions)
    notes = _other_annotators(key, states) | notes_of(state for _, state in taken)
    return HelmRun(
        *(name, benchmark, own_name, jurors, judged, prompt, stored, left_out, notes, assumed),
        origin=origin_of(args.get("origin")),
        template=str(args.get("prompt_template", "")).replace("$$", "$"),
    )


def _refuse_unfinished(folder: Path) -> None:
    """Refuse a folder that lacks what a run writes at its end."""
    for file in (SPEC, STATE):
        if not (folder / file).is_file():
            raise NoJury(f"{file} is not there: the run did not end, or is not copied in full")


def _template_settings(spec: RunSpec) -> dict[str, Any]:
    """Return the arguments of the annotator with a prompt template; empty if there is none."""
    settings = (
        annotator.args for annotator in spec.annotators or () if "prompt_template" in annotator.args
    )
    return next(settings, {})


def _annotator(spec: RunSpec, states: list[RequestState]) -> str | None:
    """Return the key of the jury's annotations, None if there is no jury."""
    stands = [
        key
        for state in states
        for key, annotation in (state.annotations or {}).items()
        if _is_jury(annotation)
    ]
    metric = metric_of(spec)
    named = metric.args.get("scenario_name") if metric else None
    return str(named) if named in stands else next(iter(stands), None)


def _other_annotators(key: str, states: list[RequestState]) -> dict[str, int]:
    """Count other annotators that asked models, which are not imported."""
    stands = {
        name
        for state in states
        for name, annotation in (state.annotations or {}).items()
        if _is_jury(annotation)
    }
    return {"further annotator": len(stands) - 1} if stands - {key} else {}


def _is_jury(annotation: object) -> bool:
    """Tell whether an annotation is a jury's: it holds a prompt, or scores by juror and criterion."""
    if not isinstance(annotation, dict):
        return False
    return "prompt_text" in annotation or (
        bool(annotation) and all(map(_holds_scores, annotation.values()))
    )


def _holds_scores(verdict: object) -> bool:
    return (
        isinstance(verdict, dict)
        and bool(verdict)
        and all(isinstance(answer, dict) and "score" in answer for answer in verdict.values())
    )


def _checklist(instance: HelmInstance) -> str:
    """Return the checklist of an instance, as medhelm's HealthBench has it."""
    items = (instance.extra_data or {}).get("rubrics")
    return checklist_of(items if isinstance(items, list) else ())


def benchmark_of(spec: RunSpec) -> str:
    """Return the benchmark: the run's name with the scenario's arguments only."""
    base, *parts = PARTS.split(spec.name)
    pairs = (part.partition("=") for part in parts)
    own = [
        f"{key}={value}"
        for key, _, value in pairs
        if str(spec.scenario_spec.args.get(key)) == value and key != "config_path"
    ]
    return ",".join([base, *own])


def _response_row(
    spec: RunSpec, benchmark: str, model: str, origin: Origin, state: RequestState
) -> ResponseRow:
    """Return an answer as a row; its id does not depend on the model."""
    instance, text, trial = state.instance, state.output.said, state.train_trial_index
    again = [str(trial)] if trial else []
    if not instance.id:
        raise origin.wrong("instance_id", "", "HELM gives every instance an id")
    return ResponseRow(
        origin=origin,
        instance_id=instance.id,
        benchmark=benchmark,
        context=instance.input.said,
        prompt=spec.adapter_spec.task,
        checklist=_checklist(instance) or None,
        reference=None if state.gold.absent else state.gold.said,
        response_id=made_id(benchmark, instance.id, text, *again),
        id_made=True,
        model=model,
        response=text,
    )


def _verdicts_of(state: RequestState, key: str) -> Verdicts:
    """Return each juror's verdict by its name."""
    annotation = (state.annotations or {}).get(key)
    if not isinstance(annotation, dict):
        return {}
    return {
        name: verdict
        for name, verdict in annotation.items()
        if isinstance(verdict, dict) and name != OWN
    }


def _plugin_record(state: RequestState, key: str) -> tuple[Verdicts | None, ResponsePlace | None]:
    """Return our own plugin's record of each juror, and the response's place in its study."""
    body = ((state.annotations or {}).get(key) or {}).get(OWN)
    if not isinstance(body, dict) or not isinstance(body.get("jurors"), dict):
        return None, None
    return body["jurors"], place_of(body.get("place"))


def _filled_prompt(state: RequestState, key: str) -> FilledPrompt:
    """Return a filled prompt with the texts filled in."""
    annotation = (state.annotations or {}).get(key)
    verdicts = annotation if isinstance(annotation, dict) else {}
    prompt = verdicts.get("prompt_text")
    return FilledPrompt(
        prompt if isinstance(prompt, str) and "[redacted]" not in prompt else None,
        state.instance.input.said,
        state.output.said,
        state.gold.said,
        tuple(
            tuple(verdict)
            for name, verdict in verdicts.items()
            if isinstance(verdict, dict) and name != OWN
        ),
    )


def is_helm(path: Path) -> bool:
    """Tell whether a path is a HELM run, one of its two main files, or a folder with runs in it."""
    return path.name in (SPEC, STATE) or bool(path.is_dir() and run_folders(path))


def read_runs(path: Path, benchmark: str | None = None) -> tuple[list[HelmRun], dict[str, str]]:
    """Read every run with a jury at or under a path.

    Returns
    -------
    The runs, and for each run folder that is left out the reason. At least one run.

    Raises
    ------
    BadFile
        If there is none, or a file of one cannot be read.
    BadInput
        If a benchmark's name is given, and the runs are of several.
    """
    start = path.parent if path.name in (SPEC, STATE) else path
    runs, skipped = [], {}
    for folder in run_folders(start):
        name = folder.resolve().name if folder == start else str(folder.relative_to(start))
        try:
            runs.append(read_run(folder, name, benchmark))
        except NoJury as reason:
            skipped[name] = str(reason)
    if not runs:
        raise BadFile(f"{path}: {_why_none(skipped)}; nothing was imported")
    if benchmark and len({run.own_name for run in runs}) > 1:
        several = ", ".join(sorted({run.own_name for run in runs}))
        raise BadInput(f"--benchmark {benchmark}: there are several in it: {several}")
    return runs, skipped


def run_folders(start: Path) -> list[Path]:
    """Return the run folders at or under a folder, in the order of their names."""
    folders = []
    for path, below, files in os.walk(start):
        folder = Path(path)
        if SPEC in files or STATE in files:
            folders.append(folder)
            below.clear()
        if len(folder.relative_to(start).parts) >= DEEPEST:
            below.clear()
        below[:] = sorted(set(below) - ASIDE)
    return sorted(folders)


def _why_none(skipped: dict[str, str]) -> str:
    """Return why no run can be imported."""
    if not skipped:
        return f"no HELM run in it (a run's folder holds {SPEC} and {STATE})"
    name, reason = next(iter(skipped.items()))
    more = f", and {len(skipped) - 1} more" if len(skipped) > 1 else ""
    return f"no run in it can be taken: {name}: {reason}{more}"
