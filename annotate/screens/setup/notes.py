"""Notes: bringing files in by upload, first looked at, then imported; and what is in the study.

A file is read as `medjury study import` and `medjury rate ratings` read it.
"""

import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, draw
from annotate.rating import text_html
from annotate.screens import frame
from annotate.screens.export import files
from annotate.screens.frame import show_heading, show_text
from annotate.screens.setup import references
from calibration.notes import counted
from calibration.tables.numbers import MINUS, PAGE
from calibration.tables.taxonomy import coverage_table
from data.importers.columns import What
from data.importers.rows import RatingRow, ResponseRow
from data.person import Person, only
from data.rubric import read_rubric
from data.safe_text import on_page
from data.schema import Role
from data.study import steering
from data.study.ratings import RatingsAdded
from data.study.responses import ResponsesAdded
from data.study.standing import BenchmarkView, study_benchmarks
from data.study.steering import pair_up, set_place
from data.taxonomy import subcategories
from medjury.services.importing import (
    PAIRS_RUBRIC,
    Seen,
    Upload,
    bring_rating_file,
    bring_response_file,
    map_needed,
    rubrics_to_choose,
    try_rating_file,
    try_response_file,
)
from medjury.services.measuring import METRICS, Scored
from medjury.services.taxonomy import coverage

RESPONSES, RATINGS = "Responses", "Ratings made elsewhere"
BY_NAME = {RESPONSES: "by each benchmark's name", RATINGS: "each benchmark's own"}
CHECKED, STORED, ROUND = "import-checked", "import-stored", "import-round"
GUESSED = "import-guessed"
COLUMNS = {
    RESPONSES: "instance_id, benchmark, context, prompt, reference, response_id, model, response; "
    "reference, prompt and response_id may be empty, checklist may be added. A row a pair to compare: "
    "instance_id, benchmark, context, prompt, first_model, first, second_model, second.",
    RATINGS: "response_id, rater, kind (clinician, juror or metric), then criterion and score, or a "
    "column a criterion; comment, rated_at, pass and replicate may be added.",
}
LIMIT = (
    "CSV, Excel (.xlsx), Parquet, JSON or JSON Lines, also packed (.gz), or the files of other "
    "tools, up to 20 MB; whoever runs the server can import larger ones there. Nothing is stored "
    "before you confirm."
)
NONE_YET = "This study has no responses yet."
FIRST = {
    Role.COORDINATOR: "Import a file of responses below; then deal them to clinicians under Clinicians.",
    Role.RESEARCHER: "A coordinator imports them here.",
}
ABOUT_COLUMNS = {
    "Category": "In brackets: where the taxonomy has a benchmark of this name, until another is set",
    "References": "Instances with a reference text",
    "Responses": "Training responses are not counted",
    "Masked": "Responses in which the name of the author is hidden from raters",
}
NO_PLACE = "not placed"
ABOUT_PAIRS = (
    "Clinicians and jurors then say which of two responses to the same instance is better. While the "
    "study is blind, pairs are made without looking at who wrote what."
)
MEASURED = "medjury.services.measuring:measure_study"
MEASURING = "Each response is compared with its reference; nothing is stored before all are"
ABOUT_METRICS = (
    "ROUGE-L and BERTScore compare each response with its reference text. They are stored as raters, "
    "so that Agreement compares them with the clinicians like any juror."
)
LONGEST_SHOWN = 5_000
KINDS: dict[str, What] = {RESPONSES: "responses", RATINGS: "ratings"}
MAPPED = (
    "The file's columns have other names. This map was guessed from them: read it, change it "
    "where it is "
    'wrong, and look at the first rows below. Every line is "column of the file" = "column of medjury".'
)


Checked = tuple[Seen, ResponsesAdded | RatingsAdded]


def show(engine: Engine, person: Person) -> None:
    """Show what is in the study; let a coordinator bring files in, place benchmarks and measure."""
    views = study_benchmarks(person, engine)
    frame.show_message(STORED)
    if not views:
        frame.empty(NONE_YET, FIRST[person.role])
    if person.role == Role.COORDINATOR:
        turn = st.session_state.get(ROUND, 0)  # what a file would change is not folded away
        is_read = any(st.session_state.get(f"import-file-{what}-{turn}") for what in BY_NAME)
        with st.expander("Import a file", expanded=not views or is_read, key="import"):
            _import(engine, person)
    if views:
        _material(engine, person, views)


