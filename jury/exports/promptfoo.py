"""promptfoo: an assertion that puts each output to the whole jury, with medjury's prompt.

promptfoo's own llm-rubric asks one model for one number; a jury's answer is several criteria from
several models. So the assertion is a Python file, which MLflow uses too.
"""

import json
import re
from typing import Any

from data.card import ExportRow
from data.errors import BadInput
from data.rubric import NO_CHECKLIST, NO_REFERENCE
from data.rubrics.tags import BREAK, forgery
from jury.ask import AGAIN
from jury.exports.bundle import PAGE, bundle, derived
from jury.exports.export import Export, program, refuse_untold
from jury.panel import Juror
from jury.providers import VENDORS

GRADER_FILE, SETTINGS_FILE = "medjury_jury.py", "medjury_jury.json"
INSTANCES_FILE = "instances.json"
RAW, UNRAW = "{% raw %}", "{% endraw %}"
RAW_INSIDE = re.compile(r"\{%(?=\s*(?:end)?raw)|\{(?=\{)")  # what would be read all the same


def write(export: Export) -> dict[str, str]:
    """Return promptfoo's configuration, its tests, the assertion, and what was validated."""
    texts = {row.instance_id: _texts(row) for row in export.rows}
    cases = [
        {
            "description": name,
            "vars": {"instance_id": name} | {key: _verbatim(text) for key, text in own.items()},
        }
        for name, own in texts.items()
    ]
    return {
        "promptfooconfig.yaml": _configuration(export, bool(cases)),
        "tests.json": json.dumps(cases, indent=1) + "\n",
        "prompt.txt": "{{context}}\n\n{{prompt}}\n",
        INSTANCES_FILE: json.dumps(texts, indent=1) + "\n",
        "medjury_assert.py": program("promptfoo_assert"),
        **grader(export),
    }


def grader(export: Export) -> dict[str, str]:
    """Return a Python file that asks the jury, its settings, and what was validated.

    Raises
    ------
    BadInput
        If a juror is simulated: there is no model that another tool could ask; or if it is asked
        at a cloud's own address.
    """
    refuse_untold(export.panel)
    if names := [one.name for one in export.panel.juror if one.simulated]:
        raise BadInput(
            f"panel {export.panel.name}: {', '.join(names)} simulated, and no other tool can ask "
            "them; give --panel with jurors that are models"
        )
    settings = json.dumps(_settings(export), indent=2, ensure_ascii=False) + "\n"
    return {
        GRADER_FILE: program("jury_grader"),
        SETTINGS_FILE: settings,
        PAGE: derived(bundle(export))[PAGE],
    }


def _settings(export: Export) -> dict[str, Any]:
    rubric = export.rubric
    tags = forgery(rubric.prompt)
    return {
        "rubric": {"name": rubric.name, "sha256": rubric.sha256},
        "status": export.record["status"],
        "prompt": rubric.prompt,
        "fixed": {"criteria": rubric.criteria_text(), "schema": rubric.schema_text()},
        "absent": {"reference": NO_REFERENCE, "checklist": NO_CHECKLIST},
        "tags": tags.pattern if tags else "",
        "break": BREAK,
        "criteria": list(rubric.criteria),
        "min": rubric.scale.min,
        "max": rubric.scale.max,
        "schema": rubric.json_schema(),
        "again": AGAIN.replace("{scale}", str(rubric.scale)),
        "jurors": [_juror(one) for one in export.panel.juror],
    }


def _juror(one: Juror) -> dict[str, Any]:
    """Return how a juror is asked; the name of its key's variable, never the key."""
    names = ("name", "provider", "model", "base_url", "api_key_env", "temperature", "max_tokens")
    told = {name: getattr(one, name) for name in (*names, "effort")}
    return told | {"schema": one.form, "own": one.host == VENDORS["openai"].own_host}


def _texts(row: ExportRow) -> dict[str, str]:
    given = {"context": row.context, "prompt": row.prompt}
    return given | ({} if row.reference is None else {"reference": row.reference})


def _verbatim(text: str) -> str:
    """Return a text that promptfoo, which reads variables as templates, shows as it is."""
    if not any(sign in text for sign in ("{{", "{%", "{#")):
        return text
    return RAW + RAW_INSIDE.sub(lambda found: found[0] + UNRAW + RAW, text) + UNRAW


def _configuration(export: Export, tests: bool) -> str:
    """Return the YAML; its only words from outside are a rubric's and a panel's name."""
    rubric = export.rubric
    described = json.dumps(f"{rubric.name}, rated by the jury {export.panel.name}")
    return f"""\
# Written by medjury; the jury is {export.record["status"]}: see {PAGE}.
description: {described}
prompts:
  - file://prompt.txt
providers:
  - echo            # put the model that is to be evaluated here
defaultTest:
  assert:
    - type: python
      value: file://medjury_assert.py
      metric: jury  # 0 to 1; the points of every criterion are named scores
      config:
        pass_at: null  # points of the composite from which an output passes; null: whatever was rated
tests: {"file://tests.json" if tests else "[]"}
"""
