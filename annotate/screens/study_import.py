"""Bringing files in by upload: first what they hold and would change, then, if wanted, the import.

A file is read as `medjury study import` and `medjury rate ratings` read it.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

import streamlit as st
from sqlalchemy import Engine

from annotate.blind import find_self_naming
from annotate.intake import mask_new, rubric_for
from annotate.rating import text_html
from annotate.screens import frame, study_home
from annotate.screens.frame import Cell, good, heading, notice, paragraph, table
from annotate.uploads import Upload, first_ratings, map_needed, rows_in
from calibration.notes import counted
from data.errors import Conflict
from data.importers.columns import What
from data.importers.ratings import RatingFile
from data.importers.readers import Reader
from data.importers.responses import ResponseFile
from data.importers.rows import RatingRow, ResponseRow
from data.person import Person
from data.rubric import Rubric, read_rubric
from data.rubrics import shipped
from data.samples import benchmarks as sample_benchmarks
from data.study import steering
from data.study.masks import names_to_mask
from data.study.ratings import RatingsAdded
from data.study.responses import ResponsesAdded
from data.study.steering import bring_ratings, bring_responses, try_ratings, try_responses
from medjury.services.status import status

RESPONSES, RATINGS = "Responses", "Ratings made elsewhere"
BY_NAME = {RESPONSES: "by each benchmark's name", RATINGS: "each benchmark's own"}
CHECKED, STORED, ROUND = "import-checked", "import-stored", "import-round"
GUESSED = "import-guessed"
COLUMNS = {
    RESPONSES: "instance_id, benchmark, context, prompt, reference, response_id, model, response; "
    "reference, prompt and response_id may be empty, checklist may be added.",
    RATINGS: "response_id, rater, kind (clinician, juror or metric), then criterion and score, or a "
    "column a criterion; comment, rated_at, pass and replicate may be added.",
}
LIMIT = (
    "CSV, Excel (.xlsx), Parquet, JSON or JSON Lines, also packed (.gz), or the files of other "
    "tools, up to 20 MB; whoever runs the server can import larger ones there. Nothing is stored "
    "before you confirm."
)
LONGEST_SHOWN = 5_000
HEADS = ("Benchmark", "Rubric", "In the study", "Instances in the file", "Responses in the file")
FIRST_ROWS = 3
KINDS: dict[str, What] = {RESPONSES: "responses", RATINGS: "ratings"}
MAPPED = (
    "The file's columns have other names. This map was guessed from them: read it, change it "
    "where it is "
    'wrong, and look at the first rows below. Every line is "column of the file" = "column of medjury".'
)


@dataclass(slots=True)
class Seen:
    """What a file of responses holds.

    Attributes
    ----------
    responses
        Rows, by benchmark; `instances` the distinct ones.
    sure, possible
        Responses that surely name an author, with their places; places that may.
    first
        The first rows.
    """

    responses: Counter[str] = field(default_factory=Counter)
    instances: Counter[str] = field(default_factory=Counter)
    models: int = 0
    sure: Counter[str] = field(default_factory=Counter)
    possible: int = 0
    first: list[ResponseRow] = field(default_factory=list)
    ignored: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    contexts: int = 0
    encoding: str = ""


Checked = tuple[Seen | int, ResponsesAdded | RatingsAdded]


def show(engine: Engine, person: Person) -> None:
    """Ask for a file, show what it would change, and import it."""
    if message := st.session_state.pop(STORED, None):
        st.html(good(message) + study_home.next_html(status(engine), person.role))
    if steering.standing(person, engine).locked:
        st.html(paragraph("The study is locked: no file can be imported."))
        return
    st.html(heading("Import a file"))
    content = st.radio("The file holds", [RESPONSES, RATINGS], horizontal=True, key="import-what")
    thing = "response" if content == RESPONSES else "rating"
    st.html(paragraph(f"One row a {thing}: {COLUMNS[content]}"))
    upload = _ask(engine, person, content)
    if upload is None:
        return
    with frame.refusals():
        checked = _checked(engine, person, content, upload)
        _show_checked(engine, person, checked)
        if _new(checked[1]) and st.button("Import this file", type="primary", key="import-now"):
            _bring(engine, person, content, upload)
        if isinstance(checked[0], Seen):
            _show_first(checked[0].first)
        else:
            st.html(_told_first(first_ratings(upload, FIRST_ROWS)))


def _ask(engine: Engine, person: Person, content: str) -> Upload | None:
    """Ask for the file and what it leaves open."""
    first, second = st.columns((1, 1))
    names = ["", *rubrics_to_choose(engine, person)]
    rubric = first.selectbox(
        "Rubric", names, 0, lambda rubric_name: rubric_name or BY_NAME[content], key="import-rubric"
    )
    benchmark = (
        second.text_input("Benchmark of rows that name none (optional)", key="import-benchmark")
        if content == RESPONSES
        else ""
    )
    turn = st.session_state.get(ROUND, 0)
    # Of any kind: one that the browser turns down would leave the plan of the file before it.
    file = st.file_uploader("File", key=f"import-file-{content}-{turn}")
    st.html(paragraph(LIMIT))
    if file is None:
        return None
    upload = Upload(file.name, file.getvalue(), rubric or "", benchmark.strip())
    with frame.refusals():
        return replace(upload, columns=_ask_columns(upload, KINDS[content]))
    return None


def _ask_columns(upload: Upload, content: What) -> str:
    """Ask which of the file's columns is which, where their names do not say it."""
    key = f"import-map-{hashlib.sha256(upload.key.encode()).hexdigest()[:12]}"
    if (known := st.session_state.get(GUESSED)) is None or known[0] != (key, content):
        known = st.session_state[GUESSED] = ((key, content), map_needed(upload, content))
    guess: str = known[1]
    if guess:
        st.html(paragraph(MAPPED))
    with st.expander("Map of columns", expanded=bool(guess)):
        return st.text_area("Column of the file = column of medjury", guess, key=key, height=300)


