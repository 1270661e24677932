"""The JSON files of a HELM run. HELM leaves out keys that are None, so most may be missing."""

import math
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from data.importers.finished import P, Part
from data.importers.safe import fault_of, read_json_file, wrong

SPEC, STATE = "run_spec.json", "scenario_state.json"
PER_INSTANCE, STATS = "per_instance_stats.json", "stats.json"
REDACTED = "[redacted]"
CHAT = "chat"


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


def read_part(folder: Path, name: str, form: type[P]) -> P:
    """Read a file of a run that holds one object.

    Raises
    ------
    BadFile
        If it is cut short, or not HELM's. No text of it is quoted.
    """
    return _validated(folder, name, _read(folder, name), form)


def read_parts(folder: Path, name: str, form: type[P]) -> list[P]:
    """Read a file of a run that holds a list of objects; empty if it does not exist."""
    if not (folder / name).is_file():
        return []
    values = _read(folder, name)
    if not isinstance(values, list):
        raise wrong(folder / name, "not a list, as HELM writes it")
    return [_validated(folder, name, value, form) for value in values]


def _read(folder: Path, name: str) -> Any:
    try:
        return read_json_file(folder / name)
    except OSError as error:
        raise wrong(folder / name, str(error.strerror)) from error


def _validated(folder: Path, name: str, value: Any, form: type[P]) -> P:
    try:
        return form.model_validate(value)
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
    for entry in read_parts(folder, PER_INSTANCE, InstanceStats):
        if entry.perturbation is None:
            for mean in _means(entry.stats, name):
                scores[entry.instance_id, entry.train_trial_index] = mean
    return scores, next(iter(_means(read_parts(folder, STATS, Stat), name)), None)


def _means(stats: list[Stat], name: str) -> list[float]:
    """Return the means of one statistic, without those of perturbed texts."""
    ours = (stat for stat in stats if stat.name.name == name and stat.name.perturbation is None)
    return [stat.mean for stat in ours if stat.mean is not None and math.isfinite(stat.mean)]
