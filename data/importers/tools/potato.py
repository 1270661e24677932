"""Potato's output: an annotator's user_state.json, or the annotations.jsonl of `potato export`.

Neither holds the texts: the responses come from the data file that Potato read, and their
`response_id` is what stands there as its id.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from data.importers.grades import usable_name
from data.importers.rows import Origin
from data.importers.table import Cells, DerivedTable, TableFile
from data.importers.text_rows import json_object
from data.importers.tools.common import RATINGS, Record, derived, score_text, text_of

STATE = {"user_id", "instance_id_to_label_to_value"}
EXPORT = {"instance_id", "user_id", "labels"}
RATER = "potato."
NUMBER = re.compile(r"-?\d+(\.\d+)?")
WIDGETS = {"", "slider", "number", "value"}  # labels that name the control and not a criterion
TEXTS = {"text_box", "textbox"}  # labels under which a textbox stores what was written


def state_ratings(table: TableFile, constant: Cells) -> DerivedTable:
    """Return one annotator's labels as ratings by a clinician."""

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        labels = _pairs(record["labels"])
        yield from _scores(record["instance"], record["user"], labels, left_out)

    def records() -> Iterator[tuple[Origin, Record]]:
        keys = json_object(table.source)
        instances = keys["instance_id_to_label_to_value"]
        items = instances.items() if isinstance(instances, dict) else ()
        for number, (instance, labels) in enumerate(items, start=1):
            row = {"instance": str(instance), "user": str(keys["user_id"]), "labels": labels}
            yield Origin(table.path.name, number), row

    return derived(table, RATINGS, make, records)


def export_ratings(table: TableFile, constant: Cells) -> DerivedTable:
    """Return the labels of all annotators as ratings by clinicians."""

    def make(record: Record, left_out: Counter[str]) -> Iterator[Cells]:
        labels = record.get("labels")
        instance, user = text_of(record, "instance_id"), text_of(record, "user_id")
        yield from _scores(instance, user, labels if isinstance(labels, dict) else {}, left_out)

    return derived(table, RATINGS, make)


def _pairs(labels: Any) -> dict[str, Any]:
    """Return schema -> label -> value from the list of pairs in user_state.json."""
    pairs: dict[str, dict[str, Any]] = {}
    for label, value in labels if isinstance(labels, list) else ():
        pairs.setdefault(str(label["schema"]), {})[str(label["name"])] = value
    return pairs


def _scores(
    instance: str, user: str, labels: Mapping[str, Any], left_out: Counter[str]
) -> Iterator[Cells]:
    """Yield a score for each schema with one label, or for each label of a schema with several."""
    comment = _comment(labels)
    for schema, answer in labels.items():
        values = answer if isinstance(answer, Mapping) else {"": answer}
        if set(map(str, values)) <= TEXTS:
            continue
        for label, value in values.items():
            score, named = _score(str(label), value)
            if not score:
                left_out[f"labels of {usable_name(schema)} that are no score"] += 1
                continue
            yield {
                "response_id": instance,
                "rater": f"{RATER}{user}",
                "kind": "clinician",
                "criterion": usable_name(str(label) if named else schema),
                "score": score,
                "comment": comment,
            }
            comment = ""


def _score(label: str, value: Any) -> tuple[str, bool]:
    """Return the score of a label, and whether the label is the criterion.

    A point of a scale and a choice are stored under their own names, a row of a grid under the
    row's: there the label is the criterion, and the value the score.
    """
    text = value.strip() if isinstance(value, str) else score_text(value)
    if isinstance(value, bool) or text.lower() in ("true", "on", "false"):
        return (label if value is True or text.lower() in ("true", "on") else ""), False
    named = text != label and not NUMBER.fullmatch(label) and label not in WIDGETS
    return text, named and bool(NUMBER.fullmatch(text))


def _comment(labels: Mapping[str, Any]) -> str:
    """Return the texts of text boxes."""
    boxes = [
        label for label in labels.values() if isinstance(label, Mapping) and set(label) <= TEXTS
    ]
    return "\n".join(str(text) for box in boxes for text in box.values() if text)