def _checked(engine: Engine, person: Person, content: str, upload: Upload) -> Checked:
    """Return what the file holds and would change; checked once for each file and choice."""
    key = (content, upload.key, steering.standing(person, engine).events)
    earlier = st.session_state.get(CHECKED)
    if earlier is None or earlier[0] != key:
        with st.spinner("Checking every row of the file", show_time=True):
            if content == RESPONSES:
                checked: Checked = try_response_file(engine, person, upload)
            else:
                added, empty = try_rating_file(engine, person, upload)
                checked = empty, added
        earlier = st.session_state[CHECKED] = (key, checked)
    result: Checked = earlier[1]
    return result


def _show_checked(engine: Engine, person: Person, checked: Checked) -> None:
    preview, added = checked
    st.html(heading("What this file would change"))
    if isinstance(preview, Seen) and isinstance(added, ResponsesAdded):
        _show_responses(engine, person, preview, added)
    elif isinstance(preview, int) and isinstance(added, RatingsAdded):
        st.html("".join(_told_ratings(added, preview)))


def _show_responses(engine: Engine, person: Person, preview: Seen, added: ResponsesAdded) -> None:
    """Show what a file of responses would change, and its benchmarks."""
    st.html(
        paragraph(
            f"{counted(added.responses, 'new response')} to "
            f"{counted(added.instances, 'new instance')}; {added.unchanged:,} are there already. "
            f"{counted(preview.models, 'model')}. Read as {preview.encoding}."
        )
    )
    for name, number in sorted(added.groups.items()):
        st.html(paragraph(f"Group {name}: {counted(number, 'response')} put into it."))
    own = {
        material.view.name: material.view.rubric.name
        for material in steering.materials(person, engine)
    }
    rows: list[list[Cell]] = [
        [
            *(name, added.benchmarks.get(name) or own.get(name, "")),
            *("new" if name in added.benchmarks else "yes", preview.instances[name], number),
        ]
        for name, number in sorted(preview.responses.items())
    ]
    st.html(table("Benchmarks in the file", HEADS, rows, words=3))
    st.html("".join(_told_names(preview)) + "".join(_warnings(preview, added)))


