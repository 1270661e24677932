"""One run folder of HELM: its benchmark, its author, its jurors and what they said."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from data.importers.finished import FinishedJuror
from data.importers.helm.answers import notes_of, taken_of
from data.importers.helm.files import (
    SPEC,
    STATE,
    RequestState,
    RunSpec,
    States,
    read_part,
    wrong,
)
from data.importers.helm.jurors import jurors_of, metric_of
from data.importers.helm.prompts import Asked, Prompt, prompt_of
from data.importers.helm.stored import Stored, read_stored
from data.importers.rows import Origin, ResponseRow

PARTS = re.compile(r"[:,]")
Said = Mapping[str, Any]


class NoJury(ValueError):
    """A run that has nothing to take, with the reason."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A response as a row of the study, with what HELM stored of its jury.

    Attributes
    ----------
    said
        Juror -> what stands there; a juror whose reply HELM could not use is not in it.
    stored
        The score that HELM gives the response, None where the run does not hold it.
    """

    row: ResponseRow
    said: Said
    stored: float | None


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
    """

    name: str
    benchmark: str
    own_name: str
    jurors: tuple[FinishedJuror, ...]
    judged: tuple[Judged, ...]
    prompt: Prompt
    stored: Stored
    left_out: Mapping[str, int]
    notes: Mapping[str, int]
    assumed: bool

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
    judged = tuple(replace(one, row=replace(one.row, prompt=task)) for one in run.judged)
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
    for file in (SPEC, STATE):
        if not (folder / file).is_file():
            raise NoJury(f"{file} is not there: the run did not end, or is not copied in full")
    spec = read_part(folder, SPEC, RunSpec)
    states = read_part(folder, STATE, States).request_states
    key = _annotator(spec, states)
    if key is None:
        raise NoJury("no jury took part in it: HELM's other figures are no ratings")
    own_name = _benchmark(spec)
    benchmark = benchmark or own_name
    taken, left_out = taken_of(states)
    if not taken:
        raise NoJury(f"nothing to rate in it: {_listed(left_out) or 'no answers'}")
    stored = read_stored(folder, metric_of(spec), key)
    model = spec.adapter_spec.model or spec.adapter_spec.model_deployment
    if not model.strip():
        raise wrong(folder, SPEC, "adapter_spec.model is missing: who wrote the responses?")
    judged = tuple(
        Judged(
            _row(spec, benchmark, model, Origin(f"{name}/{STATE}", number), state),
            _said(state, key),
            stored.of(str(state.instance.id), state.train_trial_index),
        )
        for number, state in taken
    )
    jurors, assumed = jurors_of(spec, [one.said for one in judged])
    asked = [_asked(state, key) for _, state in taken]
    prompt = prompt_of(key, _prompt_args(spec), asked)
    notes = _further(key, states) | notes_of(state for _, state in taken)
    return HelmRun(
        name, benchmark, own_name, jurors, judged, prompt, stored, left_out, notes, assumed
    )


def _prompt_args(spec: RunSpec) -> Said:
    """Return what the jury's annotator was given, where that holds its prompt."""
    found = (one.args for one in spec.annotators or () if "prompt_template" in one.args)
    return next(found, {})


def _annotator(spec: RunSpec, states: list[RequestState]) -> str | None:
    """Return the name that the jury's annotations stand under."""
    stands = [
        key for state in states for key, one in (state.annotations or {}).items() if _jury(one)
    ]
    metric = metric_of(spec)
    named = metric.args.get("scenario_name") if metric else None
    return str(named) if named in stands else next(iter(stands), None)


def _further(key: str, states: list[RequestState]) -> dict[str, int]:
    """Return how many other annotators asked models too, which is not taken."""
    stands = {
        name for state in states for name, one in (state.annotations or {}).items() if _jury(one)
    }
    return {"further annotator": len(stands) - 1} if stands - {key} else {}


def _jury(annotation: object) -> bool:
    return isinstance(annotation, dict) and "prompt_text" in annotation


def _benchmark(spec: RunSpec) -> str:
    """Return the run's name without what says how and by whom: the base and the scenario's arguments."""
    base, *rest = PARTS.split(spec.name)
    pairs = (part.partition("=") for part in rest)
    own = [
        f"{key}={value}"
        for key, _, value in pairs
        if str(spec.scenario_spec.args.get(key)) == value and key != "config_path"
    ]
    return ",".join([base, *own])


def _row(
    spec: RunSpec, benchmark: str, model: str, origin: Origin, state: RequestState
) -> ResponseRow:
    """Return an answer as a row; its id says nothing of the model."""
    one, text, trial = state.instance, state.output.said, state.train_trial_index
    if not one.id:
        raise origin.wrong("instance_id", "", "HELM gives every instance an id")
    parts = [benchmark, one.id, model, text, *([str(trial)] if trial else [])]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return ResponseRow(
        origin=origin,
        instance_id=one.id,
        benchmark=benchmark,
        context=one.input.said,
        prompt=spec.adapter_spec.instructions.strip(),
        reference=None if state.gold.absent else state.gold.said,
        response_id="r" + digest[:15],
        model=model,
        response=text,
    )


def _said(state: RequestState, key: str) -> Said:
    """Return what stands under each juror's name."""
    found = (state.annotations or {}).get(key)
    if not isinstance(found, dict):
        return {}
    return {name: one for name, one in found.items() if isinstance(one, dict)}


def _asked(state: RequestState, key: str) -> Asked:
    """Return a filled prompt with what was filled in."""
    found = (state.annotations or {}).get(key)
    said = found if isinstance(found, dict) else {}
    prompt = said.get("prompt_text")
    return Asked(
        prompt if isinstance(prompt, str) and "[redacted]" not in prompt else None,
        state.instance.input.said,
        state.output.said,
        state.gold.said,
        tuple(tuple(one) for name, one in said.items() if isinstance(one, dict)),
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {why}" for why, number in counts.items())
