"""Samples of lm-evaluation-harness: samples_TASK_TIME.jsonl, a line for each document and filter.

The file does not name its model: the summary beside it does (results_TIME.json), else its folder.
A document of several filters has a line for each, with the same answers. Versions before 0.4.4 list no
metrics: they are the numbers beside what every sample has.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from data.errors import BadFile
from data.importers.child import read_json
from data.importers.table import Cells, DerivedTable, TableFile
from data.importers.tools.common import (
    RATINGS,
    RESPONSES,
    Record,
    derived,
    rating_cells,
    response_cells,
    score_text,
    text_of,
)

OTHERS = {"filter", "metrics", "doc_hash", "prompt_hash", "target_hash", "schema_version"}
KEYS = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps"}
NAMED = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl(\.gz)?")
NUMBER = re.compile(r"-?(\d+\.?\d*(e[+-]?\d+)?|inf|nan)")
RATER = "lm-eval."


def responses(table: TableFile, constant: Cells) -> DerivedTable:
    """Return the answers as rows of responses."""
    own = _task_and_model(table, constant)

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        answers = _answers(record)
        if not answers:
            left_out["samples without a text that was written (choices by likelihood)"] += 1
        for number, text in enumerate(answers):
            if text.strip():
                yield _cells(record, text, number, own)
            else:
                left_out["empty responses"] += 1

    return derived(table, RESPONSES, make, each_once=True)


def ratings(table: TableFile, constant: Cells) -> DerivedTable:
    """Return the metrics of documents with one answer as ratings."""
    own = _task_and_model(table, constant)

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        answers = _answers(record)
        if len(answers) != 1 or not answers[0].strip():
            left_out["samples with several answers, an empty one or none"] += 1
            return
        response = _cells(record, answers[0], 0, own)["response_id"]
        filter_name = text_of(record, "filter")
        suffix = "" if filter_name in ("", "none") else f".{filter_name}"
        metrics = record.get("metrics")
        for name in metrics or [key for key in record if key not in KEYS | OTHERS]:
            if score := score_text(record.get(name)):
                yield rating_cells(response, f"{RATER}{name}{suffix}", "metric", str(name), score)

    return derived(table, RATINGS, make)


def _cells(record: Record, text: str, number: int, own: Cells) -> Cells:
    target = record.get("target")
    return response_cells(
        own["benchmark"],
        text_of(record, "doc_id"),
        _prompt(record),
        own["model"],
        text,
        reference=target if isinstance(target, str) else "",
        again=str(number) if number else "",
    )


def _answers(record: Record) -> list[str]:
    """Return the texts that the model wrote; log-likelihoods of choices are none."""
    first = record.get("resps")
    while isinstance(first, list) and first and isinstance(first[0], list):
        first = first[0]
    answers = first if isinstance(first, list) else []
    if not all(isinstance(answer, str) for answer in answers):
        return []
    is_likelihood = (  # logged as a number and a flag, also as text
        len(answers) == 2 and answers[1] in ("True", "False") and NUMBER.fullmatch(answers[0])
    )
    return [] if is_likelihood else answers


def _prompt(record: Record) -> str:
    """Return the prompt: the first argument of the first request."""
    arguments = record.get("arguments")
    body: Any = arguments
    while isinstance(body, dict | list) and body:
        body = next(iter(body.values())) if isinstance(body, dict) else body[0]
    return body if isinstance(body, str) else json.dumps(record.get("doc"), ensure_ascii=False)


def _task_and_model(table: TableFile, constant: Cells) -> Cells:
    """Return the task and the model of a file of samples."""
    named = NAMED.fullmatch(table.path.name)
    task = constant.get("benchmark") or (named["task"] if named else "")
    if not task:
        raise table.wrong(
            "these are samples of lm-evaluation-harness under another name than it gives "
            "(samples_TASK_TIME.jsonl); give --benchmark NAME"
        )
    model = constant.get("model") or _model(table.path, named["time"] if named else "")
    if not model:
        raise table.wrong(
            "these are samples of lm-evaluation-harness, and what names their model (its folder, or "
            'results_TIME.json) is not with them; name it in a map: [constant] model = "NAME"'
        )
    return {"benchmark": task, "model": model}


def _model(path: Path, time: str) -> str:
    """Return the model from the summary beside the samples, else from the folder, else ""."""
    try:
        body = read_json(path.parent / f"results_{time}.json")
    except (OSError, BadFile):
        body = {}
    name = body.get("model_name") if isinstance(body, dict) else None
    if isinstance(name, str) and name:
        return name
    folder = path.resolve().parent.name if path.exists() else ""
    return folder.replace("__", "/") if "__" in folder else ""
