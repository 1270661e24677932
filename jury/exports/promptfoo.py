"""promptfoo: an assertion that puts each output to the whole jury, with medjury's prompt.

promptfoo's own llm-rubric asks one model for one number; a jury's answer is several criteria from
several models. So the assertion is a Python file, which MLflow uses too.
"""

import json
import re

from jury.exports.bundle import PAGE
from jury.exports.engine import engine
from jury.exports.export import Export, program, texts_of

INSTANCES_FILE = "instances.json"
RAW, UNRAW = "{% raw %}", "{% endraw %}"
RAW_INSIDE = re.compile(r"\{%(?=\s*(?:end)?raw)|\{(?=\{)")  # what would be read all the same


def write(export: Export) -> dict[str, str]:
    """Return promptfoo's configuration, its tests, the assertion, and what was validated."""
    texts = {row.instance_id: texts_of(row) for row in export.rows}
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
        **engine(export),
    }


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
