"""REDCap: rating forms of rubrics as fields, and ratings from a raw export.

The names of all fields follow from the rubrics alone, so whoever reads an export knows what the
dictionary said.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from data.importers.ratings import LONG, REQUIRED
from data.importers.rows import Origin, filled
from data.importers.table import Cells, TableFile
from data.rubric import Rubric

RECORD, CODE, RATER, RUBRIC = "record_id", "mj_code", "mj_rater", "mj_rubric"
LONGEST = 26  # what REDCap advises for a variable
INSTANCE, EVENT = "redcap_repeat_instance", "redcap_event_name"
COMPLETE, NOT_COMPLETE = "2", {"0": "incomplete", "1": "unverified", "": "incomplete"}
LABELS = {"complete", "incomplete", "unverified"}
RAW = (
    "this is an export of labels, or was edited; in REDCap choose Export data, "
    "CSV / Microsoft Excel (raw data)"
)


@dataclass(frozen=True, slots=True)
class RedcapForm:
    """The rating form of one rubric: its REDCap name, and criterion -> variable."""

    name: str
    rubric: Rubric
    variables: Mapping[str, str]
    comment: str

    @property
    def complete(self) -> str:
        """Name of the column with the form's state."""
        return f"{self.name}_complete"


class FormReading(NamedTuple):
    """The reading that a record holds: response, rater and pass."""

    response_id: str
    rater: str
    pass_: int


def forms(rubrics: Sequence[Rubric]) -> list[RedcapForm]:
    """Return the form of each rubric, with unique variables by REDCap's rules."""
    forms, names, variables = [], set[str](), set[str]()
    for number, rubric in enumerate(sorted(rubrics, key=lambda each: (each.name, each.sha256)), 1):
        name = variable(f"rate_{rubric.name}", names)
        comment = variable(f"r{number}_comment", variables)
        own = {one: variable(f"r{number}_{one}", variables) for one in rubric.criteria}
        forms.append(RedcapForm(name, rubric, own, comment))
    return forms


def variable(wanted: str, taken: set[str]) -> str:
    """Return a valid, unused REDCap name: a-z, digits and _, at most 26, beginning with a letter."""
    plain = re.sub(r"[^a-z0-9]+", "_", wanted.lower()).strip("_")
    plain = plain if plain[:1].isalpha() else f"v_{plain}"
    name, number = plain[:LONGEST].strip("_"), 1
    while name in taken:
        number += 1
        end = f"_{number}"
        name = plain[: LONGEST - len(end)].strip("_") + end
    taken.add(name)
    return name


def redcap_rows(
    table: TableFile,
    forms: Sequence[RedcapForm],
    readings: Mapping[str, FormReading],
    incomplete: bool = False,
) -> tuple[TableFile, Counter[str]]:
    """Return a raw export of REDCap as a file of ratings, a row a score, and what of it is not taken.

    Parameters
    ----------
    forms
        The forms of the study's rubrics.
    readings
        Response code -> whose reading of what; the codes of the study's assignments.
    incomplete
        Take forms that are not marked complete too.

    Returns
    -------
    The rows; and, as they are read, how far the forms were that are not taken -> their number; "not begun"
    are empty ones.

    Raises
    ------
    BadFile
        If this is no raw export, or not of this study's dictionary.
    BadRow
        While iterating, at the first row that is wrong.
    """
    present, left = _forms_in(table, forms), Counter[str]()

    def rows() -> Iterator[tuple[Origin, Cells]]:
        codes, origins = _codes(table), dict[tuple[str, str], Origin]()
        left.clear()
        for origin, cells in table:
            record = cells[RECORD].strip()
            for form in present:
                state = _state(table, origin, cells, form)
                empty = not any(cells[name].strip() for name in form.variables.values())
                if empty and state != COMPLETE:
                    left["not begun"] += state != ""
                    continue
                if state != COMPLETE and not incomplete:
                    left[NOT_COMPLETE[state]] += 1
                    continue
                first = origins.setdefault((record, form.name), origin)
                if first is not origin:
                    raise origin.wrong(
                        INSTANCE if cells.get(INSTANCE) else RECORD,
                        record,
                        f"{form.name} of this record is filled in row {first.row} too (an event "
                        "or a repeat): a record is one reading; keep one of them",
                    )
                if (code := codes[record]) not in readings:
                    why = "no reading of this study has this code; is it another study's export?"
                    raise origin.wrong(CODE, "", why)
                for score in _scores(table, cells, form, readings[code]):
                    yield origin, score

    return table.derived((*REQUIRED, *LONG, "comment", "rated_at", "pass"), rows), left


def _forms_in(table: TableFile, forms: Sequence[RedcapForm]) -> list[RedcapForm]:
    """Return the forms that an export has, or refuse it if it is not a whole raw one."""
    if "Record ID" in table.columns or "Complete?" in table.columns:
        raise table.wrong(RAW)
    for column in (RECORD, CODE):
        if column not in table.columns:
            raise table.wrong(f"column {column!r} is missing; {RAW}, with all fields")
    present = [form for form in forms if form.complete in table.columns]
    if not present:
        expected = ", ".join(form.complete for form in forms)
        raise table.wrong(f"no rating form is in it ({expected}); export all instruments")
    for form in present:
        absent = [name for name in form.variables.values() if name not in table.columns]
        if absent:
            raise table.wrong(f"column {absent[0]!r} is missing; export all fields")
    return present


def _codes(table: TableFile) -> dict[str, str]:
    """Return each record's code; with events or repeats only one of its rows has it."""
    codes: dict[str, str] = {}
    for origin, cells in table:
        record, code = filled(origin, cells, RECORD), cells[CODE].strip()
        if code and codes.get(record) not in (None, "", code):
            raise origin.wrong(CODE, "", "another row of this record has another code")
        codes[record] = code or codes.get(record, "")
    return codes


def _state(table: TableFile, origin: Origin, cells: Cells, form: RedcapForm) -> str:
    """Return how far a row's form is: complete, a key of `NOT_COMPLETE`, or refused."""
    state = cells[form.complete].strip()
    if state.lower() in LABELS:
        raise table.wrong(RAW)
    if state != COMPLETE and state not in NOT_COMPLETE:
        raise origin.wrong(form.complete, "", "must be 0, 1 or 2; " + RAW)
    return state


def _scores(
    table: TableFile, cells: Cells, form: RedcapForm, reading: FormReading
) -> Iterator[Cells]:
    """Yield a form's scores, and its empty cells."""
    timestamp = cells.get(f"{form.name}_timestamp", "").strip()
    shared = {
        "response_id": reading.response_id,
        "rater": reading.rater,
        "kind": "clinician",
        "comment": cells.get(form.comment, ""),
        "rated_at": "" if timestamp == "[not completed]" else timestamp,
        "pass": str(reading.pass_),
    }
    for criterion in form.rubric.criterion:
        score = cells[form.variables[criterion.name]].strip()
        if any(map(str.isalpha, score)) and any(
            _plain(score).endswith(_plain(words)) for words in criterion.anchors.values()
        ):
            raise table.wrong(RAW)
        yield shared | {"criterion": criterion.name, "score": score}


def _plain(words: str) -> str:
    return re.sub(r"\W+", " ", words).strip().lower()
