"""Real texts for the text metrics: ACI-Bench test set 1, 40 reference notes and systems' notes.

The folder holds `clinicalnlp_taskB_test1.csv` and `predictions/*.csv` of wyim/aci-bench.
"""

import csv
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "shared" / "datasets" / "aci_bench"


def read_pairs(folder: Path, references: int, systems: int) -> list[tuple[str, str]]:
    """Return (system's note, reference note) of the first references and systems."""
    csv.field_size_limit(10**7)
    notes = _notes(folder / "clinicalnlp_taskB_test1.csv")
    written = [_notes(path) for path in sorted((folder / "predictions").glob("*.csv"))[:systems]]
    return [(by[key], notes[key]) for key in list(notes)[:references] for by in written]


def _notes(path: Path) -> dict[str, str]:
    """Return the notes of one file by encounter."""
    with path.open(newline="", encoding="utf-8") as file:
        return {row["encounter_id"]: row["note"] for row in csv.DictReader(file)}
