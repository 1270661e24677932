"""Corpora as their authors publish them, read as rows of responses.

ACI-Bench has visits with their notes, and the notes that systems wrote of them: all its files have
the columns dataset, encounter_id, dialogue, note. In the first the note is the clinician's, which
becomes the reference; in the others it is a system's, named by its file.

MTS-Dialog's file of automatic summaries has a block of rows for each system and names none, so they
are system-1, system-2, ... in the order in which an ID comes again. The manual scores that go with
it are shares of facts between 0 and 1, one annotation a row and no rater named: they are on no
rubric, and are not read.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from data.errors import BadFile, BadInput
from data.importers.responses import COLUMNS
from data.importers.rows import Origin
from data.importers.table import Cells, DerivedTable, TableFile

Rows = Iterator[tuple[Origin, Cells]]
ACI, ACI_BENCHMARK = "ACI-Bench", "aci_bench"
ACI_COLUMNS = ("encounter_id", "dialogue", "note")
ACI_PROMPT = "Write the note of this visit for the patient's record, from the dialogue alone."
PREDICTIONS = "predictions"
MTS, MTS_BENCHMARK = "MTS-Dialog", "mts_dialog"
MTS_COLUMNS = ("ID", "Dialogue", "Reference Summary", "Automatic Summary")
MTS_PROMPT = "Summarise this part of a visit for the patient's record, from the dialogue alone."


def csv_with(path: Path, columns: tuple[str, ...], corpus: str) -> TableFile:
    """Return a CSV file that has the corpus' columns, or refuse it."""
    table = TableFile(path, "csv")
    absent = [name for name in columns if name not in table.columns]
    if absent:
        raise table.wrong(
            f"column {absent[0]!r} is missing (a file of {corpus} has {', '.join(columns)}; "
            f"{table.header})"
        )
    return table


def aci_bench(paths: Sequence[Path]) -> TableFile:
    """Return visits and systems' notes as rows of responses.

    Parameters
    ----------
    paths
        The file of visits, then the systems' files; or a folder with one file of visits whose name
        stands in the names of the files in its `predictions`.
    """
    found = _in_folder(paths[0]) if len(paths) == 1 and paths[0].is_dir() else list(paths)
    visits, *systems = (csv_with(path, ACI_COLUMNS, ACI) for path in found)
    if not systems:
        raise visits.wrong(
            "these are visits with the clinicians' notes, which are references; name the files of "
            "the systems' notes after it"
        )
    return DerivedTable(visits, COLUMNS, lambda: _visits(visits, systems))


def _in_folder(folder: Path) -> list[Path]:
    predictions = sorted((folder / PREDICTIONS).glob("*.csv"))
    for path in sorted(folder.glob("*.csv")):
        if own := [one for one in predictions if path.stem in one.stem]:
            return [path, *own]
    raise BadFile(
        f"{folder}: no file of visits whose name stands in those of {PREDICTIONS}/*.csv; "
        "name the files one by one, the visits first; nothing was imported"
    )


def _visits(visits: TableFile, systems: Sequence[TableFile]) -> Rows:
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
                    "benchmark": ACI_BENCHMARK,
                    "context": visit["dialogue"],
                    "prompt": ACI_PROMPT,
                    "reference": visit["note"],
                    "model": system.path.stem.replace(f"_{visits.path.stem}", ""),
                    "response": written["note"],
                },
            )


def mts_dialog(paths: Sequence[Path]) -> TableFile:
    """Return the automatic summaries as rows of responses."""
    if len(paths) > 1:
        raise BadInput("MTS-Dialog: give the one file of automatic summaries; nothing was imported")
    table = csv_with(paths[0], MTS_COLUMNS, MTS)
    return DerivedTable(table, COLUMNS, lambda: _summaries(table))


def _summaries(table: TableFile) -> Rows:
    seen: Counter[str] = Counter()
    for origin, cells in table:
        key = cells["ID"].strip()
        seen[key] += 1
        yield (
            origin,
            {
                "instance_id": key,
                "benchmark": MTS_BENCHMARK,
                "context": cells["Dialogue"],
                "prompt": MTS_PROMPT,
                "reference": cells["Reference Summary"],
                "model": f"system-{seen[key]}",
                "response": cells["Automatic Summary"],
            },
        )
