"""Data sets as their authors publish them: responses of two corpora, and MedHELM's ratings.

ACI-Bench has visits with their notes, and the notes that systems wrote of them: all its files have
the columns dataset, encounter_id, dialogue, note. In the first the note is the clinician's, which
becomes the reference; in the others it is a system's, named by its file.

MTS-Dialog's file of automatic summaries has a block of rows for each system and names none, so they
are system-1, system-2, ... in the order in which an ID comes again. The manual scores that go with
it are shares of facts between 0 and 1, one annotation a row and no rater named: they are on no
rubric, and are not read.

MedHELM's file of clinicians' ratings has one row a reading, with the clinicians' usernames. A
username never leaves this module: ratings carry a pseudonym, the same for the same name as long as
the key is the same.
"""

import hmac
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from data.errors import BadFile, BadInput
from data.importers.responses import COLUMNS
from data.importers.rows import Origin, RatingRow, filled
from data.importers.table import Cells, DerivedTable, TableFile
from data.schema import Kind

Rows = Iterator[tuple[Origin, Cells]]
ACI, ACI_BENCHMARK = "ACI-Bench", "aci_bench"
ACI_COLUMNS = ("encounter_id", "dialogue", "note")
ACI_PROMPT = "Write the note of this visit for the patient's record, from the dialogue alone."
PREDICTIONS = "predictions"
MTS, MTS_BENCHMARK = "MTS-Dialog", "mts_dialog"
MTS_COLUMNS = ("ID", "Dialogue", "Reference Summary", "Automatic Summary")
MTS_PROMPT = "Summarise this part of a visit for the patient's record, from the dialogue alone."
CRITERIA = ("accuracy", "completeness", "clarity")
REQUIRED = ("username", "instance_id", "dataset_name", "model_key", *CRITERIA)
LLM = "llm_"
JURY_MEAN = "medhelm-jury-mean"
SIGNS = 12  # of a pseudonym, hexadecimal


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
    """Return ACI-Bench: visits and systems' notes as rows of responses.

    Parameters
    ----------
    paths
        The file of visits, then the systems' files; or a folder with one file of visits whose name
        stands in the names of the files in its `predictions`.
    """
    files = _files_in_folder(paths[0]) if len(paths) == 1 and paths[0].is_dir() else list(paths)
    visits, *systems = (csv_with(path, ACI_COLUMNS, ACI) for path in files)
    if not systems:
        raise visits.wrong(
            "these are visits with the clinicians' notes, which are references; name the files of "
            "the systems' notes after it"
        )
    return DerivedTable(visits, COLUMNS, lambda: _visits(visits, systems))


def _files_in_folder(folder: Path) -> list[Path]:
    predictions = sorted((folder / PREDICTIONS).glob("*.csv"))
    for path in sorted(folder.glob("*.csv")):
        if own := [file for file in predictions if path.stem in file.stem]:
            return [path, *own]
    raise BadFile(
        f"{folder}: no file of visits whose name stands in those of {PREDICTIONS}/*.csv; "
        "name the files one by one, the visits first; nothing was imported"
    )


def _visits(visits: TableFile, systems: Sequence[TableFile]) -> Rows:
    visit_of: dict[str, Cells] = {}
    for origin, cells in visits:
        key = cells["encounter_id"].strip()
        if not key or key in visit_of:
            raise origin.wrong("encounter_id", "", "must stand once in the file of visits")
        visit_of[key] = cells
    for system in systems:
        for origin, written in system:
            visit = visit_of.get(written["encounter_id"].strip())
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
    """Return MTS-Dialog: automatic summaries as rows of responses."""
    if len(paths) > 1:
        raise BadInput("MTS-Dialog: give the one file of automatic summaries; nothing was imported")
    table = csv_with(paths[0], MTS_COLUMNS, MTS)
    return DerivedTable(table, COLUMNS, lambda: _summaries(table))


def _summaries(table: TableFile) -> Rows:
    times: Counter[str] = Counter()
    for origin, cells in table:
        key = cells["ID"].strip()
        times[key] += 1
        yield (
            origin,
            {
                "instance_id": key,
                "benchmark": MTS_BENCHMARK,
                "context": cells["Dialogue"],
                "prompt": MTS_PROMPT,
                "reference": cells["Reference Summary"],
                "model": f"system-{times[key]}",
                "response": cells["Automatic Summary"],
            },
        )


@dataclass(frozen=True, slots=True)
class StudyResponse:
    """A response of the study, to be found by a row of MedHELM's file."""

    response_id: str
    benchmark: str
    instance_id: str
    model: str


