"""Answers of HELM's runs in which no jury took part: benchmarks whose answers have a key."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from data.errors import BadFile
from data.importers.helm.files import SPEC, STATE, RequestState, RunSpec, States, read_part, wrong
from data.importers.helm.run import benchmark_of, run_folders
from data.importers.source import Source
from data.importers.table import TableFile

CORRECT = "correct"  # HELM's tag of a right reference
NO_ANSWER = "[no answer]"  # what stands for an answer that is empty; metrics read it as empty


def helm_answers(paths: Sequence[Path]) -> TableFile:
    """Return the answers of runs as rows of responses, also of runs without a jury.

    The first right reference is the reference. An empty answer becomes `NO_ANSWER`, since it is an
    answer where declining is one. Training and perturbed instances are left out.

    Raises
    ------
    BadFile
        If there is no finished run, or a file of one cannot be read.
    """
    rows = [row for path in paths for row in _rows(path)]
    if not rows:
        raise BadFile(f"{paths[0]}: no finished run of HELM with answers; nothing was imported")
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    return TableFile(Source(paths[0] / STATE, "\n".join(lines).encode("utf-8")), "jsonl")


def answered_runs(path: Path) -> Iterator[tuple[str, RunSpec, list[RequestState]]]:
    """Yield the name, specification and answers of every finished run at or under a path."""
    start = path.parent if path.name in (SPEC, STATE) else path
    for folder in run_folders(start):
        if (folder / SPEC).is_file() and (folder / STATE).is_file():
            states = read_part(folder, STATE, States).request_states
            yield folder.name, read_part(folder, SPEC, RunSpec), states


def _rows(path: Path) -> Iterator[dict[str, str]]:
    for _, spec, states in answered_runs(path):
        model = spec.adapter_spec.model or spec.adapter_spec.model_deployment
        if not model.strip():
            raise wrong(path, SPEC, "adapter_spec.model is missing: who wrote the responses?")
        for state in states:
            instance = state.instance
            if instance.perturbation is not None or instance.split == "train" or not instance.id:
                continue
            if instance.input.redacted or state.output.redacted or instance.input.absent:
                continue
            keys = [one.output.said for one in instance.references if CORRECT in one.tags]
            yield {
                "instance_id": instance.id,
                "benchmark": benchmark_of(spec),
                "context": instance.input.said,
                "prompt": spec.adapter_spec.task,
                "reference": keys[0] if keys else "",
                "model": model,
                "response": state.output.said.strip() or NO_ANSWER,
            }
