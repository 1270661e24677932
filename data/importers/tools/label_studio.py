"""Label Studio's JSON export: tasks with their data and annotations.

Which of a task's data is the response, and which the rest, is told by their names or by a map.
Annotators are named by their numbers: an export may hold their e-mail addresses, which never
enter a study. Of several annotations of a task by one of them the newest counts.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from data.importers.columns import ColumnMap, flat, guessed
from data.importers.grades import usable_name
from data.importers.responses import ID_MADE
from data.importers.rows import made_id
from data.importers.table import Cells, DerivedTable, TableFile
from data.importers.tools.common import RATINGS, RESPONSES, Record, derived, rating_cells, text_of

KEYS = {"id", "data", "annotations"}
RATER = "label-studio."
SCORES = ("rating", "number", "choices", "likert")
MAKES_ID = ("benchmark", "instance_id", "response")


def responses(table: TableFile, constant: Cells, given: ColumnMap | None = None) -> DerivedTable:
    """Return the tasks' data as rows of responses."""
    chosen = _column_map(table, given)

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        cells = _response(record, chosen, constant)
        if cells.get("response", "").strip():
            yield cells
        else:
            left_out["tasks without a response"] += 1

    ours = {*chosen.columns.values(), *chosen.constant, *constant}
    named = tuple(
        name for name in RESPONSES if name in ours | {"instance_id", "response_id", ID_MADE}
    )
    return derived(table, named, make)


def ratings(table: TableFile, constant: Cells, given: ColumnMap | None = None) -> DerivedTable:
    """Return annotations as ratings by clinicians; each control tag is a criterion."""
    chosen = _column_map(table, given)

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        response = _response(record, chosen, constant)["response_id"]
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
            rater = f"{RATER}{who if who.isdecimal() else 'unknown'}"
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


def _response(record: Record, chosen: ColumnMap, constant: Cells) -> Cells:
    """Return a task's data in our columns; a task without an instance id is its own instance."""
    data = record.get("data")
    values = flat(data) if isinstance(data, dict) else {}
    cells = {**chosen.renamed(values), **constant}
    cells.setdefault("instance_id", text_of(record, "id"))
    if not cells.get("response_id"):
        cells["response_id"] = made_id(*(cells.get(name, "") for name in MAKES_ID))
        cells[ID_MADE] = "yes"
    return cells
