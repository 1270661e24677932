"""promptfoo: an assertion that puts each output to the whole jury, with medjury's prompt.

promptfoo's own llm-rubric asks one model for one number; a jury's answer is several criteria from
several models. So the assertion is a Python file, which MLflow uses too.

promptfoo reads whatever stands in its configuration and its variables: as a template, as the name of a
file that it opens, or of a program that it runs. So none of the study's words stand there: a test has
the place of its instance in `instances.json`, which two programs of ours read.
"""

import json

from jury.exports.bundle import PAGE
from jury.exports.engine import engine
from jury.exports.export import Export, program, texts_of

INSTANCES_FILE = "instances.json"
INSTANCE = "medjury_instance"
ASKED = f"{{{{ {INSTANCE} | medjury_ask(context, prompt) }}}}\n"


def write(export: Export) -> dict[str, str]:
    """Return promptfoo's configuration, its tests, the assertion, and what was validated."""
    rows = {row.instance_id: row for row in export.rows}.values()
    texts = [{"instance_id": row.instance_id} | texts_of(row) for row in rows]
    cases = [{"vars": {INSTANCE: place}} for place in range(len(texts))]
    return {
        "promptfooconfig.yaml": _configuration(export, bool(cases)),
        "tests.json": json.dumps(cases, indent=1) + "\n",
        "prompt.txt": ASKED,
        INSTANCES_FILE: json.dumps(texts, indent=1) + "\n",
        "medjury_ask.cjs": program("promptfoo_ask"),
        "medjury_assert.py": program("promptfoo_assert"),
        **engine(export),
    }


def _configuration(export: Export, tests: bool) -> str:
    """Return the YAML; it has no word from outside."""
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
