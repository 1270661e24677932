"""Run folders of HELM made by hand, and logs that Inspect wrote, for importing."""

import json
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, text
from sqlmodel import Session, select

from data.importers.log_file import read_log
from data.schema import Rater

TEMPLATE = """Rate the answer on a scale of 1 to 5 (1 = poor, 5 = good).
<question>
{QUESTION}
</question>
<response>
{RESPONSE}
</response>
<gold_response>
{GOLD_RESPONSE}
</gold_response>
Accuracy (1-5)
- Is it right?

Answer in JSON: {"accuracy": {"score": 0, "explanation": ""}, "clarity": {"score": 0, "explanation": ""}}
"""

MODELS = {
    name: {"model_name": f"lab/{name}-9", "model_deployment": name} for name in ("gpt", "owl")
}

JURY = "helm.benchmark.metrics.llm_jury_metrics.LLMJuryMetric"


def scores(accuracy: Any, clarity: Any = 4, **more: Any) -> dict[str, Any]:
    verdict = {"accuracy": accuracy, "clarity": clarity} | more
    return {name: {"score": score, "explanation": f"so {name}"} for name, score in verdict.items()}


def state(
    number: int,
    verdicts: dict[str, Any] | None = None,
    response: str = "",
    gold: Any = "Rest.",
    prompt: Any = "",
    trial: int = 0,
    **instance: Any,
) -> dict[str, Any]:
    """Return a request state as HELM writes it; the jury says 4 and 4 unless told otherwise."""
    question = f"What helps patient {number}?"
    response = response or f"Drink water, {number} times."
    sent = TEMPLATE.replace("{QUESTION}", question).replace("{GOLD_RESPONSE}", str(gold))
    sent = sent.replace("{RESPONSE}", response)
    verdicts = {"gpt": scores(4), "owl": scores(4)} if verdicts is None else verdicts
    return {
        "instance": {
            "input": {"text": question},
            "references": [{"output": {"text": gold}, "tags": ["correct"]}],
            "split": "test",
            "id": f"id{number}",
        }
        | instance,
        "train_trial_index": trial,
        "result": {"success": True, "completions": [{"text": response}]},
        "annotations": {"tiny_qa": {"prompt_text": sent if prompt == "" else prompt} | verdicts},
    }


def helms_score(verdicts: dict[str, Any]) -> float:
    """Return the score that HELM stores: whole parts of all that stands there, 1 for nothing."""
    scores = [
        criterion["score"]
        for verdict in verdicts.values()
        if isinstance(verdict, dict)
        for criterion in verdict.values()
    ]
    try:
        return sum(map(int, scores)) / len(scores) if scores else 1.0
    except (ValueError, TypeError):
        return 4.0  # HELM would have ended without a file


def stats_of(states: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what per_instance_stats.json holds: for every instance an entry a metric."""
    return [
        {
            "instance_id": one["instance"].get("id", ""),
            "train_trial_index": one["train_trial_index"],
            "stats": [{"name": {"name": name, "split": "test"}, "mean": mean}],
        }
        for one in states
        for name, mean in (
            ("rouge_l", float("nan")),
            ("tiny_qa_accuracy", helms_score(one["annotations"]["tiny_qa"])),
        )
    ]


def run_folder(
    root: Path, states: list[dict[str, Any]], name: str = "tiny_qa:model=lab_writer", **spec: Any
) -> Path:
    """Write a run folder as HELM does."""
    folder = root / name
    folder.mkdir(parents=True)
    args = {"scenario_name": "tiny_qa", "metric_name": "tiny_qa_accuracy"}
    body = {
        "name": name,
        "adapter_spec": {"model": "lab/writer", "instructions": "Answer.\n"},
        "scenario_spec": {"class_name": "helm.Tiny", "args": {}},
        "metric_specs": [{"class_name": JURY, "args": args | {"annotator_models": MODELS}}],
        "annotators": [{"class_name": "helm.TinyAnnotator", "args": {"annotator_models": MODELS}}],
    } | spec
    files = {
        "run_spec.json": body,
        "scenario_state.json": {"request_states": states},
        "per_instance_stats.json": stats_of(states),
        "stats.json": [{"name": {"name": "tiny_qa_accuracy", "split": "test"}, "mean": 4.0}],
    }
    for file, found in files.items():
        (folder / file).write_text(json.dumps(found), encoding="utf-8")
    return folder


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def juror_profile(engine: Engine, handle: str) -> dict[str, Any]:
    """Return what is stored of a juror: JSON is a text in SQLite, and none in PostgreSQL."""
    with Session(engine) as session:
        return session.exec(select(Rater.profile).where(Rater.handle == handle)).one()


LOGS = Path(__file__).parents[1] / "fixtures" / "inspect"

SECRET = "Any fever"


def whole(name: str) -> dict[str, Any]:
    """Return a log as one JSON value, as `inspect log convert --to json` gives it."""
    head, samples = read_log(LOGS / name)
    return head | {"samples": list(samples)}


def as_json(folder: Path, body: object, name: str = "log.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(body), encoding="utf-8")
    return path
