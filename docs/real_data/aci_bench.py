"""ACI-Bench test set 1: 40 visits, and the notes that 13 systems wrote from their dialogues.

Nobody rated them; they are there to be rated. Writes responses.csv, which the rubric
aci_bench, shipped with medjury, goes with by its name.
"""

from collections.abc import Iterator
from pathlib import Path

from files import Row, read_csv, run, write_csv

TEST = "clinicalnlp_taskB_test1"
PROMPT = "Write the note of this visit for the patient's record, from the dialogue alone."


def convert(datasets: Path, out: Path) -> Iterator[str]:
    """Write the file and say how many rows it has."""
    yield write_csv(out / "responses.csv", _responses(datasets / "aci_bench"))


def _responses(folder: Path) -> Iterator[Row]:
    visits = {row["encounter_id"]: row for row in read_csv(folder / f"{TEST}.csv")}
    for path in sorted((folder / "predictions").glob("*.csv")):
        for written in read_csv(path):
            visit = visits[written["encounter_id"]]
            yield {
                "instance_id": visit["encounter_id"],
                "benchmark": "aci_bench",
                "context": visit["dialogue"],
                "prompt": PROMPT,
                "reference": visit["note"],
                "model": path.stem.replace(f"_{TEST}", ""),
                "response": written["note"],
            }


if __name__ == "__main__":
    run("aci_bench.py", convert)
