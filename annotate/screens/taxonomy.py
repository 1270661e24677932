"""The taxonomy screen: the tree of tasks, which benchmarks stand in it, and a study's own file."""

import html
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path

import streamlit as st
from sqlalchemy import Engine

from annotate import charts, tables, worker
from annotate.results import SurveyQuestion
from annotate.screens import frame
from annotate.screens.frame import good, heading, paragraph
from calibration.messages.form import counted
from calibration.report.survey_page import survey_page
from calibration.tables.numbers import PAGE
from calibration.tables.spec import Table
from calibration.tables.taxonomy import (
    catalogue_table,
    counts_in_words,
    coverage_table,
    once_in_words,
)
from data.files import MOST_BYTES
from data.person import Person, only
from data.queries.steering import who_can_rate
from data.queries.surveys import SurveyView, surveys_for
from data.queries.taxonomy import placed_for, taxonomy_for
from data.schema import Role
from data.store.surveys import begin_survey, end_survey, invite_to_survey
from data.store.taxonomy import choose_taxonomy
from data.survey import ITEMS
from data.taxonomy import Part, Taxonomy, read_taxonomy, shipped_taxonomy
from medjury.services.taxonomy import StudyTaxonomy, coverage, picture_rows

ABOUT = (
    "Which tasks are there, and which benchmarks test them? The tree of tasks, and its coverage."
)
PICTURE = (
    "Benchmarks in each part, as {} lists them. A diamond is the number of this study's own there."
)
OWN = (
    "A study can have a taxonomy of its own: a TOML file of categories with what stands below them, as "
    "deep as you like. Benchmarks of the study that somebody placed must have their places in it."
)
ABOUT_SURVEY = (
    "Clinicians place the taxonomy's parts, or its tasks, into its categories, each in an order of their "
    "own and without seeing where the taxonomy has them or what others answered. They find the survey when "
    "they sign in. A second round after a change of the taxonomy shows what the change did."
)
AS_A_CHART = "The coverage as a chart"
SEED = 0
CHOSEN = "taxonomy-file"
FIELDS = (("is about", "definition"), ("counts when", "counts_when"), ("done by", "performer"))


def show(engine: Engine, person: Person) -> None:
    """Show the taxonomy by its parts, its coverage and its benchmarks."""
    known = known_taxonomy(person, engine)
    frame.begin(person, "Taxonomy", ABOUT, "taxonomy.css")
    st.html(_head(known.taxonomy))
    frame.show_tabs(
        {
            "Coverage": partial(_coverage, known),
            "Tasks": partial(_tasks, known.taxonomy),
            "Benchmarks": partial(_benchmarks, known.taxonomy),
            "Survey": partial(_survey, engine, person),
            "Your own": partial(_own, engine, person),
        }
    )


@only(Role.RESEARCHER, Role.COORDINATOR)
def known_taxonomy(person: Person, engine: Engine) -> StudyTaxonomy:
    """Return the taxonomy of a study with its coverage."""
    taxonomy, placed = taxonomy_for(person, engine), placed_for(person, engine)
    return StudyTaxonomy(taxonomy, coverage(taxonomy, placed), tuple(placed))


def _is_medhelm(taxonomy: Taxonomy) -> bool:
    return taxonomy.sha256 == shipped_taxonomy().sha256


def _head(taxonomy: Taxonomy) -> str:
    name = f"{taxonomy.name} {taxonomy.version}".strip()
    source = f" Source: {taxonomy.source}." if taxonomy.source else ""
    return paragraph(f"{name}: {counts_in_words(taxonomy)}.{source}")


def _coverage(known: StudyTaxonomy) -> None:
    """Show how many benchmarks stand where, as a table and a picture."""
    found = known.coverage
    of_study, is_medhelm = bool(known.benchmarks), _is_medhelm(known.taxonomy)
    st.html(tables.of_table(coverage_table(found, of_study, PAGE, is_medhelm=is_medhelm)))
    name, rows = picture_rows(found)
    if name or known.benchmarks:
        worker.wake()
        title = f"Benchmarks listed by {name}" if name else "Benchmarks"
        chart = charts.drawn("chart_taxonomy:chart_coverage", rows, title)
        words = PICTURE.format(name or "nobody")
        with st.expander(AS_A_CHART, key="coverage-chart"):
            charts.show(chart, "coverage", words, f"Coverage: {once_in_words(found)}", rows)


def _tasks(taxonomy: Taxonomy) -> None:
    """Show the tree: each category opens to what stands below it, with definitions and tasks."""
    parts = enumerate(taxonomy.categories)
    st.html("".join(tree(category, 0, is_open=place == 0) for place, category in parts))


def tree(part: Part, depth: int, *, is_open: bool = False) -> str:
    """Return a part with all below it; everything is escaped."""
    facts = "".join(
        f"<p><b>{words}</b> {html.escape(text)}</p>"
        for words, field in FIELDS
        if (text := getattr(part, field))
    )
    below = "".join(tree(one, depth + 1) for one in part.parts)
    opened = " open" if is_open else ""
    return (
        f'<details class="mj-branch"{opened}><summary>{html.escape(part.name)}'
        f"<small>{html.escape(_inside(part))}</small></summary>"
        f'<div class="mj-inside">{facts}{_lines(part)}{below}</div></details>'
    )


