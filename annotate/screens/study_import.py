"""Bringing files in by upload: first what they hold and would change, then, if wanted, the import."""

import streamlit as st
from sqlalchemy import Engine

from annotate import panes
from annotate.screens import study_intake as intake
from annotate.screens.markup import Cell, good, heading, notice, refused, said, table
from annotate.screens.study_intake import Seen, Upload
from data import queries
from data.errors import MedjuryError
from data.person import Person
from data.store.ratings import RatingsAdded
from data.store.responses import ResponsesAdded

RESPONSES, RATINGS = "Responses", "Ratings made elsewhere"
BY_NAME = {RESPONSES: "by each benchmark's name", RATINGS: "each benchmark's own"}
CHECKED, STORED, ROUND = "import-checked", "import-stored", "import-round"
COLUMNS = {
    RESPONSES: "instance_id, benchmark, context, prompt, reference, response_id, model, response; "
    "reference, prompt and response_id may be empty, checklist may be added.",
    RATINGS: "response_id, rater, kind (clinician, juror or metric), then criterion and score, or a "
    "column a criterion; comment, rated_at, pass and replicate may be added.",
}
LIMIT = (
    "CSV or JSON Lines, up to 20 MB; for more, medjury import FILE or medjury ratings FILE on the "
    "server. Nothing is stored before you confirm."
)
LONGEST_SHOWN = 5_000
Checked = tuple[Seen | int, ResponsesAdded | RatingsAdded]
HEADS = ("Benchmark", "Rubric", "In the study", "Instances in the file", "Responses in the file")


def show(engine: Engine, person: Person) -> None:
    """Ask for a file, show what it would change, and import it."""
    if told := st.session_state.pop(STORED, None):
        st.html(good(told))
    if queries.standing(person, engine).locked:
        st.html(said("A locked study takes no files."))
        return
    st.html(heading("Import a file"))
    what = st.radio("The file holds", [RESPONSES, RATINGS], horizontal=True, key="import-what")
    st.html(said(f"One row a {'response' if what == RESPONSES else 'rating'}: {COLUMNS[what]}"))
    upload = _ask(engine, person, what)
    if upload is None:
        return
    try:
        checked = _checked(engine, person, what, upload)
    except MedjuryError as error:
        st.html(refused(str(error)))
        return
    _show_checked(engine, person, checked)
    changes = checked[1].responses if isinstance(checked[1], ResponsesAdded) else _new(checked[1])
    if changes and st.button("Import this file", type="primary", key="import-now"):
        _bring(engine, person, what, upload)


def _ask(engine: Engine, person: Person, what: str) -> Upload | None:
    """Ask for the file and what it leaves open."""
    first, second = st.columns((1, 1))
    names = ["", *intake.rubrics_to_choose(engine, person)]
    rubric = first.selectbox(
        "Rubric", names, 0, lambda one: one or BY_NAME[what], key="import-rubric"
    )
    benchmark = (
        second.text_input("Benchmark of rows that name none (optional)", key="import-benchmark")
        if what == RESPONSES
        else ""
    )
    turn = st.session_state.get(ROUND, 0)
    # Of any kind: one that the browser turns down would leave the plan of the file before it.
    file = st.file_uploader("File", key=f"import-file-{what}-{turn}")
    st.html(said(LIMIT))
    return (
        None
        if file is None
        else Upload(file.name, file.getvalue(), rubric or "", benchmark.strip())
    )


def _checked(engine: Engine, person: Person, what: str, upload: Upload) -> Checked:
    """Return what the file holds and would change; checked once for each file and choice."""
    key = (what, upload.key, queries.standing(person, engine).events)
    kept = st.session_state.get(CHECKED)
    if kept is None or kept[0] != key:
        with st.spinner("Checking every row"):
            if what == RESPONSES:
                found: Checked = intake.try_response_file(engine, person, upload)
            else:
                added, empty = intake.try_rating_file(engine, person, upload)
                found = empty, added
        st.session_state[CHECKED] = (key, found)
        return found
    known: Checked = kept[1]
    return known


def _show_checked(engine: Engine, person: Person, checked: Checked) -> None:
    seen, added = checked
    st.html(heading("What this file would change"))
    if isinstance(seen, Seen) and isinstance(added, ResponsesAdded):
        _show_responses(engine, person, seen, added)
    elif isinstance(seen, int) and isinstance(added, RatingsAdded):
        st.html("".join(_told_ratings(added, seen)))


