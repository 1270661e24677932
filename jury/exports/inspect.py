"""Inspect: a scorer that Inspect runs, with medjury's prompt and Inspect's own clients.

A juror is asked through Inspect, so that its calls stand in Inspect's log; what it is sent and how
its answers are read are the engine's.
"""

import json
import re
from typing import Any

from data.card import ExportRow
from data.rubric import rubric_toml
from jury.exports.engine import engine
from jury.exports.export import Export, place_of, program
from jury.panel import Juror
from jury.providers.registry import PROVIDERS

SCORER_FILE, TASK_FILE = "medjury_scorer.py", "medjury_task.py"
SAMPLES_FILE, MODELS_FILE = "samples.json", "medjury_models.json"
SERVICE = "medjury"
PATH = re.compile(r"(?!.{121})[\w-][\w. -]*(?:/[\w-][\w. -]*)*")


def write(export: Export) -> dict[str, str]:
    """Return the scorer, a task on the study's instances, the rubric, and what was validated.

    Raises
    ------
    BadInput
        If a juror is simulated: there is no model that Inspect could ask.
    """
    told = engine(export)
    models = {one.name: inspect_model(one) for one in export.panel.juror}
    return told | {
        SCORER_FILE: program("inspect_scorer"),
        TASK_FILE: program("inspect_task"),
        MODELS_FILE: json.dumps(models, indent=2) + "\n",
        SAMPLES_FILE: json.dumps(_samples(export.rows), indent=1) + "\n",
        "rubric/rubric.toml": rubric_toml(export.rubric),
        "rubric/prompt.txt": export.rubric.prompt,
    }


def inspect_model(juror: Juror) -> dict[str, Any]:
    """Return a juror as `get_model` of Inspect takes it: name, address, and its client's options."""
    own = PROVIDERS[juror.provider].own_host == juror.host
    if juror.provider == "anthropic":
        return {"model": f"anthropic/{juror.model}", "base_url": juror.base_url, "args": {}}
    name = f"openai/{juror.model}" if own else f"openai-api/{SERVICE}/{juror.model}"
    return {"model": name, "base_url": juror.base_url, "args": {"responses_api": False}}


def _samples(rows: tuple[ExportRow, ...]) -> list[dict[str, Any]]:
    """Return every response as a sample; one that only repeats an instance has a number after it."""
    seen: dict[str, int] = {}
    names = _names(rows)
    samples = []
    for row in rows:
        number = seen[row.instance_id] = seen.get(row.instance_id, 0) + 1
        name = names[row.instance_id]
        samples.append(
            {
                "id": name if number == 1 else f"{name}#{number}",
                "first": number == 1,
                "context": row.context,
                "prompt": row.prompt,
                "reference": row.reference,
                "checklist": row.checklist,
                "response": row.response,
                "response_id": row.response_id,
                "place": place_of(row),
            }
        )
    return samples


def _names(rows: tuple[ExportRow, ...]) -> dict[str, str]:
    """Return Inspect's name of each instance: its id, or its number where that is no path.

    Inspect names the parts of its log by these, so an id must not lead out of it. Who reads the log
    knows an instance by its place.
    """
    ids = dict.fromkeys(row.instance_id for row in rows)
    return {one: one if PATH.fullmatch(one) else f"#{number}" for number, one in enumerate(ids, 1)}