def _import(engine: Engine, person: Person) -> None:
    """Ask for a file, show what it would change, and import it."""
    if steering.standing(person, engine).locked:
        show_text("The study is locked: no file can be imported.")
        return
    content = st.radio("The file holds", [RESPONSES, RATINGS], horizontal=True, key="import-what")
    thing = "response" if content == RESPONSES else "rating"
    show_text(f"One row a {thing}: {COLUMNS[content]}")
    files.show_templates()
    upload = _ask(engine, person, content)
    if upload is None:
        return
    with frame.refusals():
        preview, added = _checked(engine, person, content, upload)
        show_heading("What this file would change", "Nothing is stored yet.")
        if isinstance(added, ResponsesAdded):
            _show_responses(engine, person, preview, added)
        else:
            _show_ratings(added, preview.empty)
        for notice in preview.notices:
            st.warning(on_page(notice.removeprefix("WARNING: ")))
        if _new(added) and st.button("Import this file", type="primary", key="import-now"):
            _bring(engine, person, content, upload)
        if isinstance(added, ResponsesAdded):
            _show_first(preview.first)
        else:
            _show_first_ratings(preview.first_ratings)


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
    st.caption(on_page(LIMIT))
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
        st.warning(on_page(MAPPED))
    with st.expander("Map of columns", expanded=bool(guess)):
        return st.text_area("Column of the file = column of medjury", guess, key=key, height=300)


def _checked(engine: Engine, person: Person, content: str, upload: Upload) -> Checked:
    """Return what the file holds and would change; checked once for each file and choice."""
    key = (content, upload.key, steering.standing(person, engine).events)
    earlier = st.session_state.get(CHECKED)
    if earlier is None or earlier[0] != key:
        with st.spinner("Checking every row of the file", show_time=True):
            look = try_response_file if content == RESPONSES else try_rating_file
            earlier = st.session_state[CHECKED] = (key, look(engine, person, upload))
    result: Checked = earlier[1]
    return result


def _show_responses(engine: Engine, person: Person, preview: Seen, added: ResponsesAdded) -> None:
    """Show what a file of responses would change, and its benchmarks."""
    show_text(
        f"{counted(added.responses, 'new response')} to "
        f"{counted(added.instances, 'new instance')}; {added.unchanged:,} are there already. "
        f"{counted(preview.models, 'model')}. Read as {preview.encoding}."
    )
    for name, number in sorted(added.groups.items()):
        show_text(f"Group {name}: {counted(number, 'response')} put into it.")
    own = {one.name: one.rubric.name for one in study_benchmarks(person, engine)}
    rows = [
        {
            "Benchmark": name,
            "Rubric": added.benchmarks.get(name) or own.get(name, ""),
            "In the study": "new" if name in added.benchmarks else "yes",
            "Instances": preview.instances[name],
            "Responses": number,
        }
        for name, number in sorted(preview.responses.items())
    ]
    frame.show_rows("Benchmarks in the file", rows)
    if preview.sure:
        places = sum(preview.sure.values())
        show_text(
            f"{counted(len(preview.sure), 'response')} would be masked ({counted(places, 'place')} "
            f"that surely {'names' if places == 1 else 'name'} the author)."
        )
    else:
        show_text("No response clearly names its author.")
    if preview.possible:
        st.warning(
            f"{counted(preview.possible, 'place')} may name an author and would be left as they are: "
            "look at them under Blinding after the import."
        )


def _show_first(rows: Sequence[ResponseRow]) -> None:
    """Show the first rows of a file of responses, each folded."""
    show_heading("First rows", "Word for word as raters will read them; authors stay hidden.")
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


def _show_ratings(added: RatingsAdded, empty: int) -> None:
    """Show what a file of ratings would change."""
    show_text(
        f"{counted(added.added, 'new rating')}, {added.revised:,} revise an earlier one, "
        f"{added.unchanged:,} are there already; empty and so missing: {empty:,}."
    )
    if added.cleared:
        cleared = counted(added.cleared, "earlier score")
        st.warning(f"Empty in this file: {cleared}, which will be withdrawn, not deleted.")
    if added.staying:
        whose = ", ".join(f"{name} {number:,}" for name, number in sorted(added.staying.items()))
        st.warning(
            on_page(f"Earlier scores that this file leaves out and that still count: {whose}.")
        )
    for one, other in added.spellings:
        st.warning(on_page(f"{one} and {other} may be one person; they count as two."))
    if added.raters:
        show_text(f"New raters: {', '.join(added.raters)}.")


def _show_first_ratings(rows: Sequence[RatingRow]) -> None:
    """Show the first ratings as they would be stored."""
    shown = [
        {
            "Response": row.response_id,
            "Rater": row.rater,
            "Kind": row.kind.value,
            "Criterion": row.criterion,
            "Score": row.score,
        }
        for row in rows
    ]
    frame.show_rows("First ratings, as they would be stored", shown)


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
    return added.added + added.revised + added.cleared


