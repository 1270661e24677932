"""What an import of HELM runs comes to: missing verdicts, and means beside HELM's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from data.importers.finished import FinishedRun
from data.importers.helm.rating import Difference
from data.importers.helm.run import HelmRun
from data.rubric import Rubric


@dataclass(frozen=True, slots=True)
class Taken:
    """A run with the rubric its jurors rated on, and what becomes of it."""

    run: HelmRun
    rubric: Rubric
    values: FinishedRun
    differences: Sequence[Difference]


def _recomputed(one: Taken) -> tuple[float | None, int, int]:
    """Return the mean over responses with a verdict, how many they are, and how many have all."""
    scores: dict[str, list[float]] = {}
    for row in one.values.ratings:
        scores.setdefault(row.response_id, []).append(float(row.score))
    means = [sum(own) / len(own) for own in scores.values()]
    whole = len(one.rubric.criteria) * len(one.values.jurors)
    all_jurors = sum(len(own) == whole for own in scores.values())
    return (sum(means) / len(means) if means else None), len(means), all_jurors


def run_figures(one: Taken) -> dict[str, Any]:
    """Return the figures of one run, as `medjury import --json` writes them."""
    mean, heard, whole = _recomputed(one)
    return {
        "run": one.run.name,
        "benchmark": one.run.benchmark,
        "rubric": one.rubric.name,
        "rubric_sha256": one.rubric.sha256,
        "prompt_known": one.run.prompt.template is not None,
        "prompts_checked": one.run.prompt.checked,
        "jurors": [{"name": j.handle, "model": j.profile.get("model")} for j in one.values.jurors],
        "jurors_assumed": one.run.assumed,
        "instances": len({row.instance_id for row in one.values.responses}),
        "responses": len(one.values.responses),
        "ratings": len(one.values.ratings),
        "missing": len(one.values.failures),
        "left_out": dict(one.run.left_out),
        "notes": dict(one.run.notes),
        "helm_mean": one.run.stored.mean,
        "recomputed_mean": mean,
        "with_any_juror": heard,
        "with_all_jurors": whole,
    }
