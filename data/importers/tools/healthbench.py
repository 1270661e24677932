"""HealthBench, as OpenAI publishes it and as simple-evals writes its results.

The set itself (.jsonl) has questions, the points of each question's rubric and, for some, what
physicians wrote and the responses they saw. The meta-evaluation (.jsonl) has a line for each
response and point, with whether each physician found the point met. Results
(..._allresults.json) have a model's responses with what the grader said of every point.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from data.importers.rows import Origin, checklist_of
from data.importers.table import Cells, DerivedTable, TableFile
from data.importers.tools.common import (
    RATINGS,
    RESPONSES,
    Record,
    derived,
    rating_cells,
    response_cells,
    score_text,
    talk,
    text_of,
)
from data.rubric import Criterion, Rubric, Scale

SET = {"prompt", "rubrics", "prompt_id"}
META = {"prompt", "completion", "rubric", "binary_labels", "anonymized_physician_ids", "prompt_id"}
BENCHMARK, POINTS = "healthbench", "healthbench_points"
GRADER, PHYSICIAN = "healthbench.grader", "healthbench.physician-"


def _of_one_point(name: str, question: str, anchors: dict[int, str]) -> Rubric:
    """Return a rubric with one criterion: whether, or how far, a response meets a checklist."""
    return Rubric(
        name=f"healthbench_{name}",
        version="1",
        audience="not known",
        gold="never",
        scale=Scale(min=0, max=1),
        criterion=(Criterion(name=name, question=question, anchors=anchors),),
        prompt=(
            "<conversation>\n{{context}}\n</conversation>\n\n<response>\n{{response}}\n</response>\n\n"
            "<checklist>\n{{checklist}}\n</checklist>\n\n{{criteria}}\n\n{{schema}}\n"
        ),
    )


SHARE = _of_one_point(
    "share",
    "Which share of the checklist's points does the response earn?",
    {0: "None of the points", 1: "All of the points"},
)
MET = _of_one_point(
    "met",
    "Does the response meet the checklist's one point?",
    {0: "It does not meet it", 1: "It meets it"},
)


def set_responses(table: TableFile, constant: Cells) -> DerivedTable:
    """Return the responses that physicians saw; their own completion is the reference."""

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        body = record.get("ideal_completions_data")
        data: Record = body if isinstance(body, dict) else {}
        completions = list(filter(None, data.get("ideal_completions_ref_completions") or ()))
        if not completions:
            left_out["questions without a response"] += 1
        group = text_of(data, "ideal_completions_group") or "reference"
        for number, text in enumerate(completions, start=1):
            yield response_cells(
                constant.get("benchmark") or BENCHMARK,
                text_of(record, "prompt_id"),
                talk(record.get("prompt")),
                constant.get("model") or f"{group}, {number}",
                str(text),
                reference=text_of(data, "ideal_completion"),
                checklist=checklist_of(record.get("rubrics")),
            )

    return derived(table, RESPONSES, make)


def meta_responses(table: TableFile, constant: Cells) -> DerivedTable:
    """Return each response with one point as its checklist."""

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        yield _meta(record, constant)

    return derived(table, RESPONSES, make, each_once=True)


def meta_ratings(table: TableFile, constant: Cells) -> DerivedTable:
    """Return the physicians' labels as ratings by clinicians: 1 where the point is met."""

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        response = _meta(record, constant)["response_id"]
        physicians, labels = record.get("anonymized_physician_ids"), record.get("binary_labels")
        for physician, label in zip(physicians or (), labels or (), strict=False):
            rater = f"{PHYSICIAN}{physician}"
            yield rating_cells(response, rater, "clinician", "met", score_text(label))

    return derived(table, RATINGS, make)


def _meta(record: Record, constant: Cells) -> Cells:
    """Return a line's response; the meta-evaluation names no models."""
    return response_cells(
        constant.get("benchmark") or POINTS,
        f"{text_of(record, 'prompt_id')}/{text_of(record, 'category') or 'point'}",
        talk(record.get("prompt")),
        constant.get("model") or "not named",
        text_of(record, "completion"),
        checklist=text_of(record, "rubric"),
    )


def is_results(keys: Mapping[str, Any]) -> bool:
    """Tell whether an object holds results of HealthBench by simple-evals."""
    metadata = keys.get("metadata")
    return isinstance(metadata, Mapping) and "example_level_metadata" in metadata


def results_responses(table: TableFile, constant: Cells) -> DerivedTable:
    """Return a model's responses with their points; the results do not name the model."""

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        cells = _result(table, record, constant)
        if cells["response"].strip():
            yield cells
        else:
            left_out["empty responses"] += 1

    return derived(table, RESPONSES, make, lambda: _results(table))


def results_ratings(table: TableFile, constant: Cells) -> DerivedTable:
    """Return the grader's shares of points as ratings by one juror."""

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        cells, score = _result(table, record, constant), record.get("score")
        if not cells["response"].strip() or score is None or not score_text(score):
            left_out["responses without a score"] += 1
        elif score < 0:  # more points lost than earned: HealthBench counts the mean from 0
            left_out["scores below 0, which no share of points is"] += 1
        else:
            yield rating_cells(cells["response_id"], GRADER, "juror", "share", score_text(score))

    return derived(table, RATINGS, make, lambda: _results(table))


def _results(table: TableFile) -> Iterator[tuple[Origin, Record]]:
    (_, whole), *_ = table.first(1)
    body = whole["metadata"]["example_level_metadata"]
    for number, result in enumerate(body if isinstance(body, list) else (), start=1):
        if isinstance(result, dict):
            yield Origin(table.path.name, number), result


def _result(table: TableFile, result: Record, constant: Cells) -> Cells:
    if "model" not in constant:
        raise table.wrong(
            "these are HealthBench's results by simple-evals, which do not name the model; "
            'name it in a map: [constant] model = "NAME"'
        )
    return response_cells(
        constant.get("benchmark") or BENCHMARK,
        text_of(result, "prompt_id"),
        talk(result.get("prompt")),
        constant["model"],
        talk(result.get("completion")),
        checklist=checklist_of(result.get("rubric_items")),
    )
