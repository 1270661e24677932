"""The study screen: what it is made of, how far it is, its record, and what is done to it."""

import html
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, tables
from annotate.screens import (
    frame,
    study_description,
    study_design,
    study_differences,
    study_files,
    study_home,
    study_import,
    study_plan,
    study_points,
    study_progress,
    study_references,
    study_training,
)
from annotate.screens.frame import Cell, good, heading, notice, paragraph, refused, table
from annotate.screens.study_design import show_protocol
from calibration.tables.numbers import PAGE
from calibration.tables.taxonomy import coverage_table
from data.person import Person, only
from data.schema import Role, now
from data.study import people, steering
from data.study.responses import TaxonomyPlace
from data.study.standing import placed_for
from data.study.steering import Material, StudyStanding, lock_study, reopen_study, set_place
from data.study.verify import Verified
from data.taxonomy import medhelm_taxonomy
from medjury.services.measuring import METRICS, Scored
from medjury.services.taxonomy import coverage

ABOUT = "What is rated, by whom, how far the work is, and what the record says. Database: {}"
PARTS = (
    *("Overview", "Progress", "Differences", "Material", "Description"),
    *("Plan", "Protocol", "Import", "Points", "Training", "Design", "Files", "Record"),
)
ACTS = ("Import", "Training", "Design")  # of a coordinator only
OVERVIEW = PARTS[0]
PART, SHOWN_PART = "part", "study-part"
OF_RESPONSES = (OVERVIEW, "Progress", "Differences", "Material", "Design")
NONE_YET = "This study has no responses yet."
FIRST = {
    Role.COORDINATOR: "Import responses under Import, then assign them to clinicians under Design.",
    Role.RESEARCHER: "A coordinator imports them under Import.",
}
HEADS = (
    *("Benchmark", "Category", "Subcategory", "Rubric"),
    *("Criteria", "Scale", "Instances", "References", "Responses", "Masked"),
)
NO_PLACE = "not placed"
MEASURED = "medjury.services.measuring:measure_study"
MEASURING = "Each response is compared with its reference; nothing is stored before all are"
CHECKING = "Every event is hashed again, and every row that an event vouches for is compared"
ABOUT_METRICS = (
    "ROUGE-L and BERTScore compare each response with its reference text. They are stored as raters, "
    "so that Agreement compares them with the clinicians like any juror."
)
TOLD = (
    '<p class="mj-said">A category in brackets is where the taxonomy has the benchmark of this name; it '
    "counts until "
    "another is set. <b>References</b> are instances with a reference text, <b>Masked</b> "
    "are responses in which the author's name is hidden from raters. Training responses are "
    "not counted.</p>"
)
DECIDED = {
    "reference": "Clinicians see the reference answer",
    "pause_minutes": "A pause is offered after, in minutes",
    "ask_why": "A low score asks for a reason",
    "training_gap": "Mean distance from the experts that passes training, in points",
    "error_types": "Error types of a mark",
}
CHECKED, LOCKED_AT = "record-checked", "record-head"
WORD = "lock"
ABOUT_RECORD = (
    "{:,} events: who did what, and when. Each carries the fingerprint (hash) of the one before, so that an "
    "event that is changed or taken out later is noticed."
)
KEEP = (
    "Give this hash to somebody who cannot write to the database, such as an ethics board: "
    "with it, a later check shows whether events were removed."
)
ABOUT_LOCK = (
    "Locking stops all work: nobody can rate, import or assign afterwards, and open drafts "
    "stay unsubmitted. Results can still be read. Reopening needs a reason, which stays in "
    "the record and in every later report."
)


def show(engine: Engine, person: Person) -> None:
    """Show the study's standing, and the part of it that is chosen."""
    materials, standing = steering.materials(person, engine), steering.standing(person, engine)
    frame.begin(person, "Study", ABOUT.format(Path(engine.url.database or "").name), "study.css")
    frame.say_simulated(standing)
    if standing.locked:
        consequence = "nobody can rate, import or assign until it is reopened. Results can be read."
        st.html(notice(f"Locked since {standing.locked}: {consequence}"))
    chosen = _chosen(person)
    if not materials and chosen in OF_RESPONSES:
        frame.empty(NONE_YET, FIRST[person.role])
    if chosen == OVERVIEW:
        study_home.show(engine, person)
        return
    st.html(_facts(engine, person, materials, standing))
    if materials or chosen not in OF_RESPONSES:
        _DRAW[chosen](engine, person)


