"""HELM runs in folders: responses, jurors and their verdicts, and means beside HELM's own.

The rubric of a run is the one whose prompt, filled with a run's texts, is each prompt as it was sent,
to the last byte: a known one, or the one that the run gives away. HELM leaves out keys that are None, so
most may be missing.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from data.card import ANSWERS, points_of
from data.errors import BadFile, BadInput
from data.importers.finished import (
    ExportOrigin,
    Part,
    ReadRun,
    ResponsePlace,
    Taken,
    Verdict,
    in_form,
    own_verdict,
    run_of,
    said_of,
    score_of,
    verdict_of,
)
from data.importers.grades import Grades, rubric_of_grades
from data.importers.rows import (
    JurorRecord,
    Origin,
    ResponseRow,
    checklist_of,
    made_id,
    response_row,
)
from data.importers.safe import fault_of, read_json_file, wrong
from data.rubric import Rubric
from data.rubrics.helm import BENCHMARKS, OURS, Unusable, rubric_of
from data.schema import Status

SPEC, STATE = "run_spec.json", "scenario_state.json"
PER_INSTANCE, STATS = "per_instance_stats.json", "stats.json"
REDACTED = "[redacted]"
CHAT = "chat"
METRIC = "LLMJuryMetric"
SOURCE = "HELM run"
OWN = "medjury"  # the key under which our own plugin keeps what it says
# HELM 0.5.5 to 0.5.7 had these three in its code, and a run does not name them.
DEFAULT_JURORS = {
    "gpt": "openai/gpt-4o-2024-05-13",
    "llama": "meta/llama-3.3-70b-instruct",
    "claude": "anthropic/claude-3-7-sonnet-20250219",
}
NOTHING = "HELM stored no verdict of this juror and does not say why"
CLOSE = 1e-9
TRIED = 5  # prompts as sent that a template is sought in, those with the longest responses first
PLACE = re.compile("|".join(map(re.escape, OURS.values())))
NAME_OF = {ours: theirs for theirs, ours in OURS.items()}
SHARES = ("health_bench", "health_bench_professional")  # jurors give a share of points
RELEASE = "HELM of unknown version"
Verdicts = Mapping[str, Any]
T = TypeVar("T")
PARTS = re.compile(r"[:,]")
ASIDE = {"eval_cache", "groups"}  # of a suite, beside its runs
DEEPEST = 4  # folders from the one that is named down to a run


class Adapter(Part):
    """The adapter: the model, and how it was asked."""

    model: str = ""
    model_deployment: str = ""
    instructions: str = ""
    method: str = ""

    @property
    def task(self) -> str:
        """Return the instruction that was sent; a talk is sent alone."""
        return "" if self.method == CHAT else self.instructions.strip()


class ClassSpec(Part):
    """A class of HELM by name, with its arguments."""

    class_name: str
    args: dict[str, Any] = Field(default_factory=dict)


class RunSpec(Part):
    """`run_spec.json`."""

    name: str = Field(min_length=1)
    adapter_spec: Adapter
    scenario_spec: ClassSpec
    metric_specs: list[ClassSpec] = Field(default_factory=list)
    annotators: list[ClassSpec] | None = None


class HelmText(Part):
    """A text; a number where a CSV's column looked like numbers, NaN where its cell was empty."""

    text: Any = None

    @property
    def said(self) -> str:
        """Return the text as HELM's prompt shows it."""
        return "" if self.text is None else str(self.text)

    @property
    def redacted(self) -> bool:
        """Whether the text was taken out of a published run."""
        return self.said.strip() == REDACTED

    @property
    def absent(self) -> bool:
        """Whether there is nothing to read."""
        nan = isinstance(self.text, float) and math.isnan(self.text)
        return nan or self.redacted or not self.said.strip()


class HelmQuestion(HelmText):
    """What was asked: a text, or since medhelm 0.8 the turns of a talk."""

    messages: list[dict[str, Any]] | None = None

    @property
    def said(self) -> str:
        """Return the text; of a talk its turns, each of several with [role] before it."""
        if not self.messages or (isinstance(self.text, str) and self.text.strip()):
            return super().said
        turns = [(one.get("role"), one.get("content") or "") for one in self.messages]
        if len(turns) == 1:
            return str(turns[0][1])
        return "\n\n".join(f"[{role}]\n{text}" for role, text in turns)


