"""MLflow: a scorer that puts each output to the whole jury, with medjury's prompt.

MLflow's make_judge asks one model for one value; the scorer asks the panel for all criteria.
"""

import json
from typing import Any

from jury.exports.export import Export, ExportRow
from jury.exports.promptfoo import grader

SCORER = '''\
"""MLflow's scorer: the jury's points on every criterion. Written by medjury.

    from medjury_scorer import jury
    mlflow.genai.evaluate(data=data, predict_fn=model, scorers=[jury])
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from medjury_jury import SETTINGS, NotRated, rate
from mlflow.entities import AssessmentError, AssessmentSource, Feedback
from mlflow.genai import scorer

RUBRIC = SETTINGS["rubric"]
SOURCE = AssessmentSource("LLM_JUDGE", "medjury: " + ", ".join(j["name"] for j in SETTINGS["jurors"]))
TOLD = {"rubric": RUBRIC["name"], "rubric_sha256": RUBRIC["sha256"], "jury": SETTINGS["status"]}
NAMES = [*SETTINGS["criteria"], "composite"]


@scorer(name="medjury")
def jury(inputs, outputs, expectations=None):
    """Return feedback on every criterion, in points; an error, never a zero, where not rated."""
    given = {**(expectations or {}), **(inputs or {})}
    texts = {name: given.get(name) for name in ("context", "prompt", "reference")}
    response = outputs.get("response") if isinstance(outputs, dict) else outputs
    try:
        found = rate({**texts, "response": response})
    except NotRated as error:
        missing = AssessmentError("NOT_RATED", str(error))
        return [Feedback(name=one, error=missing, source=SOURCE, metadata=TOLD) for one in NAMES]
    points = {**found["scores"], "composite": found["composite"]}
    return [
        Feedback(name=one, value=points[one], rationale=found["reason"], source=SOURCE, metadata=TOLD)
        for one in NAMES
    ]
'''


def write(export: Export) -> dict[str, str]:
    """Return the scorer, what it asks the jury with, the study's data, and what was validated."""
    data = json.dumps([_datum(row) for row in export.rows], indent=1) + "\n"
    return {"medjury_scorer.py": SCORER, "data.json": data, **grader(export)}


def _datum(row: ExportRow) -> dict[str, Any]:
    """Return a row as `mlflow.genai.evaluate` takes it; `outputs` only where there is a response."""
    one: dict[str, Any] = {"inputs": {"context": row.context, "prompt": row.prompt}}
    if row.reference is not None:
        one["expectations"] = {"reference": row.reference}
    return one if row.response is None else one | {"outputs": row.response}