def _show_first(rows: Sequence[ResponseRow]) -> None:
    """Show the first rows of a file of responses, each folded."""
    st.html(heading("First rows, verbatim; authors stay hidden"))
    for number, row in enumerate(rows, 1):
        with st.expander(f"Row {number}"):
            for label, text in (
                *(("Source", row.context), ("Task", row.prompt), ("Response", row.response)),
                ("Reference", row.reference or ""),
            ):
                if text:
                    st.html(
                        f'<p class="mj-label">{label}</p>'
                        + text_html.pane(shortened(text), label, "first")
                    )


def shortened(text: str) -> str:
    """Return the beginning of a long text, with how long it is; any other as it is."""
    if len(text) <= LONGEST_SHOWN:
        return text
    return (
        f"{text[:LONGEST_SHOWN]}\n\n[Shown are the first {LONGEST_SHOWN:,} of {len(text):,} "
        "characters; all are imported.]"
    )


def _told_names(preview: Seen) -> list[str]:
    """Say what will be masked, and what will not."""
    places = sum(preview.sure.values())
    messages = [
        paragraph(
            f"{counted(len(preview.sure), 'response')} would be masked ({counted(places, 'place')} "
            f"that surely {'names' if places == 1 else 'name'} the author)."
            if preview.sure
            else "No response clearly names its author."
        )
    ]
    if preview.possible:
        messages.append(
            notice(
                f"{counted(preview.possible, 'place')} may name an author and would be left as they "
                "are: whoever runs the server can list them after the import."
            )
        )
    return messages


def _warnings(preview: Seen, added: ResponsesAdded) -> list[str]:
    """Say what is odd and still allowed."""
    messages = []
    if added.twins:
        messages.append(
            f"{added.twins:,} repeat a text to the same instance under another "
            "response_id: their ratings would be split over two."
        )
    if added.unnamed:
        messages.append(
            f"{added.unnamed:,} without a response_id count as there already by instance and text, as no "
            "id tells an author: give equal texts of several models ids of their own."
        )
    if preview.ignored:
        messages.append(f"Columns not taken: {', '.join(preview.ignored)}.")
    messages += [
        f"Not taken: {reason}: {number:,}." for reason, number in preview.left_out.items() if number
    ]
    if not preview.contexts:
        messages.append(
            "No row has a context: raters can check a response against the prompt only."
        )
    return [notice(message) for message in messages]


def _told_ratings(added: RatingsAdded, empty: int) -> list[str]:
    """Say what a file of ratings would change."""
    messages = [
        paragraph(
            f"{counted(added.added, 'new rating')}, {added.revised:,} revise an earlier one, "
            f"{added.unchanged:,} are there already; empty and so missing: {empty:,}."
        )
    ]
    if added.raters:
        messages.append(paragraph(f"New raters: {', '.join(added.raters)}."))
    for name, criteria in sorted(added.lacking.items()):
        text = f"{name}: nobody in this file rates {', '.join(criteria)}, so there is no composite."
        messages.append(notice(text))
    for name in sorted(added.other_rubric):
        text = f"{name} has ratings on another rubric: these are kept apart and do not count."
        messages.append(notice(text))
    return messages


def _told_first(rows: Sequence[RatingRow]) -> str:
    """Return the first ratings as they would be stored."""
    fields = attrgetter("response_id", "rater", "kind.value", "criterion", "score")
    cells: list[list[Cell]] = [[*fields(row)] for row in rows]
    heads = ("Response", "Rater", "Kind", "Criterion", "Score")
    return table("First ratings, as they would be stored", heads, cells, words=4)


def _bring(engine: Engine, person: Person, content: str, upload: Upload) -> None:
    """Import what was looked at, say so, and ask for the next file."""
    with frame.refusals():
        with st.spinner("The rows are being stored, all or none", show_time=True):
            if content == RESPONSES:
                new, masked = bring_response_file(engine, person, upload)
                message = f"{counted(new, 'response')} imported, {counted(masked, 'new response')} masked."
            else:
                message = f"{counted(_new(bring_rating_file(engine, person, upload)), 'rating')} imported."
        st.session_state[STORED] = f"{upload.name}: {message}"
        st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1
        st.session_state.pop(CHECKED, None)
        st.rerun()


