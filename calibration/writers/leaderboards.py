"""Figures of models for leaderboards: HELM's releases, and records of Every Eval Ever."""

import hashlib
import json
import math
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibration.models.model_scores import JUROR, BenchmarkMean
from calibration.models.rows import CLINICIANS, JURY

GROUP = "medjury"
Cell = dict[str, Any]
POINTS = "points of the rubric's scale"
INTERVAL = "95 % confidence interval, by t over instances"
SCHEMA_VERSION = "0.3.0"
UNKNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}
ODD = re.compile(r"[^\w.@+-]|^[.-]+")  # in the name of a folder
LONGEST_FOLDER = 100


def release(rows: Sequence[BenchmarkMean], name: str, date: str, about: str) -> Mapping[str, str]:
    """Return the release's files, by path.

    Parameters
    ----------
    name : of the release, which is also its folder's
    date : YYYY-MM-DD
    about : what stands above the tables
    """
    tables = [one for scorer in scorers(rows) for one in _tables(rows, scorer, about)]
    files: dict[str, Any] = {
        "summary.json": {"release": name, "suites": [name], "date": date},
        "schema.json": _schema(rows, about),
        "groups.json": [_index(rows, about)],
        "groups_metadata.json": {GROUP: {"display_name": "medjury", "description": about}},
        f"groups/{GROUP}.json": tables,
    }
    for table in tables:
        files[f"groups/json/{GROUP}_{table['name']}.json"] = table
    return {
        path: json.dumps(body, indent=2, ensure_ascii=False) + "\n" for path, body in files.items()
    }


def scorers(rows: Iterable[BenchmarkMean]) -> list[str]:
    """Return the scorers, each once, in their order."""
    return list(dict.fromkeys(one.scorer for one in rows))


def scorer_words(scorer: str) -> str:
    """Return a scorer as a heading has it."""
    named = {CLINICIANS: "Clinicians", JURY: "Jury"}
    return named.get(scorer) or f"Juror {scorer.partition(':')[2]}"


def _tables(rows: Sequence[BenchmarkMean], scorer: str, about: str) -> list[dict[str, Any]]:
    """Return the table of a scorer's means, and that of their intervals."""
    own = {(one.model, one.benchmark): one for one in rows if one.scorer == scorer}
    models = sorted({model for model, _ in own})
    names = sorted({benchmark for _, benchmark in own})
    words = scorer_words(scorer)
    means = [_header("Model/adapter")] + [_column(name, f"{words} score", scorer) for name in names]
    ends = [_header("Model/adapter")] + [
        _column(name, f"{words} score, 95 % {end}", scorer)
        for name in names
        for end in ("low", "high")
    ]
    place = scorer.replace(":", "_")
    return [
        {
            "title": words,
            "name": place,
            "description": about,
            "header": means,
            "rows": [
                [{"value": one}, *(_mean(own.get((one, n))) for n in names)] for one in models
            ],
            "links": [],
        },
        {
            "title": f"{words}: {INTERVAL}",
            "name": f"{place}_interval",
            "description": about,
            "header": ends,
            "rows": [
                [{"value": one}, *(cell for n in names for cell in _ends(own.get((one, n))))]
                for one in models
            ],
            "links": [],
        },
    ]


def _header(value: str) -> Cell:
    return {"value": value, "metadata": {}}


def _column(benchmark: str, metric: str, scorer: str) -> Cell:
    return {
        "value": f"{benchmark} - {metric}",
        "description": f"{metric} on {benchmark}: mean of composites, in {POINTS}",
        "lower_is_better": False,
        "metadata": {"metric": metric, "run_group": benchmark, "scorer": scorer},
    }


def _mean(found: BenchmarkMean | None) -> Cell:
    if found is None:
        return {"value": None, "description": "no responses"}
    said = [f"{found.n_responses} responses of {found.n_instances} instances"]
    said += [f"{found.n_missing} without a score"] * (found.n_missing > 0)
    known = math.isfinite(found.low)
    said += [f"95 % interval {found.low:.3f} to {found.high:.3f}" if known else "no interval"]
    said += [f"simulated: {', '.join(found.simulated)}"] * bool(found.simulated)
    return _cell(found.mean) | {"description": "; ".join(said)}


def _ends(found: BenchmarkMean | None) -> list[Cell]:
    return [_cell(math.nan)] * 2 if found is None else [_cell(found.low), _cell(found.high)]


def _cell(value: float) -> Cell:
    if not math.isfinite(value):
        return {"value": None}
    return {"value": value, "display_value": f"{value:.3f}"}


def _index(rows: Sequence[BenchmarkMean], about: str) -> dict[str, Any]:
    """Return the table that lists the one group there is."""
    heads = ("Group", "Description", "Adaptation method", "# instances", "# models")
    instances = {one.benchmark: one.n_instances for one in rows}
    for one in rows:
        instances[one.benchmark] = max(instances[one.benchmark], one.n_instances)
    values = (
        "medjury",
        about,
        "generation",
        sum(instances.values()),
        len({one.model for one in rows}),
    )
    cells: list[Cell] = [{"value": value} for value in values]
    cells[0]["href"] = f"?group={GROUP}"
    return {
        "title": "Groups",
        "header": [_header(one) for one in heads],
        "rows": [cells],
        "links": [],
    }


def _schema(rows: Sequence[BenchmarkMean], about: str) -> dict[str, Any]:
    """Return what the page needs to know of metrics, groups and models."""
    metrics = [
        {
            "name": scorer,
            "display_name": f"{scorer_words(scorer)} score",
            "description": f"Mean of composites, in {POINTS}",
            "lower_is_better": False,
        }
        for scorer in scorers(rows)
    ]
    group = {"name": GROUP, "display_name": "medjury", "description": about, "category": "Groups"}
    names = sorted({one.benchmark for one in rows})
    return {
        "metrics": metrics,
        "perturbations": [],
        "metric_groups": [],
        "run_groups": [
            group | {"subgroups": names},
            *({"name": name, "display_name": name, "description": about} for name in names),
        ],
        "models": [
            {"name": name, "display_name": name, "description": ""}
            for name in sorted({one.model for one in rows})
        ],
    }


@dataclass(frozen=True, slots=True)
class Judge:
    """A juror as a record names it."""

    name: str
    model: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Provenance:
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


def records(rows: Sequence[BenchmarkMean], source: Provenance) -> Mapping[str, str]:
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


def record(model: str, rows: Sequence[BenchmarkMean], source: Provenance) -> dict[str, Any]:
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


def _result(
    one: BenchmarkMean, rows: Sequence[BenchmarkMean], source: Provenance
) -> dict[str, Any]:
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


def _scoring(
    one: BenchmarkMean, rows: Sequence[BenchmarkMean], source: Provenance
) -> dict[str, Any]:
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
