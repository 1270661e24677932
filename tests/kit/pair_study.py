"""A small study of pairs: two models on some instances, imported as a file has them."""

import csv
from pathlib import Path

from sqlalchemy import Engine

from data.card import Reply
from data.importers.responses import PairFile
from data.importers.table import TableFile
from data.rubric import read_rubric
from data.study.pairs import PairsAdded, import_pairs
from data.study.ratings import submit
from data.study.room import Task, next_task

COLUMNS = (
    *("pair_id", "instance_id", "benchmark", "context", "prompt"),
    *("first_id", "first_model", "first", "second_id", "second_model", "second"),
)
MODELS = ("zz-lantern", "aa-heron")
GOOD, BAD = "Sound note of case {}.", "Poor note of case {}."


def rows(n: int = 6) -> list[dict[str, str]]:
    """Return n pairs, a row each: the good note is the first model's, and stands first in every other."""
    made = []
    for i in range(n):
        sides = [(MODELS[0], GOOD.format(i)), (MODELS[1], BAD.format(i))]
        (one, text), (other, worse) = sides[:: 1 if i % 2 == 0 else -1]
        made.append(
            {
                "pair_id": f"p{i}",
                "instance_id": f"i{i}",
                "benchmark": "notes",
                "context": f"Patient {i} coughs.",
                "prompt": "Write the note.",
                "first_id": f"p{i}a",
                "first_model": one,
                "first": text,
                "second_id": f"p{i}b",
                "second_model": other,
                "second": worse,
            }
        )
    return made


def write(path: Path, found: list[dict[str, str]]) -> Path:
    """Write rows as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.DictWriter(file, list(found[0]))
        lines.writeheader()
        lines.writerows(found)
    return path


def bring(engine: Engine, folder: Path, found: list[dict[str, str]] | None = None) -> PairsAdded:
    """Import rows of pairs on the shipped rubric."""
    path = write(folder / "pairs.csv", found or rows())
    rubric = read_rubric("preference")
    return import_pairs(engine, PairFile(TableFile(path)), rubric, lambda _: None)


def prefer_good(task: Task, points: int = 2) -> Reply:
    """Return a reply that finds the good note better, whichever side it is shown on."""
    good = task.card.response.startswith("Sound")
    return Reply({"overall": points if good else -points})


def rate_all(engine: Engine, rater: int) -> None:
    """Have a clinician find the good note better, on all that is open."""
    while (task := next_task(engine, rater).task) is not None:
        submit(engine, rater, task.card.code, prefer_good(task), 10)
