"""Rating in REDCap: its dictionary and records written, its raw export read back."""

from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

from sqlalchemy import Engine

from calibration.notes import counted
from data.card import IN_FILES
from data.errors import BadInput
from data.files import write_csv
from data.importers.redcap import CODE, RATER, RECORD, RUBRIC, RedcapForm, forms, redcap_rows
from data.importers.table import TableFile
from data.rubric import Criterion, Rubric
from data.study.export import ToRate, readings, to_rate
from data.study.standing import benchmarks, settings

COLUMNS = (
    *("Variable / Field Name", "Form Name", "Section Header", "Field Type", "Field Label"),
    *("Choices, Calculations, OR Slider Labels", "Field Note"),
    *("Text Validation Type OR Show Slider Number", "Text Validation Min", "Text Validation Max"),
    *("Identifier?", "Branching Logic (Show field only if...)", "Required Field?"),
    *("Custom Alignment", "Question Number (surveys only)", "Matrix Group Name"),
    *("Matrix Ranking?", "Field Annotation"),
)
MATERIAL = "material"
HIDDEN, FIXED = "@HIDDEN @READONLY", "@READONLY"
TEXTS = {
    "mj_source": "Source",
    "mj_task": "Task",
    "mj_reference": "Reference",
    "mj_checklist": "What an answer must contain",
    "mj_response": "Response",
}
LONG_CELL = 65_535  # bytes of a REDCap value


def open_readings(engine: Engine) -> list[ToRate]:
    """Return what is still to be rated; refuse a study in which nothing is."""
    unrated = list(to_rate(engine))
    if not unrated:
        raise BadInput("no reading is open: `medjury rate assign` says who is to rate what")
    return unrated


def write_redcap(engine: Engine, folder: Path, unrated: list[ToRate]) -> list[str]:
    """Write dictionary and records for REDCap into a folder that is there; return what to know."""
    own = forms(_rubrics(engine))
    names = {form.rubric.sha256: number for number, form in enumerate(own, 1)}
    columns = (RECORD, CODE, RATER, RUBRIC, *TEXTS)
    open_to = settings(engine).reference != "hidden"
    rows = (_record(number, reading, names, open_to) for number, reading in enumerate(unrated, 1))
    write_csv(folder / "redcap_dictionary.csv", COLUMNS, dictionary(own))
    written = write_csv(folder / "redcap_records.csv", columns, rows)
    cards = [reading.card for reading in unrated]
    texts = [t or "" for c in cards for t in (c.context, c.prompt, c.reference, c.response)]
    long = sum(len(text.encode()) > LONG_CELL for text in texts)
    lines = [
        f"redcap_dictionary.csv: {counted(len(own), 'rating form')}; redcap_records.csv: {counted(written, 'record')}",
        f"WARNING: {counted(long, 'text')} of more than {LONG_CELL} bytes: REDCap would cut them off",
        "the texts are unaltered, for REDCap's own import: open redcap_records.csv in no spreadsheet, "
        "which could compute a text that begins with = + - @",
        "next: upload both in REDCap, give each clinician a data access group with their own "
        "records (mj_rater), and bring the raw export back with `medjury rate ratings FILE --format redcap`",
    ]
    return lines if long else [lines[0], *lines[2:]]


def redcap_ratings(
    engine: Engine, table: TableFile, incomplete: bool
) -> tuple[TableFile, Callable[[], list[str]]]:
    """Return a raw export as a file of ratings, and what to say of forms not taken when it is read."""
    rows, left = redcap_rows(table, forms(_rubrics(engine)), readings(engine), incomplete)
    return rows, lambda: [
        f"{counted(number, 'form')} {state}: not imported"
        + ("" if state == "not begun" else "; --incomplete takes them")
        for state, number in sorted(left.items())
        if number
    ]


def dictionary(own: list[RedcapForm]) -> Iterator[list[str]]:
    """Yield REDCap's data dictionary, in `COLUMNS`."""
    yield _field(RECORD, MATERIAL, "text", "Record ID")
    yield _field(CODE, MATERIAL, "text", "Response code", annotation=HIDDEN)
    yield _field(RATER, MATERIAL, "text", "Clinician", annotation=HIDDEN)
    yield _field(RUBRIC, MATERIAL, "text", "Rubric", annotation=HIDDEN)
    for name, label in TEXTS.items():
        yield _field(name, MATERIAL, "notes", label, annotation=FIXED)
    for number, form in enumerate(own, 1):
        logic = f"[{RUBRIC}] = '{number}'" if len(own) > 1 else ""
        for criterion in form.rubric.criterion:
            yield _field(
                form.variables[criterion.name],
                form.name,
                "radio",
                _label(f"{criterion.name}: {criterion.question}"),
                choices=choices(criterion, form.rubric),
                logic=logic,
                required="y",
            )
        yield _field(form.comment, form.name, "notes", "Comment", logic=logic)


def choices(criterion: Criterion, rubric: Rubric) -> str:
    """Return the points of a criterion with their anchors, as REDCap separates them."""
    points = rubric.scale_of(criterion.name).points
    words = {str(point): criterion.anchors.get(point, "") for point in points}
    words |= {
        IN_FILES[answer]: answer.replace("_", " ") for answer in rubric.answers_of(criterion.name)
    }
    return " | ".join(
        f"{point}, {point}: {_label(anchor)}" if anchor else f"{point}, {point}"
        for point, anchor in words.items()
    )


def _field(name: str, form: str, kind: str, label: str, **also: str) -> list[str]:
    """Return one row of the dictionary; `also` names `choices`, `logic`, `required`, `annotation`."""
    options, logic = also.get("choices", ""), also.get("logic", "")
    required, annotation = also.get("required", ""), also.get("annotation", "")
    others = ["", "", "", "", "", logic, required, "", "", "", "", annotation]
    return [name, form, "", kind, label, options, *others]


def _label(words: str) -> str:
    """Return words as a label has them: HTML, one line, no separator of choices, no piping."""
    plain = escape(" ".join(words.split()), quote=False)
    return plain.replace("|", "/").replace("[", "&#91;")


def _record(number: int, reading: ToRate, names: dict[str, int], open_to: bool) -> list[object]:
    """Return a record; a form has no moment to open a reference, so one is there always or never.

    Texts are as the jury reads them, to the last character: REDCap's import is no spreadsheet.
    """
    card = reading.card
    reference = card.reference if open_to and reading.rubric.gold == "always" else None
    texts = (card.context, card.prompt, reference, card.checklist, card.response)
    material = [number, card.code, reading.rater, names[reading.rubric.sha256]]
    return [*material, *(text or "" for text in texts)]


def _rubrics(engine: Engine) -> list[Rubric]:
    return list(
        {benchmark.rubric.sha256: benchmark.rubric for benchmark in benchmarks(engine)}.values()
    )
