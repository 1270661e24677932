"""Figures of models as records of Every Eval Ever, schema 0.3.0: one file a model.

A score that is undefined has no place there (a score is a number): it is left out, and the record
says which. All values of `additional_details` and `details` are texts, as the schema wants them.
"""

import hashlib
import json
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibration.models.model_scores import JUROR, BenchmarkMean
from calibration.models.rows import CLINICIANS, JURY
from calibration.writers.release import INTERVAL, scorer_words

SCHEMA_VERSION = "0.3.0"
UNKNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}
ODD = re.compile(r"[^\w.@+-]|^[.-]+")  # in the name of a folder
LONGEST_FOLDER = 100


@dataclass(frozen=True, slots=True)
class Judge:
    """A juror as a record names it."""

    name: str
    model: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """Where the figures come from.

    Attributes
    ----------
    study : hash of the study's first event
    seconds : Unix time at which the records are made
    prompts : benchmark -> the prompt that jurors are asked with
    rubrics : benchmark -> hash of its rubric
    """

    study: str
    version: str
    seconds: int
    organization: str
    judges: Sequence[Judge]
    prompts: Mapping[str, str]
    rubrics: Mapping[str, str]


def records(rows: Sequence[BenchmarkMean], source: Source) -> Mapping[str, str]:
    """Return a record for each model, by path: data/medjury/DEVELOPER/MODEL/UUID.json."""
    files = {}
    for model in sorted({one.model for one in rows}):
        own = [one for one in rows if one.model == model]
        if any(math.isfinite(one.mean) for one in own):
            developer, _, short = _id(model).partition("/")
            body = record(model, own, source)
            name = f"data/medjury/{developer}/{short}/{_uuid(body['evaluation_id'])}.json"
            files[name] = json.dumps(body, indent=2, ensure_ascii=False) + "\n"
    return files


def record(model: str, rows: Sequence[BenchmarkMean], source: Source) -> dict[str, Any]:
    """Return the record of one model."""
    lacking = [f"{one.benchmark} by {one.scorer}" for one in rows if not math.isfinite(one.mean)]
    details = {"study": source.study, "results_without_a_score": ", ".join(lacking) or "none"}
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"medjury-{source.study[:12]}/{_id(model)}/{source.seconds}",
        "retrieved_timestamp": str(source.seconds),
        "source_metadata": {
            "source_name": "medjury",
            "source_type": "documentation",
            "source_organization_name": source.organization,
            "evaluator_relationship": "other",
            "additional_details": details,
        },
        "eval_library": {"name": "medjury", "version": source.version},
        "model_info": _model_info(model),
        "evaluation_results": [
            _result(one, rows, source) for one in rows if math.isfinite(one.mean)
        ],
    }


def _result(one: BenchmarkMean, rows: Sequence[BenchmarkMean], source: Source) -> dict[str, Any]:
    words = f"{scorer_words(one.scorer)} score"
    metric: dict[str, Any] = {
        "evaluation_description": f"{words} on {one.benchmark}: mean of composites over responses",
        "metric_id": f"medjury.{one.scorer.replace(':', '.')}",
        "metric_name": words,
        "metric_kind": "rating",
        "metric_unit": "points",
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": one.scale_low,
        "max_score": one.scale_high,
    }
    if one.scorer != CLINICIANS:
        metric["llm_scoring"] = _scoring(one, rows, source)
    return {
        "evaluation_result_id": f"{one.benchmark}/{one.scorer}",
        "evaluation_name": one.benchmark,
        "source_data": {"dataset_name": one.benchmark, "source_type": "other"},
        "metric_config": metric,
        "score_details": {"score": one.mean} | _uncertainty(one) | {"details": _details(one)},
    }


def _uncertainty(one: BenchmarkMean) -> dict[str, Any]:
    """Return the standard error and the interval; what is undefined is left out."""
    found: dict[str, Any] = {"num_samples": one.n_responses}
    if math.isfinite(one.error):
        found["standard_error"] = {"value": one.error, "method": "analytic, clustered by instance"}
    if math.isfinite(one.low):
        ends = {"lower": one.low, "upper": one.high, "confidence_level": 0.95, "method": INTERVAL}
        found["confidence_interval"] = ends
    return {"uncertainty": found}


def _details(one: BenchmarkMean) -> dict[str, str]:
    counts = {"responses": one.n_responses, "instances": one.n_instances, "missing": one.n_missing}
    made_up = {"simulated": ", ".join(one.simulated)} if one.simulated else {}
    return {name: str(value) for name, value in counts.items()} | made_up


def _scoring(one: BenchmarkMean, rows: Sequence[BenchmarkMean], source: Source) -> dict[str, Any]:
    """Return who judged and how; the clinicians' mean is the baseline, where there is one."""
    seated = [judge for judge in source.judges if one.scorer in (JURY, f"{JUROR}{judge.name}")]
    experts = (
        row.mean for row in rows if (row.benchmark, row.scorer) == (one.benchmark, CLINICIANS)
    )
    baseline = next((mean for mean in experts if math.isfinite(mean)), None)
    return {
        "judges": [_judge(judge) for judge in seated],
        "input_prompt": source.prompts[one.benchmark],
        "aggregation_method": "average",
        "additional_details": {"rubric_sha256": source.rubrics[one.benchmark]},
    } | ({} if baseline is None else {"expert_baseline": baseline})


def _judge(judge: Judge) -> dict[str, Any]:
    told = {key: str(value) for key, value in judge.settings.items() if value is not None}
    temperature = judge.settings.get("temperature")
    body: dict[str, Any] = {
        "model_info": _model_info(judge.model),
        "additional_details": {"juror": judge.name} | told,
    }
    return body if temperature is None else body | {"temperature": temperature}


def _model_info(model: str) -> dict[str, Any]:
    return {"name": model, "id": _id(model), "additional_details": dict(UNKNOWN)}


def _id(model: str) -> str:
    """Return a model's name as developer/model, "unknown" where it names no developer."""
    developer, _, short = model.rpartition("/")
    return f"{_folder(developer)}/{_folder(short)}"


def _folder(name: str) -> str:
    """Return a name as a folder can have it; what was changed is told apart by a hash of it."""
    plain = ODD.sub("-", name)[:LONGEST_FOLDER]
    if plain == name:
        return name or "unknown"
    return f"{plain}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _uuid(text: str) -> uuid.UUID:
    """Return a version 4 UUID that the same record always gets."""
    return uuid.UUID(bytes=hashlib.sha256(text.encode()).digest()[:16], version=4)