class MedhelmFile:
    """MedHELM's file of clinicians' ratings; iterating gives one `RatingRow` a score.

    Parameters
    ----------
    table
        The file.
    responses
        The responses of the study.
    key
        The study's secret, with which usernames become pseudonyms.
    jury_mean
        Take the llm_ columns too, as ratings by the juror "medhelm-jury-mean".

    Attributes
    ----------
    missing
        Empty scores of the rows that are taken.
    unmatched
        Numbers of the rows whose response is not in the study; they are left out.
    ignored
        Columns that are not taken.

    Raises
    ------
    BadFile
        If a column that is needed is missing; while iterating, if no row has its response here.
    BadRow
        While iterating, at the first row that is wrong. No username is in a message.
    """

    def __init__(
        self,
        table: TableFile,
        responses: Sequence[StudyResponse],
        key: str,
        jury_mean: bool = False,
    ) -> None:
        self.table, self.key, self.jury_mean = table, key, jury_mean
        self.missing, self.unmatched = 0, list[int]()
        required = columns_needed(table, jury_mean)
        self.ignored = tuple(name for name in table.columns if name and name not in required)
        self._known: dict[tuple[str, str], list[StudyResponse]] = {}
        for response in responses:
            for name in {
                plain_name(response.benchmark),
                plain_name(response.benchmark.partition(",")[0]),
            }:
                self._known.setdefault((name, response.instance_id), []).append(response)

    def __iter__(self) -> Iterator[RatingRow]:
        self.missing, self.unmatched, taken = 0, [], 0
        means: dict[tuple[str, str], str] = {}
        for origin, cells in self.table:
            response = self._response(origin, cells)
            if response is None:
                self.unmatched.append(origin.row)
                continue
            taken += 1
            rater = pseudonym(self.key, filled(origin, cells, "username"))
            yield from self._clinician_scores(origin, cells, response, rater)
            if self.jury_mean:
                yield from _jury_means(origin, cells, response, means)
        if not taken:
            raise self.table.wrong(
                "no row has its response in this study; import the responses first: their "
                "benchmark, instance_id and model are dataset_name, instance_id and model_key here"
            )

    def _response(self, origin: Origin, cells: Cells) -> str | None:
        """Return the response a row is about, None where the study has none."""
        dataset, model = (filled(origin, cells, name) for name in ("dataset_name", "model_key"))
        instance = filled(origin, cells, "instance_id")
        matches = [
            candidate.response_id
            for candidate in self._known.get((plain_name(dataset), instance), [])
            if plain_name(model)
            in (plain_name(candidate.model), plain_name(candidate.model.rpartition("/")[2]))
        ]
        if len(matches) > 1:
            raise origin.wrong(
                "instance_id",
                instance,
                f"{len(matches)} responses of this study are meant by its dataset_name, instance_id "
                "and model_key; bring these ratings in by response_id (docs/files.md)",
            )
        return matches[0] if matches else None

    def _clinician_scores(
        self, origin: Origin, cells: Cells, response: str, rater: str
    ) -> Iterator[RatingRow]:
        for name in CRITERIA:
            if score := cells.get(name, "").strip():
                yield RatingRow(origin, response, rater, Kind.CLINICIAN, name, score)
            else:
                self.missing += 1


def columns_needed(table: TableFile, jury_mean: bool) -> tuple[str, ...]:
    """Return the columns that are read, or refuse a file that lacks one."""
    names = (*REQUIRED, *(LLM + name for name in CRITERIA if jury_mean))
    if absent := [name for name in names if name not in table.columns]:
        raise table.wrong(f"column {absent[0]!r} is missing; MedHELM's file has {', '.join(names)}")
    return names


def _jury_means(
    origin: Origin, cells: Cells, response: str, means: dict[tuple[str, str], str]
) -> Iterator[RatingRow]:
    """Yield the jury's mean of each response once, though every clinician's row repeats it."""
    for name in CRITERIA:
        score = cells.get(LLM + name, "").strip()
        before = means.get((response, name))
        if before not in (None, score):
            raise origin.wrong(LLM + name, "", "another score of the same response stands above")
        means[response, name] = score
        if before is None and score:
            yield RatingRow(origin, response, JURY_MEAN, Kind.JUROR, name, score)


def pseudonym(key: str, username: str) -> str:
    """Return the pseudonym of a username under a study's key; case and spacing do not matter."""
    name = " ".join(unicodedata.normalize("NFKC", username).casefold().split())
    digest = hmac.digest(key.encode(), b"medhelm clinician|" + name.encode(), "sha256")
    return "clinician-" + digest.hex()[:SIGNS]


def plain_name(name: str) -> str:
    """Return a name's letters and digits in lower case: HELM's folders change other characters."""
    return "".join(sign for sign in name.casefold() if sign.isalnum())
