"""`medjury analyse measure` of answers that have a key: what it refuses, and what it says."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from calibration.json_values import json_value
from data.errors import BadInput
from medjury.cli.output import counted, progress, say, show

if TYPE_CHECKING:
    from medjury.services.answer_metrics import AnswersScored, MetricResult

ANSWER_METRICS = (
    *("exact-match", "quasi-exact-match", "prefix-exact-match", "quasi-prefix-exact-match"),
    *("word-f1", "final-number-match", "label-f1", "chosen-option", "medcalc", "medec"),
    *("ehrsql", "icd-codes"),
)
REASONS = {
    "error": "do not run",
    "time": "take too long",
    "rows": "give too many rows",
    "memory": "take too much memory",
    "refused": "do more than read",
}


@dataclass(frozen=True, slots=True)
class AnswerQuestion:
    """As `medjury.services.answer_metrics.AnswerQuestion`, which loads more than help needs."""

    metrics: tuple[str, ...]
    benchmark: str | None
    keys: Path | None
    database: Path | None
    pattern: str


def refuse_mixed(metrics: Sequence[str], of_answers: Sequence[str]) -> None:
    """Refuse metrics of texts beside those of answers, or options of answers without such a metric."""
    if not of_answers:
        raise BadInput(
            "--keys, --benchmark, --database and --pattern belong to metrics of answers: name one of "
            + ", ".join(ANSWER_METRICS)
        )
    if other := [name for name in metrics if name not in of_answers]:
        raise BadInput(
            f"{other[0]} compares texts, {of_answers[0]} answers with keys: measure them one by one"
        )


def measure_answers(engine: Engine, asked: AnswerQuestion, json_to: Path | None) -> dict[str, Any]:
    """Score answers, say what came of it, and return it as `analyse measure --json` has it."""
    from medjury.services import answer_metrics

    question = answer_metrics.AnswerQuestion(
        asked.metrics, asked.benchmark, asked.keys, asked.database, asked.pattern
    )
    with progress("scoring answers", None) as at:
        scored = answer_metrics.score_answers(engine, question, at)
    show(
        "Answers by their keys",
        ("benchmark", "metric", "mean", "scored", "without key"),
        [row for result in scored.results for row in _cells(result)],
        json_to,
    )
    for line in (line for result in scored.results for line in _lines(result)):
        say(line, json_to)
    return _json(scored)


def _cells(result: "MetricResult") -> Iterator[list[str]]:
    counts = [str(result.scored), str(result.without_key)]
    for rater, mean in result.means.items():
        yield [result.benchmark, rater, f"{mean:.3f}", *counts]
    if labels := result.whole.labels:
        yield [result.benchmark, "macro F1 of labels", f"{labels.macro_f1:.3f}", *counts]
        yield [result.benchmark, "micro F1 of labels", f"{labels.micro_f1:.3f}", *counts]
    if answering := result.whole.answering:
        for name, value in asdict(answering).items():
            if name not in ("execution", "valid"):
                said = "undefined" if value != value else f"{value:.3f}"
                yield [result.benchmark, ANSWERING[name], said, *counts]


ANSWERING = {
    "precision": "answered: could be answered",
    "recall": "could be answered: answered",
    "refusing_precision": "declined: cannot be answered",
    "refusing_recall": "cannot be answered: declined",
}


def _lines(result: "MetricResult") -> Iterator[str]:
    for reason, number in result.stopped.items():
        yield f"{result.benchmark}: {counted(number, 'query')} of models {REASONS[reason]}"
    if result.stopped_keys:
        yield (
            f"{result.benchmark}: {counted(result.stopped_keys, 'key')} of questions that can be answered "
            "do not run on this database; no answer to them can be right"
        )


def _json(scored: "AnswersScored") -> dict[str, Any]:
    rows = [
        {
            "metric": result.metric,
            "benchmark": result.benchmark,
            "means": dict(result.means),
            "scored": result.scored,
            "without_key": result.without_key,
            "labels": asdict(result.whole.labels) if result.whole.labels else None,
            "answering": asdict(result.whole.answering) if result.whole.answering else None,
            "stopped": dict(result.stopped),
            "stopped_keys": result.stopped_keys,
        }
        for result in scored.results
    ]
    body: dict[str, Any] = json_value({"answers": rows, "unchanged": scored.added.unchanged})
    return body
