"""Makes the files of data/samples that are recorded: metrics of the demo's texts, and MentalBench's safety scores.

PYTHONPATH=tests:. uv run python -m kit.recorded_samples DATASETS_FOLDER
"""

import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from calibration.encoder import has_minilm
from data.samples import CLOSED_ENDED, MENTALBENCH, METRICS, texts
from data.study.standing import ReferencePair
from medjury.services.measuring import scored_by, way

SCRIPT = Path(__file__).parents[2] / "docs" / "real_data" / "mentalbench.py"
PANEL = "consensus"


def metrics(names: Iterable[str] = ("rouge-l", "bertscore")) -> list[tuple[str, str, str, str]]:
    """Return response, metric, value and comment of every demo response with a reference."""
    pairs = [
        ReferencePair(0, row["response_id"], row["response"], row["reference"])
        for row in texts().values()
        if row["reference"] and row["benchmark"] != CLOSED_ENDED
    ]
    return [
        (row.response_id, row.rater, row.score, row.comment)
        for name in names
        if name != "bertscore" or has_minilm()
        for row in scored_by((pairs, len(pairs)), way(name)).rows
    ]


def mentalbench_safety(datasets: Path) -> list[list[str]]:
    """Return the rows of the file: replies that the experts scored, a column a rater, "" where missing."""
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, str(SCRIPT), str(datasets), folder]
        subprocess.run(call, check=True, capture_output=True)
        long = pd.read_csv(Path(folder) / "ratings.csv", dtype={"safety": "Int64"})
    wide = long.pivot_table("safety", "response_id", "rater", aggfunc="first")
    wide = wide[wide[PANEL].notna()]
    judges = [name for name in wide.columns if name != PANEL]
    rows = [["item", "cluster", "experts", *judges]]
    for name, scores in wide.iterrows():
        conversation, reply = (int(part) for part in str(name).split("-")[1::2])
        cells = [scores[one] for one in (PANEL, *judges)]
        own = ["" if pd.isna(cell) else str(int(cell)) for cell in cells]
        rows.append([f"{conversation}-{reply}", str(conversation), *own])
    return rows


def write(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Write rows as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    write(METRICS, [("response_id", "metric", "f1", "comment"), *metrics()])
    write(MENTALBENCH, mentalbench_safety(Path(sys.argv[1])))
