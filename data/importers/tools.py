"""Files of other tools, each read as rows in columns of ours: two functions a tool, and its keys.

lm-evaluation-harness: samples_TASK_TIME.jsonl, a line for each document and filter. The file does not
name its model: the summary beside it does (results_TIME.json), else its folder. A document of several
filters has a line for each, with the same answers. Versions before 0.4.4 list no metrics: they are the
numbers beside what every sample has.

Label Studio's JSON export: tasks with their data and annotations. Which of a task's data is the
response, and which the rest, is told by their names or by a map. Annotators are named by their
numbers: an export may hold their e-mail addresses, which never enter a study. Of several annotations
of a task by one of them the newest counts.

HealthBench, as OpenAI publishes it and as simple-evals writes its results. The set itself (.jsonl) has
questions, the points of each question's rubric and, for some, what physicians wrote and the responses
they saw. The meta-evaluation (.jsonl) has a line for each response and point, with whether each
physician found the point met. Results (..._allresults.json) have a model's responses with what the
grader said of every point.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from data.errors import BadFile, BadRow
from data.importers.columns import ColumnMap, flat, guessed
from data.importers.grades import usable_name
from data.importers.responses import ID_MADE
from data.importers.rows import Origin, checklist_of, made_id
from data.importers.safe import read_json_file
from data.importers.table import Cells, DerivedTable, TableFile
from data.rubric import Criterion, Rubric, Scale

RESPONSES = (
    *("instance_id", "benchmark", "context", "prompt", "reference", "response_id", "model"),
    *("response", "checklist", ID_MADE),
)
RATINGS = ("response_id", "rater", "kind", "criterion", "score", "comment", "rated_at")
Record = Mapping[str, Any]
Maker = Callable[[Record, Counter[str]], Iterator[Cells]]


def derived(
    table: TableFile,
    columns: tuple[str, ...],
    make: Maker,
    records: Callable[[], Iterator[tuple[Origin, Record]]] | None = None,
    each_once: bool = False,
) -> DerivedTable:
    """Return the rows made from every record; `make` counts the ones it leaves out.

    `records` gives them where they are not the table's rows. With `each_once` a response that comes
    again, as one row a metric has it, is taken once.
    """
    left_out = Counter[str]()

    def rows() -> Iterator[tuple[Origin, Cells]]:
        keys, any_row = set[tuple[str, ...]](), False
        for origin, record in (records or table.records)():
            try:
                made = list(make(record, left_out))
            except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
                raise BadRow(
                    f"{origin}: not as the tool writes it, whose other rows look like a file of it; "
                    "nothing was imported"
                ) from error
            for cells in made:
                key = (cells["response_id"], cells["model"]) if each_once else ()
                if each_once and key in keys:
                    continue
                keys.add(key)
                any_row = True
                yield origin, cells
        if not any_row:
            reasons = ", ".join(f"{reason}: {number}" for reason, number in left_out.items())
            raise table.wrong(f"nothing of it can be taken ({reasons or 'no rows'})")

    return DerivedTable(table, columns, rows, left_out)


def response_cells(
    benchmark: str, instance: str, context: str, model: str, text: str, **more: str
) -> Cells:
    """Return a response as cells; its id is always the same and does not depend on the model.

    `more` has prompt, reference, checklist; and `again`, which tells equal texts apart.
    """
    again = [text for text in (more.pop("again", ""),) if text]
    return {
        "instance_id": instance,
        "benchmark": benchmark,
        "context": context,
        "model": model,
        "response": text,
        "response_id": made_id(benchmark, instance, text, *again),
        ID_MADE: "yes",
        **more,
    }


def rating_cells(response: str, rater: str, kind: str, criterion: str, score: str) -> Cells:
    """Return a score as cells."""
    names = ("response_id", "rater", "kind", "criterion", "score")
    return dict(zip(names, (response, rater, kind, criterion, score), strict=True))


def talk(messages: Any) -> str:
    """Return a conversation as text: one turn as it is, several with [role] before each."""
    turns = [turn for turn in messages if isinstance(turn, Mapping)] if messages else []
    texts = [(str(turn.get("role", "user")), content(turn.get("content"))) for turn in turns]
    if len(texts) == 1:
        return texts[0][1]
    return "\n\n".join(f"[{role}]\n{text}" for role, text in texts)


def content(body: Any) -> str:
    """Return the text of a turn; of a turn in pieces, the pieces that are text."""
    if isinstance(body, list):
        pieces = (piece.get("text") for piece in body if isinstance(piece, Mapping))
        return "\n".join(str(piece) for piece in pieces if piece)
    return body if isinstance(body, str) else ""


def score_text(value: Any) -> str:
    """Return a score as text, "" if it is no number; true is 1."""
    if isinstance(value, bool):
        return str(int(value))
    return repr(value) if isinstance(value, int | float) and value == value else ""


def text_of(record: Record, key: str) -> str:
    """Return a value that is text or a number as text, "" for any other."""
    value = record.get(key)
    return str(value) if isinstance(value, str | int | float) and value is not True else ""


OTHER_KEYS = {"filter", "metrics", "doc_hash", "prompt_hash", "target_hash", "schema_version"}
LM_EVAL = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps"}
NAMED = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl(\.gz)?")
NUMBER = re.compile(r"-?(\d+\.?\d*(e[+-]?\d+)?|inf|nan)")
LM_EVAL_RATER = "lm-eval."


def lm_eval_responses(table: TableFile, constant: Cells) -> DerivedTable:
    """Return the answers as rows of responses."""
    own = _task_and_model(table, constant)

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        answers = _answers(record)
        if not answers:
            left_out["samples without a text that was written (choices by likelihood)"] += 1
        for number, text in enumerate(answers):
            if text.strip():
                yield _sample(record, text, number, own)
            else:
                left_out["empty responses"] += 1

    return derived(table, RESPONSES, make, each_once=True)


def lm_eval_ratings(table: TableFile, constant: Cells) -> DerivedTable:
    """Return the metrics of documents with one answer as ratings."""
    own = _task_and_model(table, constant)

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        answers = _answers(record)
        if len(answers) != 1 or not answers[0].strip():
            left_out["samples with several answers, an empty one or none"] += 1
            return
        response = _sample(record, answers[0], 0, own)["response_id"]
        filter_name = text_of(record, "filter")
        suffix = "" if filter_name in ("", "none") else f".{filter_name}"
        metrics = record.get("metrics")
        for name in metrics or [key for key in record if key not in LM_EVAL | OTHER_KEYS]:
            if score := score_text(record.get(name)):
                yield rating_cells(
                    response, f"{LM_EVAL_RATER}{name}{suffix}", "metric", str(name), score
                )

    return derived(table, RATINGS, make)


def _sample(record: Record, text: str, number: int, own: Cells) -> Cells:
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
        body = read_json_file(path.parent / f"results_{time}.json")
    except (OSError, BadFile):
        body = {}
    name = body.get("model_name") if isinstance(body, dict) else None
    if isinstance(name, str) and name:
        return name
    folder = path.resolve().parent.name if path.exists() else ""
    return folder.replace("__", "/") if "__" in folder else ""


LABEL_STUDIO = {"id", "data", "annotations"}
LABEL_STUDIO_RATER = "label-studio."
SCORES = ("rating", "number", "choices", "likert")
MAKES_ID = ("benchmark", "instance_id", "response")


def label_studio_responses(
    table: TableFile, constant: Cells, given: ColumnMap | None = None
) -> DerivedTable:
    """Return the tasks' data as rows of responses."""
    chosen = _column_map(table, given)

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        cells = _task(record, chosen, constant)
        if cells.get("response", "").strip():
            yield cells
        else:
            left_out["tasks without a response"] += 1

    ours = {*chosen.columns.values(), *chosen.constant, *constant}
    named = tuple(
        name for name in RESPONSES if name in ours | {"instance_id", "response_id", ID_MADE}
    )
    return derived(table, named, make)


