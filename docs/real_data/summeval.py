"""SummEval-OP: summaries of product reviews by 13 systems, each rated by the same three people.

The first system of every product is a person. That summary is the reference of the twelve
others, and is rated in a benchmark of its own, which has no reference. Writes
responses.jsonl and ratings.csv.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from files import Row, run, write_csv, write_jsonl

AXES = {
    "fl": "fluency",
    "co": "coherence",
    "re": "relevance",
    "fa": "faithfulness",
    "ac": "aspect_coverage",
    "sc": "sentiment_consistency",
    "sp": "specificity",
}
ANNOTATORS = ("annotator-1", "annotator-2", "annotator-3")
PROMPT = "Summarise what the eight customers say of this product in one short paragraph."
HUMAN = 0
Product = dict[str, Any]


def convert(datasets: Path, out: Path) -> Iterator[str]:
    """Write both files and say how many rows each has."""
    folder = datasets / "summeval_op"
    products = _read(folder / "summeval-op-detailed.jsonl")
    systems = list(_read(folder / "summeval-op.jsonl")[0]["summaries"])
    yield write_jsonl(out / "responses.jsonl", _responses(products, systems))
    yield write_csv(out / "ratings.csv", _ratings(products, systems))


def _read(path: Path) -> list[Product]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def _response_id(product: int, system: int) -> str:
    return f"product-{product:02}-summary-{system:02}"


def _responses(products: list[Product], systems: list[str]) -> Iterator[Row]:
    for number, product in enumerate(products, start=1):
        reviews = enumerate(product["reviews"], start=1)
        context = "\n\n".join(f"Review {place}: {text}" for place, text in reviews)
        for system, name in enumerate(systems):
            yield {
                "instance_id": f"product-{number:02}",
                "benchmark": "summeval_human" if system == HUMAN else "summeval",
                "context": context,
                "prompt": PROMPT,
                "reference": "" if system == HUMAN else product["summaries"][HUMAN],
                "response_id": _response_id(number, system),
                "model": name,
                "response": product["summaries"][system],
            }


def _ratings(products: list[Product], systems: list[str]) -> Iterator[Row]:
    for number, product in enumerate(products, start=1):
        for system in range(len(systems)):
            for place, annotator in enumerate(ANNOTATORS):
                scores = {name: product[axis][system][place] for axis, name in AXES.items()}
                who = {"response_id": _response_id(number, system), "rater": annotator}
                yield {**who, "kind": "clinician", **scores}


if __name__ == "__main__":
    run("summeval.py", convert)