def _chosen(person: Person) -> str:
    """Ask which part; it stands in the address, so that it can be shared, and "Back" leads to it."""
    mine = [part for part in PARTS if person.role == Role.COORDINATOR or part not in ACTS]
    frame.take_from_address(PART, SHOWN_PART, mine)
    chosen = st.segmented_control(
        "Part of the study", mine, required=True, key=SHOWN_PART, label_visibility="collapsed"
    )
    shown = chosen if chosen in mine else mine[0]
    frame.keep_in_address(PART, shown, mine)
    return shown


def _facts(
    engine: Engine, person: Person, materials: list[Material], standing: StudyStanding
) -> str:
    """Return the figures at the top; clinicians are those with work, and those who may get some."""
    workloads = people.workloads(person, engine)
    clinicians = {workload.handle for workload in workloads} | {
        *steering.who_can_rate(person, engine)
    }
    done, total = (
        sum(workload.done for workload in workloads),
        sum(workload.total for workload in workloads),
    )
    views = [material.view for material in materials]
    facts = {
        "Benchmarks": f"{len(views):,}",
        "Instances": f"{sum(view.instances for view in views):,}",
        "Responses": f"{sum(view.responses for view in views):,}",
        "Clinicians": f"{len(clinicians):,}",
        "Assigned readings done": f"{done:,} of {total:,}" if total else "none",
        "State": "locked" if standing.locked else "open",
    }
    items = "".join(
        f"<div><dt>{name}</dt><dd>{html.escape(value)}</dd></div>" for name, value in facts.items()
    )
    return f'<dl class="mj-facts">{items}</dl>'


def show_material(engine: Engine, person: Person) -> None:
    """Show every benchmark, and let a coordinator place one in the taxonomy."""
    materials = steering.materials(person, engine)
    st.html(
        heading("Benchmarks")
        + table(
            "Benchmarks of this study", HEADS, [_row(material) for material in materials], words=4
        )
        + TOLD
    )
    covered = coverage_table(coverage(placed_for(person, engine)), bool(materials), PAGE)
    with st.expander("Benchmarks by subcategory of the taxonomy", key="coverage"):
        st.html(tables.of_table(covered))
    if person.role == Role.COORDINATOR:
        _place(engine, person, materials)
        _measure(engine, person)
    study_references.show(engine, person)


def _row(material: Material) -> list[Cell]:
    view = material.view
    category, subcategory = _shown(material)
    return [
        *(view.name, category or None, subcategory or None),
        f"{view.rubric.name} {view.rubric.version}",
        len(view.rubric.criteria),
        f"{view.rubric.scale.min} to {view.rubric.scale.max}",
        *(view.instances, material.references, view.responses, material.masked),
    ]


def _shown(material: Material) -> tuple[str, str]:
    """Return a benchmark's own place, else the taxonomy's in brackets."""
    if material.view.category or not material.known[0]:
        return material.view.category, material.view.subcategory
    return f"({material.known[0]})", f"({material.known[1]})"


def _place(engine: Engine, person: Person, materials: list[Material]) -> None:
    """Ask where a benchmark belongs."""
    st.html(heading("Place in the taxonomy"))
    columns = st.columns((3, 4, 5, 2), vertical_alignment="bottom")
    views = {material.view.name: material for material in materials}
    name = columns[0].selectbox("Benchmark", list(views), key="place-of")
    own = views[name].view
    places = medhelm_taxonomy().subcategories()
    category = columns[1].selectbox(
        "Category", ["", *places], _at(["", *places], own.category), _named, key=f"category-{name}"
    )
    parts = ["", *places.get(category, [])]
    subcategory = columns[2].selectbox(
        "Subcategory", parts, _at(parts, own.subcategory), _named, key=f"part-{name}-{category}"
    )
    if columns[3].button("Save the category", key="place-now", width="stretch"):
        with frame.refusals():
            set_place(person, engine, name, TaxonomyPlace(category, subcategory))
            st.rerun()


def _measure(engine: Engine, person: Person) -> None:
    """Score every response against its reference, where a coordinator asks for it."""
    st.html(heading("Metrics") + paragraph(ABOUT_METRICS))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        metrics = st.multiselect("Metrics", METRICS, METRICS[:1], key="metrics")
        pressed = st.button("Compute", key="measure-now", disabled=not metrics)
    if pressed:
        scored = frame.computed(measured(person, engine, tuple(metrics)), MEASURING)
        if scored is not None:
            st.html(good(" ".join(map(_scored, scored))))


@only(Role.COORDINATOR)
def measured(_: Person, engine: Engine, metrics: tuple[str, ...]) -> "Future[list[Scored]]":
    """Score and store by some metrics beside the server; what they scored is to come."""
    return compute.of_study(engine, MEASURED, metrics)


def _scored(one: Scored) -> str:
    cut = f"; {len(one.cut)} were read only in part" if one.cut else ""
    return f"{one.name}: scored {len(one.rows):,} of {one.total:,} responses{cut}."


