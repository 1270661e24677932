"""Exports for tools that run a Python scorer: Inspect, promptfoo and MLflow, with medjury's prompt.

Each tool's own judge asks one model for one value. The exported scorer asks the whole jury for all
criteria: what jurors are sent and how their answers are read are the engine's. In Inspect a juror is
asked through Inspect's own clients, so that its calls stand in Inspect's log.

promptfoo reads whatever stands in its configuration and its variables: as a template, as the name of a
file that it opens, or of a program that it runs. So none of the study's words stand there: a test has
the place of its instance in `instances.json`, which two programs of ours read.
"""

import json
import re
from typing import Any

from data.card import ExportRow
from data.rubric import rubric_toml
from jury.exports.bundle import PAGE, Export, place_of, program, texts_of
from jury.exports.engine import engine
from jury.panel import Juror
from jury.providers.registry import PROVIDERS

SCORER_FILE, TASK_FILE = "medjury_scorer.py", "medjury_task.py"
SAMPLES_FILE, MODELS_FILE = "samples.json", "medjury_models.json"
SERVICE = "medjury"
PATH = re.compile(r"(?!.{121})[\w-][\w. -]*(?:/[\w-][\w. -]*)*")


def write_inspect(export: Export) -> dict[str, str]:
    """Return the scorer, a task on the study's instances, the rubric, and what was validated.

    Raises
    ------
    BadInput
        If a juror is simulated: there is no model that Inspect could ask.
    """
    files = engine(export)
    models = {juror.name: inspect_model(juror) for juror in export.panel.juror}
    return files | {
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
    numbers: dict[str, int] = {}
    names = _names(rows)
    samples = []
    for row in rows:
        number = numbers[row.instance_id] = numbers.get(row.instance_id, 0) + 1
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
    return {
        instance_id: instance_id if PATH.fullmatch(instance_id) else f"#{number}"
        for number, instance_id in enumerate(ids, 1)
    }


INSTANCES_FILE = "instances.json"
INSTANCE = "medjury_instance"
PROMPT = f"{{{{ {INSTANCE} | medjury_ask(context, prompt) }}}}\n"


def write_promptfoo(export: Export) -> dict[str, str]:
    """Return promptfoo's configuration, its tests, the assertion, and what was validated."""
    rows = {row.instance_id: row for row in export.rows}.values()
    texts = [{"instance_id": row.instance_id} | texts_of(row) for row in rows]
    cases = [{"vars": {INSTANCE: index}} for index in range(len(texts))]
    return {
        "promptfooconfig.yaml": _configuration(export, bool(cases)),
        "tests.json": json.dumps(cases, indent=1) + "\n",
        "prompt.txt": PROMPT,
        INSTANCES_FILE: json.dumps(texts, indent=1) + "\n",
        "medjury_ask.cjs": program("promptfoo_ask"),
        "medjury_assert.py": program("promptfoo_assert"),
        **engine(export),
    }


def _configuration(export: Export, tests: bool) -> str:
    return f"""\
# Written by medjury; the jury is {export.record["status"]}: see {PAGE}.
description: outputs rated by a jury, with medjury
prompts:
  - file://prompt.txt
providers:
  - echo            # put the model that is to be evaluated here
nunjucksFilters:
  medjury_ask: medjury_ask.cjs
defaultTest:
  assert:
    - type: python
      value: file://medjury_assert.py
      metric: jury  # 0 to 1; the points of every criterion are named scores
      config:
        pass_at: null  # points of the composite from which an output passes; null: whatever was rated
tests: {"file://tests.json" if tests else "[]"}
"""


def write_mlflow(export: Export) -> dict[str, str]:
    """Return the scorer, what it asks the jury with, the study's data, and what was validated."""
    data = json.dumps([_datum(row) for row in export.rows], indent=1) + "\n"
    return {"medjury_scorer.py": program("mlflow_scorer"), "data.json": data, **engine(export)}


def _datum(row: ExportRow) -> dict[str, Any]:
    texts = texts_of(row)
    inputs = {name: texts.pop(name) for name in ("context", "prompt")}
    datum: dict[str, Any] = {"inputs": inputs} | ({"expectations": texts} if texts else {})
    return datum if row.response is None else datum | {"outputs": row.response}