def _inside(part: Part) -> str:
    """Return what stands in a part, in numbers."""
    if part.parts:
        return f"{len(part.parts)} parts"
    single = sum(len(task.single) for task in part.tasks)
    return f"{single} {'task' if single == 1 else 'tasks'}" if single else ""


def _lines(part: Part) -> str:
    """Return the lines of tasks, with the single ones a line names."""
    items = []
    for task in part.tasks:
        single = "; ".join(task.single) if len(task.single) > 1 else ""
        more = f" <small>{html.escape(single)}</small>" if single else ""
        items.append(f"<li>{html.escape(task.line)}{more}</li>")
    return f"<ul>{''.join(items)}</ul>" if items else ""


def _benchmarks(taxonomy: Taxonomy) -> None:
    """Show the catalogue, category by category."""
    if not taxonomy.benchmarks:
        frame.empty("This taxonomy describes no benchmarks.")
        return
    is_medhelm = _is_medhelm(taxonomy)
    table = catalogue_table(taxonomy.benchmarks, taxonomy.place_of(), PAGE, is_medhelm=is_medhelm)
    st.html(paragraph(f"{table.caption}.") + "".join(map(_category, _by_category(table))))


def _by_category(table: Table) -> Iterator[Table]:
    """Yield a table of each category; the last has the notes."""
    for group in table.groups:
        notes = table.notes if group is table.groups[-1] else ()
        yield replace(
            table, caption=group.heading, groups=(replace(group, heading=""),), notes=notes
        )


def _category(table: Table) -> str:
    number = counted(len(table.groups[0].rows), "benchmark")
    return tables.folded(f"{table.caption}: {number}", tables.of_table(table))


def _survey(engine: Engine, person: Person) -> None:
    """Show how the survey stands and what it found; a coordinator opens, asks and closes."""
    views = surveys_for(person, engine)
    st.html(paragraph(ABOUT_SURVEY))
    if person.role == Role.COORDINATOR:
        _steer(engine, person, views)
    if not views:
        frame.empty("No round was opened yet.")
        return
    coming: Future[tuple[Table, ...]] = worker.ask(
        person, engine, "annotate.survey_results:surveyed", SurveyQuestion()
    )
    found = frame.computed(coming, "Counting the answers")
    if found is None:
        return
    for table in found:
        st.html(tables.of_table(table))
    body = survey_page(found).encode()
    st.download_button("The results as a page", body, "survey.html", "text/html", on_click="ignore")


def _steer(engine: Engine, person: Person, views: Sequence[SurveyView]) -> None:
    """Let a coordinator open a round, ask clinicians in it, and close it."""
    is_open = bool(views) and views[-1].closed is None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if not is_open:
            kind = st.radio("What clinicians place", ITEMS, key="survey-items", horizontal=True)
            if st.button("Open a round", key="survey-open"):
                with frame.refusals():
                    taxonomy = taxonomy_for(person, engine)
                    begin_survey(person, engine, taxonomy, kind, SEED, person.actor)
                    st.rerun()
            return
        everybody = who_can_rate(person, engine)
        names = st.multiselect("Clinicians; all, if you choose none", everybody, key="survey-who")
        if st.button("Ask clinicians", key="survey-ask"):
            with frame.refusals():
                invite_to_survey(person, engine, names, person.actor)
                st.rerun()
        if st.button("Close the round", key="survey-close"):
            with frame.refusals():
                end_survey(person, engine, person.actor)
                st.rerun()


def _own(engine: Engine, person: Person) -> None:
    """Say which taxonomy the study uses; let a coordinator choose another."""
    taxonomy = taxonomy_for(person, engine)
    st.html(heading("The study's taxonomy") + paragraph(f"In use: {taxonomy.name}. {OWN}"))
    if person.role != Role.COORDINATOR:
        return
    file = st.file_uploader("A taxonomy (TOML)", type=["toml"], key=CHOSEN)
    with st.container(horizontal=True):
        checked = st.button("Check this file", key="taxonomy-check", disabled=file is None)
        used = st.button("Use this file", key="taxonomy-use", disabled=file is None)
        back = not _is_medhelm(taxonomy) and st.button("Use MedHELM's again", key="taxonomy-back")
    with frame.refusals():
        if file is not None and (checked or used):
            own = uploaded(file.getvalue())
            st.html(good(f"Sound. {own.name}: {counts_in_words(own)}."))
            if used and choose_taxonomy(person, engine, own, person.actor):
                st.rerun()
        if back and choose_taxonomy(person, engine, None, person.actor):
            st.rerun()


def uploaded(body: bytes) -> Taxonomy:
    """Read a taxonomy from an upload, as from a file.

    Raises
    ------
    BadFile
        As `read_taxonomy`.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "taxonomy.toml"
        path.write_bytes(body[: MOST_BYTES + 1])
        return read_taxonomy(path, "taxonomy")