class Reference(Part):
    """A gold answer, right where it is tagged "correct"."""

    output: HelmText
    tags: list[str] = Field(default_factory=list)


class HelmInstance(Part):
    """What was asked."""

    input: HelmQuestion
    extra_data: dict[str, Any] | None = None
    references: list[Reference] = Field(default_factory=list)
    split: str | None = None
    id: str | None = None
    perturbation: dict[str, Any] | None = None


class HelmResult(Part):
    """The completions of a model."""

    completions: list[HelmText] = Field(default_factory=list)


class RequestState(Part):
    """One answer to one instance, with what annotators said of it."""

    instance: HelmInstance
    train_trial_index: int = 0
    result: HelmResult | None = None

    annotations: dict[str, Any] | None = None

    @property
    def output(self) -> HelmText:
        """Return the completion that HELM's jury reads: the first."""
        completions = self.result.completions if self.result else []
        return completions[0] if completions else HelmText()

    @property
    def gold(self) -> HelmText:
        """Return the reference that HELM's jury reads: the first."""
        references = self.instance.references
        return references[0].output if references else HelmText()


class States(Part):
    """`scenario_state.json`."""

    request_states: list[RequestState]


class StatName(Part):
    """The name of a statistic, with its perturbation."""

    name: str
    perturbation: dict[str, Any] | None = None


class Stat(Part):
    """One statistic."""

    name: StatName
    mean: float | None = None


class InstanceStats(Part):
    """Statistics of one instance; a run has several entries for each."""

    instance_id: str
    train_trial_index: int = 0
    perturbation: dict[str, Any] | None = None
    stats: list[Stat] = Field(default_factory=list)


def read_part(folder: Path, name: str, form: type[T], absent: T | None = None) -> T:
    """Read a file of a run, or return what stands for one that need not be there.

    Raises
    ------
    BadFile
        If it is not there, cut short, or not HELM's. No text of it is quoted.
    """
    if absent is not None and not (folder / name).is_file():
        return absent
    try:
        return TypeAdapter(form).validate_python(read_json_file(folder / name))
    except OSError as error:
        raise wrong(folder / name, str(error.strerror)) from error
    except ValidationError as error:
        key, kind = fault_of(error)
        why = "is missing" if kind == "missing" else f"is not of HELM's form ({kind})"
        raise wrong(folder / name, f"{key} {why}; is it a run of HELM?") from error


def read_stored(
    folder: Path, metric: ClassSpec | None, annotator: str
) -> tuple[dict[tuple[str, int], float], float | None]:
    """Read the jury's scores by instance and trial, and their mean; none if HELM wrote no such file."""
    name = str(metric.args.get("metric_name")) if metric else f"{annotator}_accuracy"
    scores: dict[tuple[str, int], float] = {}
    for entry in read_part(folder, PER_INSTANCE, list[InstanceStats], []):
        if entry.perturbation is None:
            for mean in _means(entry.stats, name):
                scores[entry.instance_id, entry.train_trial_index] = mean
    return scores, next(iter(_means(read_part(folder, STATS, list[Stat], []), name)), None)


