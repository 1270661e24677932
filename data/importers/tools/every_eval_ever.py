"""Every Eval Ever: its file of single evaluations (.jsonl), a line for each sample and metric."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from data.importers.table import Cells, DerivedTable, TableFile
from data.importers.tools.common import (
    RATINGS,
    RESPONSES,
    Record,
    derived,
    response_cells,
    score_text,
    talk,
    text_of,
)

KEYS = {"schema_version", "evaluation_id", "model_id", "sample_id", "interaction_type", "input"}
SUMMARY = {"schema_version", "evaluation_id", "evaluation_results", "model_info"}
RATER = "every_eval_ever."


def responses(table: TableFile, constant: Cells) -> DerivedTable:
    """Return the outputs as rows of responses; of a conversation, the model's last turn."""

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        for cells in _cells(record, constant):
            if cells["response"].strip():
                yield cells
            else:
                left_out["samples without a text"] += 1

    return derived(table, RESPONSES, make, each_once=True)


def ratings(table: TableFile, constant: Cells) -> DerivedTable:
    """Return the scores as ratings by metrics, named by the evaluation."""

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        evaluation = record.get("evaluation")
        result = evaluation if isinstance(evaluation, dict) else {}
        cells = _cells(record, constant)
        score = score_text(result.get("score"))
        if len(cells) != 1 or not cells[0]["response"].strip() or not score:
            left_out["samples without one text and one score"] += 1
            return
        name = text_of(record, "evaluation_result_id") or text_of(record, "evaluation_name")
        yield {
            "response_id": cells[0]["response_id"],
            "rater": f"{RATER}{name}",
            "kind": "metric",
            "criterion": "score",
            "score": score,
        }

    return derived(table, RATINGS, make)


def _cells(record: Record, constant: Cells) -> list[Cells]:
    """Return a sample's outputs."""
    body = record.get("input")
    question = body if isinstance(body, dict) else {}
    before, texts = _context_and_outputs(record, question)
    benchmark = constant.get("benchmark") or text_of(record, "evaluation_name")
    reference = _texts_of(question.get("reference"))
    return [
        response_cells(
            benchmark or text_of(record, "evaluation_id"),
            text_of(record, "sample_id"),
            before,
            constant.get("model") or text_of(record, "model_id"),
            text,
            reference=reference[0] if reference else "",
            again=str(number) if number else "",
        )
        for number, text in enumerate(texts)
    ]


def _context_and_outputs(record: Record, question: Record) -> tuple[str, list[str]]:
    """Return context and outputs; in a conversation, all before the model's last turn is context."""
    turns = record.get("messages") or record.get("interactions")
    if not isinstance(turns, list) or not turns:
        output = record.get("output")
        raw = output.get("raw") if isinstance(output, dict) else None
        return text_of(question, "raw"), _texts_of(raw) or [""]
    own = [index for index, turn in enumerate(turns) if _role(turn) == "assistant"]
    if not own:
        return text_of(question, "raw"), [""]
    last = turns[own[-1]].get("content")
    return talk(turns[: own[-1]]), [last if isinstance(last, str) else ""]


def _role(turn: Any) -> str:
    return str(turn.get("role", "")) if isinstance(turn, dict) else ""


def _texts_of(body: Any) -> list[str]:
    """Return a list of texts from a list or, as up to schema 0.2.0, from one text."""
    if isinstance(body, str):
        return [body]
    return [text for text in body if isinstance(text, str)] if isinstance(body, list) else []
