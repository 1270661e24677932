"""MSLR, Cochrane part: summaries of trials by six systems, judged against the review's own.

Two people answered, 39 summaries in common. Four of their questions have the answers
0, 1 and 2 and become criteria. "N/A" is not applicable, and the mean is over the other criteria;
an answer "Other", or none, becomes an empty cell, which is counted by its reason. Writes responses.jsonl and ratings.csv.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from files import Row, read_csv, run, write_csv, write_jsonl

QUESTIONS = {
    "fluency": "Is the generated summary fluent?",
    "population": "Is the *population* in the generated summary",
    "intervention": "Is the *intervention* in the generated summary",
    "outcome": "Is the *outcome* in the generated summary",
}
RATERS = {"annotator-1": "A1", "annotator-2": "A2"}
PROMPT = "Summarise what the trials of this systematic review found, as its authors would conclude."
Item = dict[str, str]


def convert(datasets: Path, out: Path) -> Iterator[str]:
    """Write both files; say how many rows each has and which answers are missing, and why."""
    folder = datasets / "mslr_cochrane"
    names = _systems(folder / "submission_info.json")
    given = {rater: _items(folder, part) for rater, part in RATERS.items()}
    items = {_response_id(item): item for rows in given.values() for item in rows}
    empty = [name for name, item in items.items() if not item["Generated Summary"].strip()]
    kept = {name: item for name, item in items.items() if name not in empty}
    yield write_jsonl(out / "responses.jsonl", _responses(kept, names))
    missing: Counter[tuple[str, str]] = Counter()
    yield write_csv(out / "ratings.csv", _ratings(given, set(empty), missing))
    yield f"left out: {len(empty)} summary without a word, with its ratings"
    for (criterion, why), count in sorted(missing.items()):
        yield f"missing: {criterion} {count} x {why}"


def _items(folder: Path, part: str) -> list[Item]:
    name = f"Data for MSLR Annotation - Cochrane Subtask - {part}.tsv"
    return read_csv(folder / name, delimiter="\t")


def _systems(path: Path) -> dict[str, str]:
    known = json.loads(path.read_text(encoding="utf-8"))
    return {one["exp_id"]: one["name"] for one in known.values()}


def _response_id(item: Item) -> str:
    return f"{item['ReviewID']}-{item['ExpID'][-6:]}"


def _responses(items: dict[str, Item], names: dict[str, str]) -> Iterator[Row]:
    for response_id, item in sorted(items.items()):
        yield {
            "instance_id": item["ReviewID"],
            "benchmark": "mslr",
            "context": "",
            "prompt": PROMPT,
            "reference": item["Target Summary"],
            "response_id": response_id,
            "model": names[item["ExpID"]],
            "response": item["Generated Summary"],
        }


def _ratings(
    given: dict[str, list[Item]], empty: set[str], missing: Counter[tuple[str, str]]
) -> Iterator[Row]:
    for rater, items in given.items():
        for item in items:
            if _response_id(item) in empty:
                continue
            answers = {name: _answer(item, start) for name, start in QUESTIONS.items()}
            scores = {name: _score(answer) for name, answer in answers.items()}
            missing.update((name, _why(answers[name])) for name in scores if not scores[name])
            who = {"response_id": _response_id(item), "rater": rater, "kind": "clinician"}
            yield {**who, **scores}


def _answer(item: Item, start: str) -> str:
    return next(answer for question, answer in item.items() if question.startswith(start))


def _score(answer: str) -> str:
    """Return the point that an answer such as "1: Partially" begins with, NA, or nothing."""
    if answer.startswith("N/A"):
        return "NA"
    found = re.match(r"([012]):", answer)
    return found[1] if found else ""


def _why(answer: str) -> str:
    """Return the label that an answer without a point begins with: Other."""
    return answer.split(":")[0].split(" /")[0] or "no answer"


if __name__ == "__main__":
    run("mslr.py", convert)