def _means(stats: list[Stat], name: str) -> list[float]:
    """Return the means of one statistic, without those of perturbed texts."""
    ours = (stat for stat in stats if stat.name.name == name and stat.name.perturbation is None)
    return [stat.mean for stat in ours if stat.mean is not None and math.isfinite(stat.mean)]


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

    @property
    def texts(self) -> dict[str, str]:
        """What HELM fills in, by placeholder."""
        texts = (self.row.context, self.row.response, self.gold)
        return dict(zip(OURS.values(), texts, strict=True))

    def filled(self, prompt: str) -> str:
        """Return a rubric's prompt with what HELM fills in."""
        texts = self.texts
        return PLACE.sub(lambda mark: texts[mark[0]], prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class HelmRun(ReadRun):
    """A run with a jury.

    Attributes
    ----------
    own_name
        What HELM calls the benchmark, where `benchmark` is the user's name for it; `key` the jury.
    criteria
        Of the jurors' form, in its order.
    prompt
        The jurors', with placeholders of ours; None where the run does not give it away.
    checked
        Prompts as sent that it fills up to.
    assumed
        Whether the jurors' models are not in the run but known from HELM's release.
    template
        Of a run of our own plugin: what it filled in elsewhere.
    """

    own_name: str
    key: str
    jurors: tuple[JurorRecord, ...]
    judged: tuple[JudgedResponse, ...]
    criteria: tuple[str, ...]
    prompt: str | None
    checked: int
    helm_mean: float | None
    assumed: bool
    template: str = ""

    @property
    def task(self) -> str:
        """Return the instruction that goes before every instance."""
        return self.judged[0].row.prompt

    def held_against(self, prompt: str) -> int:
        """Return how many prompts jurors were sent, if a rubric's prompt fills up to each; else 0."""
        sent = [answer for answer in self.judged if answer.sent is not None]
        return len(sent) if all(answer.filled(prompt) == answer.sent for answer in sent) else 0

    def rubric(self) -> Rubric:
        """Return the rubric that the run gives away.

        Raises
        ------
        Unusable
            If it does not, or its prompt names no scale, or cannot be a rubric.
        """
        if not self.criteria:
            raise Unusable("no juror gave a verdict, and its criteria are not in the run")
        name = re.sub(r"[^\w.-]+", "_", self.key)[:58]
        if self.prompt is None:
            if name not in (*BENCHMARKS, *SHARES):
                why = "the run does not give its prompt away; name its rubric with --rubric"
                raise Unusable(why)
            scale = Grades(ends=(0, 1) if name in SHARES else (1, 5))
            return rubric_of_grades(f"helm_{name}", self.criteria, scale, SOURCE)
        theirs = PLACE.sub(lambda mark: f"{{{NAME_OF[mark[0]]}}}", self.prompt)
        try:
            rubric = rubric_of(name, theirs, list(self.criteria), RELEASE)
            return Rubric.model_validate(rubric.model_dump() | {"prompt": self.prompt})
        except ValidationError as error:
            raise Unusable("its prompt or its criteria cannot be a rubric") from error


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


def _read_run(folder: Path, name: str, benchmark: str | None) -> HelmRun:
    """Read one run folder, its benchmark under HELM's name or another one; or raise NoJury."""
    for file in (SPEC, STATE):
        if not (folder / file).is_file():
            raise NoJury(f"{file} is not there: the run did not end, or is not copied in full")
    spec = read_part(folder, SPEC, RunSpec)
    states = read_part(folder, STATE, States).request_states
    juries = [*dict.fromkeys(name for state in states for name in _juries(state))]
    if not juries:
        raise NoJury("no jury took part in it: HELM's other figures are no ratings")
    metrics = (one for one in spec.metric_specs if one.class_name.endswith(f".{METRIC}"))
    metric = next(metrics, None)  # there is none in HELM 0.5.5 to 0.5.7
    named = str(metric.args.get("scenario_name")) if metric else ""
    key = named if named in juries else juries[0]
    whys = [_exclusion_reason(state) for state in states]
    left_out = Counter(why for why in whys if why)
    taken = [
        (n, state) for n, (state, why) in enumerate(zip(states, whys, strict=True), 1) if not why
    ]
    if not taken:
        reasons = ", ".join(f"{number} {why}" for why, number in left_out.items())
        raise NoJury(f"nothing to rate in it: {reasons or 'no answers'}")
    model = spec.adapter_spec.model or spec.adapter_spec.model_deployment
    if not model.strip():
        raise wrong(folder / SPEC, "adapter_spec.model is missing: who wrote the responses?")
    own_name = benchmark_of(spec)
    shared = {
        "benchmark": benchmark or own_name,
        "prompt": spec.adapter_spec.task,
        "model": model,
        "id_made": True,
    }
    stored, helm_mean = read_stored(folder, metric, key)
    judged = tuple(
        _judged(Origin(f"{name}/{STATE}", number), state, key, shared, stored)
        for number, state in taken
    )
    jurors, assumed = _jurors_of(spec, metric, judged)
    with_template = (one.args for one in spec.annotators or () if "prompt_template" in one.args)
    args = next(with_template, dict[str, Any]())
    template = str(args.get("prompt_template", "")).replace("$$", "$")
    prompt, checked = _prompt_of(judged, template)
    notes = {"further annotator": len(juries) - 1} | _notes_of([state for _, state in taken])
    return HelmRun(
        name=name,
        benchmark=benchmark or own_name,
        own_name=own_name,
        key=key,
        jurors=jurors,
        judged=judged,
        criteria=_criteria_of(judged, args, prompt),
        prompt=prompt,
        checked=checked,
        helm_mean=helm_mean,
        left_out=left_out,
        notes={note: number for note, number in notes.items() if number},
        assumed=assumed,
        origin=in_form(ExportOrigin, args.get("origin")),
        template=template,
    )


def _juries(state: RequestState) -> Iterator[str]:
    """Yield the keys of annotations that are a jury's: with a prompt, or scores by criterion."""
    for key, annotation in (state.annotations or {}).items():
        if isinstance(annotation, dict) and (
            "prompt_text" in annotation
            or (bool(annotation) and all(map(_holds_scores, annotation.values())))
        ):
            yield key


def _holds_scores(verdict: object) -> bool:
    return (
        isinstance(verdict, dict)
        and bool(verdict)
        and all(isinstance(answer, dict) and "score" in answer for answer in verdict.values())
    )


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


def _notes_of(states: Iterable[RequestState]) -> Counter[str]:
    """Count the parts of ratable answers that a study does not take."""
    counts = Counter[str]()
    for state in states:
        counts["redacted reference"] += state.gold.redacted
        counts["further reference"] += max(0, len(state.instance.references) - 1)
        counts["further completion"] += len(state.result.completions) - 1 if state.result else 0
    return counts


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


def _judged(
    origin: Origin,
    state: RequestState,
    key: str,
    shared: Mapping[str, Any],
    stored: Mapping[tuple[str, int], float],
) -> JudgedResponse:
    """Return an answer as a row, whose id does not depend on the model, with what is said of it."""
    instance, text, trial = state.instance, state.output.said, state.train_trial_index
    if not instance.id:
        raise origin.wrong("instance_id", "", "HELM gives every instance an id")
    items = (instance.extra_data or {}).get("rubrics")  # as medhelm's HealthBench has it
    again = [str(trial)] if trial else []
    row = response_row(
        origin,
        {
            **shared,
            "instance_id": instance.id,
            "context": instance.input.said,
            "checklist": checklist_of(items if isinstance(items, list) else ()),
            "reference": None if state.gold.absent else state.gold.said,
            "response_id": made_id(shared["benchmark"], instance.id, text, *again),
            "response": text,
        },
    )
    annotation = (state.annotations or {}).get(key)
    parts = annotation if isinstance(annotation, dict) else {}
    said = {juror: verdict for juror, verdict in parts.items() if isinstance(verdict, dict)}
    plugin = said.pop(OWN, {})
    own, sent = plugin.get("jurors"), parts.get("prompt_text")
    return JudgedResponse(
        row,
        said,
        stored.get((instance.id, trial)),
        own=own if isinstance(own, dict) else None,
        place=in_form(ResponsePlace, plugin.get("place")) if isinstance(own, dict) else None,
        sent=sent if isinstance(sent, str) and REDACTED not in sent else None,
        gold=state.gold.said,
    )


def _jurors_of(
    spec: RunSpec, metric: ClassSpec | None, judged: Iterable[JudgedResponse]
) -> tuple[tuple[JurorRecord, ...], bool]:
    """Return the jurors of a run with the models it names, and whether their models are assumed."""
    models = (one.args.get("annotator_models") for one in (metric, *(spec.annotators or ())) if one)
    named = next((listed for listed in models if listed and isinstance(listed, dict)), None)
    answering = dict.fromkeys(name for answer in judged for name in answer.said)
    assumed = named is None and set(answering) <= set(DEFAULT_JURORS)
    bodies = named or (
        {name: {"model_name": model} for name, model in DEFAULT_JURORS.items()} if assumed else {}
    )
    keys = {"model": "model_name", "deployment": "model_deployment"}
    jurors = []
    for name in dict.fromkeys([*bodies, *answering]):
        body = bodies.get(name)
        settings = body if isinstance(body, dict) else {}
        profile = {ours: str(settings[key]) for ours, key in keys.items() if settings.get(key)}
        jurors.append(JurorRecord(name, {"provider": SOURCE} | profile))
    return tuple(jurors), assumed


def _prompt_of(judged: Sequence[JudgedResponse], template: str) -> tuple[str | None, int]:
    """Return the jurors' prompt as far as the run gives it away, and how many it was held against.

    A prompt as sent, with its texts taken out again, must fill up to each of them; where none is in
    the run, a configurable benchmark's settings have its template.
    """
    sent = [answer for answer in judged if answer.sent is not None]
    if not sent and template:
        theirs = re.compile("|".join(f"{{{name}}}" for name in OURS))
        return theirs.sub(lambda mark: OURS[mark[0].strip("{}")], template), 0
    for answer in sorted(sent, key=lambda one: len(one.row.response), reverse=True)[:TRIED]:
        prompt = answer.sent or ""
        for mark, text in sorted(answer.texts.items(), key=lambda part: -len(part[1])):
            prompt = prompt.replace(text, mark) if text.strip() else prompt
        if "{{response}}" in prompt and all(one.filled(prompt) == one.sent for one in sent):
            return prompt, len(sent)
    return None, 0


def _criteria_of(
    judged: Iterable[JudgedResponse], args: Mapping[str, Any], prompt: str | None
) -> tuple[str, ...]:
    """Return the criteria that the settings name, else that every verdict has, in the form's order."""
    listed = args.get("annotation_criteria")
    verdicts = [verdict for answer in judged for verdict in answer.said.values()]
    common = [name for name in [*verdicts, {}][0] if all(name in one for one in verdicts)]
    names = [str(name) for name in listed] if isinstance(listed, dict) else common
    return tuple(sorted(names, key=lambda name: (prompt or "").find(f'"{name}"')))


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
            runs.append(_read_run(folder, name, benchmark))
        except NoJury as reason:
            skipped[name] = str(reason)
    if not runs:
        why = f"no HELM run in it (a run's folder holds {SPEC} and {STATE})"
        for first, said in [*skipped.items()][:1]:
            more = f", and {len(skipped) - 1} more" if len(skipped) > 1 else ""
            why = f"no run in it can be taken: {first}: {said}{more}"
        raise BadFile(f"{path}: {why}; nothing was imported")
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


def usable(run: HelmRun, rubric: Rubric) -> Rubric:
    """Return a rubric if the run's jurors rated on it, by its hash or else by its prompt.

    Raises
    ------
    BadInput
        If its prompt is not the one that the jurors were asked with, or has other criteria.
    """
    why = ""
    if run.origin is not None:
        if run.origin.rubric_sha256 != rubric.sha256:
            why = (
                f"its jurors rated on the rubric with the hash {run.origin.rubric_sha256[:12]}, and "
                f"{rubric.name} is another; leave --rubric out"
            )
    elif run.prompt not in (None, rubric.prompt) and not run.held_against(rubric.prompt):
        why = (
            "the jurors of this run were asked with another prompt than that of rubric "
            f"{rubric.name}; leave --rubric out to take it from the run"
        )
    elif run.criteria and set(run.criteria) != set(rubric.criteria):
        why = (
            f"its jurors rated {', '.join(run.criteria)}, and rubric {rubric.name} has "
            f"{', '.join(rubric.criteria)}"
        )
    if why:
        raise BadInput(f"{run.name}: {why}; nothing was imported")
    return rubric


@dataclass(frozen=True, slots=True)
class TakenRun(Taken[HelmRun]):
    """A run, the values made from it, and its responses whose score in HELM differs.

    A difference has benchmark and instance_id, HELM's score, the mean of the verdicts that stand (None
    where none does), and causes: default, off_scale, truncated, extra_criterion, unreadable, or
    unexplained where none is known.
    """

    differences: Sequence[Mapping[str, Any]]

    def figures(self) -> dict[str, Any]:
        """Return the figures of the run, as `medjury study import --json` writes them."""
        run, values = self.run, self.values
        said: dict[str, list[str]] = {}
        for row in values.ratings:
            said.setdefault(row.response_id, []).append(row.score)
        points = [[float(one) for one in own if one not in ANSWERS] for own in said.values()]
        means = [sum(own) / len(own) for own in points if own]
        complete = len(values.rubric.criteria) * len(values.jurors)
        return Taken.figures(self) | {
            "run": run.name,
            "prompt_known": run.prompt is not None,
            "prompts_checked": run.checked,
            "jurors_assumed": run.assumed,
            "helm_mean": run.helm_mean,
            "recomputed_mean": sum(means) / len(means) if means else None,
            "with_any_juror": len(said),
            "with_all_jurors": sum(len(own) == complete for own in said.values()),
        }


def finished(run: HelmRun, rubric: Rubric) -> TakenRun:
    """Return a run as values to be stored; the jurors of our own export are the study's."""
    own = run.origin.jurors if run.origin else {}
    run = run if run.origin else replace(run, checked=run.held_against(rubric.prompt))
    jurors = {
        juror.handle: own[juror.handle].record() if juror.handle in own else juror
        for juror in run.jurors
    }
    judged = []
    for answer in run.judged:
        said, read = (answer.said, verdict) if answer.own is None else (answer.own, own_verdict)
        judged.append(
            {juror.handle: read(said.get(name), rubric) for name, juror in jurors.items()}
        )
    rows = [(answer.row, verdicts) for answer, verdicts in zip(run.judged, judged, strict=True)]
    values = run_of(SOURCE, rubric, tuple(jurors.values()), rows)
    differences = map(_difference, run.judged, judged, [rubric] * len(judged))
    return TakenRun(run, values, [one for one in differences if one])


def verdict(body: Any, rubric: Rubric) -> Verdict:
    """Return a juror's verdict: all of the rubric's criteria on its scale, or none."""
    if body is None:
        return Verdict({}, {}, Status.REQUEST_FAILED, NOTHING)
    answers = {name: body.get(name) for name in rubric.criteria}
    if lacking := [name for name, answer in answers.items() if not isinstance(answer, dict)]:
        return Verdict({}, {}, Status.MISSING_CRITERION, f"no {', '.join(lacking)} in HELM's file")
    comments = {name: str(answer.get("explanation") or "") for name, answer in answers.items()}
    scores = {name: said_of(answer.get("score")) for name, answer in answers.items()}
    return verdict_of(scores, comments, rubric)


def _difference(
    answer: JudgedResponse, verdicts: Mapping[str, Verdict], rubric: Rubric
) -> dict[str, Any] | None:
    """Return the difference between HELM's score and its jurors' mean, None if there is none."""
    scores = [score for said in verdicts.values() for score in points_of(said.scores).values()]
    mean = sum(scores) / len(scores) if scores else None
    if answer.stored is None or (mean is not None and abs(mean - answer.stored) <= CLOSE):
        return None
    return {
        "benchmark": answer.row.benchmark,
        "instance_id": answer.row.instance_id,
        "helm": answer.stored,
        "recomputed": mean,
        "causes": [*dict.fromkeys(_causes(answer, verdicts, rubric))] or ["unexplained"],
    }


def _causes(
    answer: JudgedResponse, verdicts: Mapping[str, Verdict], rubric: Rubric
) -> Iterator[str]:
    """Yield the known causes of a difference, such as HELM's default for a missing verdict."""
    if not answer.said:
        yield "default"
    for said in verdicts.values():
        if said.status not in (Status.OK, Status.REQUEST_FAILED):
            yield "off_scale" if said.status == Status.OUT_OF_RANGE else "unreadable"
    for body in answer.said.values():
        if set(body) - set(rubric.criteria):
            yield "extra_criterion"
        given = (score_of(one.get("score")) for one in body.values() if isinstance(one, dict))
        if any(score is not None and score != int(score) for score in given):
            yield "truncated"