def _at(options: list[str], value: str) -> int:
    return options.index(value) if value in options else 0


def _named(value: str) -> str:
    return value or NO_PLACE


def show_record(engine: Engine, person: Person) -> None:
    """Show what was done to the study as a whole; check the record; lock or reopen."""
    standing = steering.standing(person, engine)
    st.html(heading("Record") + paragraph(ABOUT_RECORD.format(standing.events)))
    names = people.names_of_actors(person, engine)
    rows: list[list[Cell]] = [
        [f"{at:%Y-%m-%d %H:%M}", act, actor_label(by, names), reason or None]
        for act, at, by, reason in standing.steered
    ]
    if rows:
        st.html(table("Locks and unblindings", ("When (UTC)", "Act", "By", "Reason"), rows, 4))
    else:
        st.html(paragraph("It was never locked, reopened or unblinded."))
    settings = steering.study_settings(person, engine).as_text()
    decided = [[words, _readable(settings[name])] for name, words in DECIDED.items()]
    st.html(heading("Settings") + table("Settings", ("Setting", "Value"), decided, 2))
    _check(engine, person)
    if person.role == Role.COORDINATOR:
        _reopen(engine, person) if standing.locked else _lock(engine, person, standing)


def _readable(setting: str) -> str:
    """Return a setting in words."""
    words = setting.replace("_", " ").replace(",", ", ")
    return {"true": "yes", "false": "no"}.get(words, words)


def actor_label(actor: str, names: Mapping[str, str]) -> str:
    """Return who acted as the record has it, with the name where that may be seen."""
    return f"{names[actor]} ({actor})" if actor in names else actor


def _check(engine: Engine, person: Person) -> None:
    """Check every event and every row that an event vouches for."""
    st.html(heading("Check the record"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        head = st.text_input("Hash kept outside the study (optional)", key="head", max_chars=64)
        pressed = st.button("Check now", key="verify-now")
    with frame.refusals():
        if pressed:
            with st.spinner(CHECKING, show_time=True):
                verified = steering.checked_record(person, engine, head or None)
            st.session_state[CHECKED] = (verified, now())
        if checked := st.session_state.get(CHECKED):
            _show_verified(*checked)


def _show_verified(verified: Verified, at: datetime) -> None:
    """Show what a check found, and when: the study may have changed since."""
    rows = ", ".join(f"{number:,} {name}s" for name, number in verified.rows.items())
    summary = f"{verified.events:,} events checked against {rows}. Checked at {at:%H:%M} UTC."
    if verified.findings:
        st.html("".join(refused(finding) for finding in verified.findings))
        st.html(paragraph(f"{len(verified.findings)} findings. {summary}"))
    else:
        st.html(good(f"Whole: no findings. {summary}"))
    st.html(paragraph(f"Latest hash of the record. {KEEP}"))
    st.code(verified.head, language=None, wrap_lines=True)


def _lock(engine: Engine, person: Person, standing: StudyStanding) -> None:
    """Ask for the word before the study is frozen."""
    st.html(heading("Lock the study") + notice(ABOUT_LOCK))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        typed = st.text_input(f"Type {WORD} to confirm", key=f"lock-word-{standing.events}")
        pressed = st.button("Lock the study", key="lock-now")
    if not pressed:
        return
    if typed.strip().lower() != WORD:
        st.html(refused(f"Not locked: type {WORD} first."))
        return
    with frame.refusals():
        st.session_state[LOCKED_AT] = lock_study(person, engine)
        st.rerun()


def _reopen(engine: Engine, person: Person) -> None:
    """Show the head at the lock, and ask for a reason before the study is opened again."""
    if head := st.session_state.get(LOCKED_AT):
        st.html(good(f"Locked. {KEEP}"))
        st.code(head, language=None, wrap_lines=True)
    st.html(heading("Reopen the study"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        reason = st.text_input("Reason; it stays in the record", key="reopen-why")
        pressed = st.button("Reopen", key="reopen-now")
    if not pressed:
        return
    with frame.refusals():
        reopen_study(person, engine, reason)
        st.session_state.pop(LOCKED_AT, None)
        st.rerun()


_DRAW: Mapping[str, Callable[[Engine, Person], None]] = {
    "Progress": study_progress.show,
    "Differences": study_differences.show,
    "Material": show_material,
    "Description": study_description.show,
    "Plan": study_plan.show,
    "Protocol": show_protocol,
    "Import": study_import.show,
    "Points": study_points.show,
    "Training": study_training.show,
    "Design": study_design.show,
    "Files": study_files.show,
    "Record": show_record,
}
