"""ACI-Bench's own files: visits with their notes, and the notes that systems wrote of them.

Both kinds of file have the columns dataset, encounter_id, dialogue, note. In the first the note is
the clinician's, which becomes the reference; in the others it is a system's, named by its file.
"""

from collections.abc import Sequence
from pathlib import Path

from data.errors import BadFile
from data.importers.corpus import CorpusTable, Rows, csv_with
from data.importers.table import Cells, TableFile

NAME, BENCHMARK = "ACI-Bench", "aci_bench"
COLUMNS = ("encounter_id", "dialogue", "note")
PROMPT = "Write the note of this visit for the patient's record, from the dialogue alone."
PREDICTIONS = "predictions"


def aci_bench(paths: Sequence[Path]) -> TableFile:
    """Return visits and systems' notes as rows of responses.

    Parameters
    ----------
    paths
        The file of visits, then the systems' files; or a folder with one file of visits whose name
        stands in the names of the files in its `predictions`.
    """
    found = _in_folder(paths[0]) if len(paths) == 1 and paths[0].is_dir() else list(paths)
    visits, *systems = (csv_with(path, COLUMNS, NAME) for path in found)
    if not systems:
        raise visits.wrong(
            "these are visits with the clinicians' notes, which are references; name the files of "
            "the systems' notes after it"
        )
    return CorpusTable(visits, lambda: _rows(visits, systems))


def _in_folder(folder: Path) -> list[Path]:
    predictions = sorted((folder / PREDICTIONS).glob("*.csv"))
    for path in sorted(folder.glob("*.csv")):
        if own := [one for one in predictions if path.stem in one.stem]:
            return [path, *own]
    raise BadFile(
        f"{folder}: no file of visits whose name stands in those of {PREDICTIONS}/*.csv; "
        "name the files one by one, the visits first; nothing was imported"
    )


def _rows(visits: TableFile, systems: Sequence[TableFile]) -> Rows:
    known: dict[str, Cells] = {}
    for origin, cells in visits:
        key = cells["encounter_id"].strip()
        if not key or key in known:
            raise origin.wrong("encounter_id", "", "must stand once in the file of visits")
        known[key] = cells
    for system in systems:
        for origin, written in system:
            visit = known.get(written["encounter_id"].strip())
            if visit is None:
                raise origin.wrong("encounter_id", "", f"{visits.path.name} has no such visit")
            yield (
                origin,
                {
                    "instance_id": visit["encounter_id"].strip(),
                    "benchmark": BENCHMARK,
                    "context": visit["dialogue"],
                    "prompt": PROMPT,
                    "reference": visit["note"],
                    "model": system.path.stem.replace(f"_{visits.path.stem}", ""),
                    "response": written["note"],
                },
            )