def _show_responses(engine: Engine, person: Person, seen: Seen, added: ResponsesAdded) -> None:
    """Show what a file of responses would change, its benchmarks and its first rows."""
    st.html(
        said(
            f"{_counted(added.responses, 'new response')} to "
            f"{_counted(added.instances, 'new instance')}; {added.unchanged:,} are there already. "
            f"{_counted(seen.models, 'model')}. Read as {seen.encoding}."
        )
    )
    for name, number in sorted(added.groups.items()):
        st.html(said(f"Group {name}: {_counted(number, 'response')} put into it."))
    own = {one.view.name: one.view.rubric.name for one in queries.materials(person, engine)}
    rows: list[list[Cell]] = [
        [
            *(name, added.benchmarks.get(name) or own.get(name, "")),
            *("new" if name in added.benchmarks else "yes", seen.instances[name], number),
        ]
        for name, number in sorted(seen.responses.items())
    ]
    st.html(table("Benchmarks in the file", HEADS, rows, words=3))
    st.html("".join(_told_names(seen)) + "".join(_warnings(seen, added)))
    st.html(heading("First rows, verbatim; authors stay hidden"))
    for number, row in enumerate(seen.first, 1):
        with st.expander(f"Row {number}", expanded=number == 1):
            for label, text in (
                *(("Source", row.context), ("Task", row.prompt), ("Response", row.response)),
                ("Reference", row.reference or ""),
            ):
                if text:
                    st.html(
                        f'<p class="mj-label">{label}</p>'
                        + panes.pane(shortened(text), label, "first")
                    )


def shortened(text: str) -> str:
    """Return the beginning of a long text, with how long it is; any other as it is."""
    if len(text) <= LONGEST_SHOWN:
        return text
    return (
        f"{text[:LONGEST_SHOWN]}\n\n[Shown are the first {LONGEST_SHOWN:,} of {len(text):,} "
        "characters; all are imported.]"
    )


def _told_names(seen: Seen) -> list[str]:
    """Say what will be masked, and what will not."""
    places = sum(seen.sure.values())
    told = [
        said(
            f"{_counted(len(seen.sure), 'response')} would be masked ({_counted(places, 'place')} "
            f"that surely {'names' if places == 1 else 'name'} the author)."
            if seen.sure
            else "No response surely names its author."
        )
    ]
    if seen.possible:
        told.append(
            notice(
                f"{_counted(seen.possible, 'place')} may name an author and would be left as they "
                "are: medjury blind lists them afterwards."
            )
        )
    return told


def _warnings(seen: Seen, added: ResponsesAdded) -> list[str]:
    """Say what is odd and still allowed."""
    told = []
    if added.twins:
        told.append(
            f"{added.twins:,} repeat a text of the same model to the same instance under another "
            "response_id: their ratings would be split over two."
        )
    if seen.ignored:
        told.append(f"Columns without meaning here, ignored: {', '.join(seen.ignored)}.")
    if not seen.contexts:
        told.append(
            "No row has a context: raters will have nothing but the prompt to hold against."
        )
    return [notice(one) for one in told]


def _told_ratings(added: RatingsAdded, empty: int) -> list[str]:
    """Say what a file of ratings would change."""
    told = [
        said(
            f"{_counted(added.added, 'new rating')}, {added.revised:,} revise an earlier one, "
            f"{added.unchanged:,} are there already; empty and so missing: {empty:,}."
        )
    ]
    if added.raters:
        told.append(said(f"New raters: {', '.join(added.raters)}."))
    for name, criteria in sorted(added.lacking.items()):
        text = f"{name}: nobody in this file rates {', '.join(criteria)}, so there is no composite."
        told.append(notice(text))
    for name in sorted(added.other_rubric):
        text = f"{name} has ratings on another rubric: these are kept apart and do not count."
        told.append(notice(text))
    return told


def _bring(engine: Engine, person: Person, what: str, upload: Upload) -> None:
    """Import what was looked at, say so, and ask for the next file."""
    try:
        with st.spinner("Importing"):
            if what == RESPONSES:
                new, masked = intake.bring_response_file(engine, person, upload)
                told = f"{_counted(new, 'response')} imported, {_counted(masked, 'new response')} masked."
            else:
                told = f"{_counted(_new(intake.bring_rating_file(engine, person, upload)), 'rating')} imported."
    except MedjuryError as error:
        st.html(refused(str(error)))
        return
    st.session_state[STORED] = f"{upload.name}: {told}"
    st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1
    st.session_state.pop(CHECKED, None)
    st.rerun()


def _new(added: RatingsAdded) -> int:
    return added.added + added.revised


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