def label_studio_ratings(
    table: TableFile, constant: Cells, given: ColumnMap | None = None
) -> DerivedTable:
    """Return annotations as ratings by clinicians; each control tag is a criterion."""
    chosen = _column_map(table, given)

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        response = _task(record, chosen, constant)["response_id"]
        if record.get("predictions"):
            left_out["tasks with predictions by a model, which are not taken"] += 1
        taken: dict[str, Mapping[str, Any]] = {}
        newest_last = sorted(
            record.get("annotations") or (),
            key=lambda one: (text_of(one, "updated_at"), text_of(one, "created_at")),
        )
        for annotation in newest_last:
            if annotation.get("was_cancelled"):
                left_out["annotations that were skipped"] += 1
            elif not any(map(_is_score, annotation.get("result") or ())):
                left_out["annotations without a score"] += 1
            else:
                user = annotation.get("completed_by")
                number = user.get("id") if isinstance(user, dict) else user  # names are not read
                who = str(number) if isinstance(number, int) else f"unknown{len(taken)}"
                if who in taken:
                    left_out["older annotations of the same annotator"] += 1
                taken[who] = annotation
        for who, annotation in taken.items():
            rater = f"{LABEL_STUDIO_RATER}{who if who.isdecimal() else 'unknown'}"
            yield from _scores(annotation, response, rater, chosen, left_out)

    return derived(table, RATINGS, make)


