"""MLflow: a scorer that puts each output to the whole jury, with medjury's prompt.

MLflow's make_judge asks one model for one value; the scorer asks the panel for all criteria.
"""

import json
from typing import Any

from data.card import ExportRow
from jury.exports.engine import engine
from jury.exports.export import Export, program, texts_of


def write(export: Export) -> dict[str, str]:
    """Return the scorer, what it asks the jury with, the study's data, and what was validated."""
    data = json.dumps([_datum(row) for row in export.rows], indent=1) + "\n"
    return {"medjury_scorer.py": program("mlflow_scorer"), "data.json": data, **engine(export)}


def _datum(row: ExportRow) -> dict[str, Any]:
    """Return a row as `mlflow.genai.evaluate` takes it; `outputs` only where there is a response."""
    texts = texts_of(row)
    asked = {name: texts.pop(name) for name in ("context", "prompt")}
    one: dict[str, Any] = {"inputs": asked} | ({"expectations": texts} if texts else {})
    return one if row.response is None else one | {"outputs": row.response}