def _material(engine: Engine, person: Person, views: list[BenchmarkView]) -> None:
    """Show every benchmark, and let a coordinator place one in the taxonomy and measure."""
    show_heading("Benchmarks", "What is in this study, and on which rubric is it rated?")
    frame.show_rows("Benchmarks of this study", [_row(one) for one in views], ABOUT_COLUMNS)
    with st.expander("Benchmarks by subcategory of the taxonomy", key="coverage"):
        draw.table(coverage_table(coverage(views), True, PAGE), titled=False)
    if person.role == Role.COORDINATOR:
        with st.expander("Place a benchmark in the taxonomy", key="place"):
            _place(engine, person, views)
        with st.expander("Compare responses in pairs", key="pair"):
            _pair(engine, person, views)
        with st.expander("Compare with references: ROUGE-L and BERTScore", key="measure"):
            _measure(engine, person)
    with st.expander("References checked by jurors", key="references"):
        references.show(engine, person)


def _row(view: BenchmarkView) -> dict[str, object]:
    category, subcategory = _shown(view)
    return {
        "Benchmark": view.name,
        "Category": category or None,
        "Subcategory": subcategory or None,
        "Rubric": f"{view.rubric.name} {view.rubric.version}",
        "Criteria": len(view.rubric.criteria),
        "Scale": re.sub(r"^-", MINUS, view.rubric.scales),  # no formula
        "Instances": view.instances,
        "References": view.references,
        "Responses": view.responses,
        "Masked": view.masked,
    }


def _shown(view: BenchmarkView) -> tuple[str, str]:
    """Return a benchmark's own place, else the taxonomy's in brackets."""
    category, subcategory = view.place
    if view.category or not category:
        return category, subcategory
    return f"({category})", f"({subcategory})"


def _place(engine: Engine, person: Person, views: list[BenchmarkView]) -> None:
    """Ask where a benchmark belongs."""
    columns = st.columns((3, 4, 5, 2), vertical_alignment="bottom")
    by_name = {view.name: view for view in views}
    name = columns[0].selectbox("Benchmark", list(by_name), key="place-of")
    own = by_name[name]
    places = subcategories()
    category = columns[1].selectbox(
        "Category", ["", *places], _at(["", *places], own.category), _named, key=f"category-{name}"
    )
    parts = ["", *places.get(category, [])]
    subcategory = columns[2].selectbox(
        "Subcategory", parts, _at(parts, own.subcategory), _named, key=f"part-{name}-{category}"
    )
    if columns[3].button("Save the category", key="place-now", width="stretch"):
        with frame.refusals():
            set_place(person, engine, name, category, subcategory)
            st.session_state[STORED] = f"The category of {name} is saved, and in the record."
            st.rerun()


def _pair(engine: Engine, person: Person, views: list[BenchmarkView]) -> None:
    """Make pairs of the responses of a benchmark, in a benchmark of their own."""
    show_text(ABOUT_PAIRS)
    names = [one.name for one in views if not one.rubric.compares]
    columns = st.columns((3, 3, 2, 2), vertical_alignment="bottom")
    benchmark = columns[0].selectbox("Responses of", names, key="pairs-of")
    into = columns[1].text_input("Benchmark of the pairs", f"{benchmark}-pairs", key="pairs-into")
    number = columns[2].number_input("How many (0: all)", 0, None, 0, key="pairs-number")
    if columns[3].button("Make the pairs", key="pairs-now", disabled=not names, width="stretch"):
        with frame.refusals():
            rubric = read_rubric(PAIRS_RUBRIC)
            added = pair_up(person, engine, benchmark, into.strip(), rubric, number=number or None)
            st.session_state[STORED] = f"{into}: {counted(added.pairs, 'pair')} made."
            st.rerun()


def _measure(engine: Engine, person: Person) -> None:
    """Score every response against its reference, where a coordinator asks for it."""
    show_text(ABOUT_METRICS)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        metrics = st.multiselect("Metrics", METRICS, METRICS[:1], key="metrics")
        pressed = st.button("Compute", key="measure-now", disabled=not metrics)
    if pressed:
        scored = frame.computed(measured(person, engine, tuple(metrics)), MEASURING)
        if scored is not None:
            for one in scored:
                cut = f"; {len(one.cut)} were read only in part" if one.cut else ""
                told = f"{one.name}: scored {len(one.rows):,} of {one.total:,} responses{cut}."
                st.success(on_page(told))


@only(Role.COORDINATOR)
def measured(_: Person, engine: Engine, metrics: tuple[str, ...]) -> "Future[list[Scored]]":
    """Score and store by some metrics beside the server; what they scored is to come."""
    return compute.of_study(engine, MEASURED, metrics)


def _at(options: list[str], value: str) -> int:
    return options.index(value) if value in options else 0


def _named(value: str) -> str:
    return value or NO_PLACE
