"""Figures of models in the shape of HELM's leaderboard releases.

A release is a folder of JSON that HELM's own web page reads: `summary.json`, `schema.json`,
`groups.json`, `groups_metadata.json` and a list of tables in `groups/NAME.json`. A cell has a value,
how it is displayed, and words on it; a value that is undefined is null.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calibration.models.model_scores import BenchmarkMean
from calibration.models.rows import CLINICIANS, JURY

GROUP = "medjury"
Cell = dict[str, Any]
POINTS = "points of the rubric's scale"
INTERVAL = "95 % confidence interval, by t over instances"


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