def _is_score(result: object) -> bool:
    return isinstance(result, dict) and result.get("type") in SCORES


def _scores(
    annotation: Mapping[str, Any],
    response: str,
    rater: str,
    chosen: ColumnMap,
    left_out: Counter[str],
) -> Iterator[Cells]:
    """Yield an annotation's scores; its texts become the comment of the first."""
    results = [result for result in annotation.get("result") or () if isinstance(result, dict)]
    texts = [_value_of(result) for result in results if result.get("type") == "textarea"]
    comment = "\n".join(text for text in texts if text)
    for result in results:
        if _is_score(result):
            criterion = chosen.criterion(usable_name(str(result.get("from_name"))))
            yield {
                **rating_cells(response, rater, "clinician", criterion, _value_of(result)),
                "comment": comment,
                "rated_at": text_of(annotation, "created_at"),
            }
            comment = ""
        elif result.get("type") != "textarea":
            left_out[f"marks of type {str(result.get('type'))[:20]}"] += 1


def _value_of(result: Mapping[str, Any]) -> str:
    """Return the value of a result: its rating, number, one choice or text."""
    value = result.get("value")
    content = value.get(result.get("type"), value.get("text")) if isinstance(value, dict) else value
    if isinstance(content, list):
        return "; ".join(str(item) for item in content)
    return "" if content is None else str(content)


def _column_map(table: TableFile, given: ColumnMap | None) -> ColumnMap:
    """Return the column map of the tasks' data: the given one, or one guessed from names."""
    if given is not None and given.columns:
        return given
    first = table.first(1)[0][1].get("data")
    data = flat(first) if isinstance(first, dict) else {}
    return replace(given or ColumnMap(), columns=guessed(tuple(data), "responses").columns)


def _task(record: Record, chosen: ColumnMap, constant: Cells) -> Cells:
    """Return a task's data in our columns; a task without an instance id is its own instance."""
    data = record.get("data")
    values = flat(data) if isinstance(data, dict) else {}
    cells = {**chosen.renamed(values), **constant}
    cells.setdefault("instance_id", text_of(record, "id"))
    if not cells.get("response_id"):
        cells["response_id"] = made_id(*(cells.get(name, "") for name in MAKES_ID))
        cells[ID_MADE] = "yes"
    return cells


HEALTHBENCH_SET = {"prompt", "rubrics", "prompt_id"}
HEALTHBENCH_META = {
    "prompt",
    "completion",
    "rubric",
    "binary_labels",
    "anonymized_physician_ids",
    "prompt_id",
}
HEALTHBENCH, HEALTHBENCH_POINTS = "healthbench", "healthbench_points"
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
                constant.get("benchmark") or HEALTHBENCH,
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
        constant.get("benchmark") or HEALTHBENCH_POINTS,
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
        constant.get("benchmark") or HEALTHBENCH,
        text_of(result, "prompt_id"),
        talk(result.get("prompt")),
        constant["model"],
        talk(result.get("completion")),
        checklist=checklist_of(result.get("rubric_items")),
    )
