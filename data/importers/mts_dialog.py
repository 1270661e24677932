"""MTS-Dialog's file of automatic summaries: dialogues, references, and four systems' summaries.

The file has a block of rows for each system and names none, so they are system-1, system-2, ... in
the order in which an ID comes again. The manual scores that go with it are shares of facts between
0 and 1, one annotation a row and no rater named: they are on no rubric, and are not read.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from data.errors import BadInput
from data.importers.corpus import CorpusTable, Rows, csv_with
from data.importers.table import TableFile

NAME, BENCHMARK = "MTS-Dialog", "mts_dialog"
COLUMNS = ("ID", "Dialogue", "Reference Summary", "Automatic Summary")
PROMPT = "Summarise this part of a visit for the patient's record, from the dialogue alone."


def mts_dialog(paths: Sequence[Path]) -> TableFile:
    """Return the automatic summaries as rows of responses."""
    if len(paths) > 1:
        raise BadInput("MTS-Dialog: give the one file of automatic summaries; nothing was imported")
    table = csv_with(paths[0], COLUMNS, NAME)
    return CorpusTable(table, lambda: _rows(table))


def _rows(table: TableFile) -> Rows:
    seen: Counter[str] = Counter()
    for origin, cells in table:
        key = cells["ID"].strip()
        seen[key] += 1
        yield (
            origin,
            {
                "instance_id": key,
                "benchmark": BENCHMARK,
                "context": cells["Dialogue"],
                "prompt": PROMPT,
                "reference": cells["Reference Summary"],
                "model": f"system-{seen[key]}",
                "response": cells["Automatic Summary"],
            },
        )
