"""Real notes for a study: visits of ACI-Bench, what systems wrote of them, and who would score them how.

The data set is public and lies beside the checkout; whoever needs it skips where it is absent.
"""

import csv
import hashlib
import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "shared" / "datasets" / "aci_bench"
VISITS = "clinicalnlp_taskB_test1"
SYSTEMS = ("BART_large_{}_full", "LED_{}_full", "BioBART_{}_division_combined")
PROMPT = "Write the note of this visit for the patient's record, from the dialogue alone."
COLUMNS = (
    *("instance_id", "benchmark", "context", "prompt"),
    *("reference", "response_id", "model", "response"),
)
CRITERIA = ("accuracy", "completeness", "clarity")
POINTS = 5
SPREAD = 1.3  # of one reader's scores around a note's quality, in points to either side
TAGS = re.compile(r"<[^>]*>")
OPENING = 300  # letters of a note by which it is known again


@dataclass(frozen=True)
class Notes:
    """A file of responses, and the quality that scripted readers find in each note, from 1 to 5."""

    text: str
    quality: dict[str, float]

    def scores(self, reader: str, shown: str) -> dict[str, int]:
        """Return what a reader scores a note that is shown: its quality, and an error of their own."""
        note = self.known_in(shown)
        return {name: _score(self.quality[note], reader, name, note) for name in CRITERIA}

    def known_in(self, shown: str) -> str:
        """Return by which letters a text holds a note; the longest match is the note itself."""
        letters = letters_of(shown)
        return next(note for note in self.quality if note in letters)


def read_notes(visits: int, systems: int, folder: Path = FOLDER) -> Notes:
    """Return the first visits with the notes of the first systems."""
    csv.field_size_limit(10**7)
    rows = [
        {"instance_id": visit["encounter_id"], "benchmark": "aci_bench"}
        | {"context": visit["dialogue"], "prompt": PROMPT, "reference": visit["note"]}
        | {"response_id": "", "model": system.format("x"), "response": written["note"]}
        for system in SYSTEMS[:systems]
        for visit, written in zip(
            _read(folder / f"{VISITS}.csv")[:visits],
            _read(folder / "predictions" / f"{system.format(VISITS)}.csv")[:visits],
            strict=True,
        )
    ]
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    return Notes(out.getvalue(), _qualities(rows))


def letters_of(text: str) -> str:
    """Return a text's letters and digits alone: what a page makes of it changes none of these."""
    return re.sub(r"\W+", "", html.unescape(TAGS.sub(" ", text)))


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return sorted(csv.DictReader(file), key=lambda row: row["encounter_id"])


def _qualities(rows: Sequence[dict[str, str]]) -> dict[str, float]:
    """Return each note's quality: its rank by how much of the reference's words it has, on 1 to 5."""
    kept = {letters_of(row["response"])[:OPENING]: _recall(row) for row in rows}
    ranked = sorted(kept, key=kept.__getitem__)
    return {note: 1 + (POINTS - 1) * rank / (len(ranked) - 1) for rank, note in enumerate(ranked)}


def _recall(row: dict[str, str]) -> float:
    told, wanted = (set(row[name].lower().split()) for name in ("response", "reference"))
    return len(told & wanted) / len(wanted)


def _score(quality: float, reader: str, criterion: str, note: str) -> int:
    seed = hashlib.sha256(f"{reader}\0{criterion}\0{note}".encode()).digest()
    error = SPREAD * (2 * int.from_bytes(seed[:4]) / 2**32 - 1)
    return min(max(round(quality + error), 1), POINTS)