def _new(added: RatingsAdded | ResponsesAdded) -> int:
    """Return how many rows an import adds or changes."""
    if isinstance(added, ResponsesAdded):
        return added.responses
    return added.added + added.revised


def try_response_file(
    engine: Engine, person: Person, upload: Upload
) -> tuple[Seen, ResponsesAdded]:
    """Return what a file of responses holds and would change, or raise; nothing is stored."""
    _refuse_demo(engine, person)
    file, reader = rows_in(upload, "responses")
    rows = ResponseFile(file, upload.benchmark or None)
    chosen = _rubric(engine, person, upload.rubric)
    added = try_responses(person, engine, rows, _rubrics_of(reader), chosen)
    return _see(rows, names_to_mask(person, engine)), added


def bring_response_file(engine: Engine, person: Person, upload: Upload) -> tuple[int, int]:
    """Store a file of responses, mask what names an author; return responses added and masked."""
    file, reader = rows_in(upload, "responses")
    rows = ResponseFile(file, upload.benchmark or None)
    chosen = _rubric(engine, person, upload.rubric)
    added = bring_responses(person, engine, rows, _rubrics_of(reader), chosen)
    return added.responses, mask_new(engine, person)


def try_rating_file(engine: Engine, person: Person, upload: Upload) -> tuple[RatingsAdded, int]:
    """Return what a file of ratings would change, and its empty cells, or raise."""
    rows = RatingFile(rows_in(upload, "ratings")[0])
    added = try_ratings(person, engine, rows, _rubric(engine, person, upload.rubric))
    return added, rows.missing


def bring_rating_file(engine: Engine, person: Person, upload: Upload) -> RatingsAdded:
    """Store a file of ratings."""
    rows = RatingFile(rows_in(upload, "ratings")[0])
    return bring_ratings(person, engine, rows, _rubric(engine, person, upload.rubric))


def _rubrics_of(reader: Reader | None) -> Callable[[str], Rubric]:
    """Return what gives a new benchmark's rubric: the tool's own, or the one of its name."""
    own = reader.rubric if reader else None
    return rubric_for if own is None else lambda _: own


def rubrics_to_choose(engine: Engine, person: Person) -> list[str]:
    """Return the names of the rubrics that ship, and of those in the study."""
    return sorted({*shipped(), *steering.rubric_names(person, engine)})


def _rubric(engine: Engine, person: Person, name: str) -> Rubric | None:
    """Return the rubric of a name that was offered; None leaves it to each benchmark."""
    if name in shipped():
        return read_rubric(name)
    return steering.rubric_of_name(person, engine, name) if name else None


def _refuse_demo(engine: Engine, person: Person) -> None:
    """Refuse to mix somebody's own responses into the demo study."""
    demo = {benchmark["name"] for benchmark in sample_benchmarks()}
    if demo & {material.view.name for material in steering.materials(person, engine)}:
        raise Conflict(
            "this is the demo study, and its raters are simulated: import your own responses "
            "into a study of your own"
        )


def _see(rows: ResponseFile, stored_names: Sequence[str]) -> Seen:
    """Return what a file holds; it is read twice, since a later row may name a new model."""
    models = {row.model for row in rows}
    names = sorted({*models, *stored_names})
    preview = Seen(models=len(models), ignored=rows.ignored, encoding=rows.table.encoding)
    instances: set[tuple[str, str]] = set()
    rows.contexts = 0
    for row in rows:
        preview.responses[row.benchmark] += 1
        if (key := (row.benchmark, row.instance_id)) not in instances:
            instances.add(key)
            preview.instances[row.benchmark] += 1
        _see_names(row, names, preview)
        if len(preview.first) < FIRST_ROWS:
            preview.first.append(row)
    preview.contexts = rows.contexts
    preview.left_out = dict(rows.table.left_out)
    preview.ignored = tuple(
        f"{name} ({counted(rows.not_taken[name], 'value')})" for name in rows.ignored
    )
    return preview


def _see_names(row: ResponseRow, names: Sequence[str], preview: Seen) -> None:
    """Count what betrays a response's author."""
    for hit in find_self_naming(row.response, names):
        if hit.kind == "sure":
            preview.sure[row.response_id] += 1
        else:
            preview.possible += 1
