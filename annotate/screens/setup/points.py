"""Points of the case on the study screen: bring them in, look at them, correct a case's own."""

from collections.abc import Iterator, Mapping
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame
from annotate.screens.export import files
from annotate.screens.frame import show_text
from annotate.screens.stored_table import is_to_be_stored
from calibration.notes import counted
from data.importers.ratings import POINT_COLUMNS, PointRow, point_of, point_rows
from data.importers.rows import Origin
from data.importers.table import TableFile
from data.person import Person
from data.points import points_of, points_rubric
from data.rubric import Rubric
from data.safe_text import on_page
from data.schema import Role
from data.study import steering
from data.study.points import CaseRubric, PointsAdded, bare_of, bring_points, cases_of
from data.study.standing import study_benchmarks
from medjury.services.importing import Upload

ABOUT = (
    "A benchmark can be rated by points of the case instead of scales: each instance has a list of what a "
    "response should and should not do. Clinicians and jurors say of each point whether the response "
    "does it; weights turn the answers into one score from 0 to 100."
)
ABOUT_FILE = (
    "One row a point: instance_id, point, weight; kind is must, must_not or nice, critical yes where a "
    "patient is at risk if the response fails it. A benchmark that has been rated on scales cannot be "
    "put on points."
)
EXAMPLE = dict(
    zip(
        POINT_COLUMNS,
        ("visit-1", "Says that the patient has no fever", "5", "must", "yes"),
        strict=True,
    )
)
KINDS = {"must": "Must", "must_not": "Must not", "nice": "Nice to have"}
STORED = "points-stored"
EDITED = "the table"


def show(engine: Engine, person: Person) -> None:
    """Show the points of a benchmark; let a coordinator bring them in and correct them."""
    show_text(ABOUT)
    frame.show_message(STORED)
    names = [one.name for one in study_benchmarks(person, engine)]
    if not names:
        show_text("Import responses first: points are of the instances of a benchmark.")
        return
    benchmark = st.selectbox("Benchmark", names, key="points-of")
    cases = cases_of(person, engine, benchmark)
    may_change = person.role == Role.COORDINATOR and not steering.standing(person, engine).locked
    if may_change:
        _upload(engine, person, benchmark, not cases)
    if cases:
        _cases(engine, person, benchmark, cases, may_change)


def _upload(engine: Engine, person: Person, benchmark: str, is_first: bool) -> None:
    """Take in a file of points."""
    with st.expander(
        "Bring points in from a file", key=f"points-file-{benchmark}", expanded=is_first
    ):
        show_text(ABOUT_FILE)
        body = files.template(EXAMPLE)
        st.download_button("Template of points", body, "points_template.csv", on_click="ignore")
        file = st.file_uploader("File of points", key=f"points-upload-{benchmark}")
        if file is None or not st.button("Import these points", type="primary"):
            return
        upload = Upload(file.name, file.getvalue(), "", "")
        with frame.refusals():
            rows = point_rows(TableFile(upload.source))
            added = bring_points(
                person, engine, benchmark, rows, _rubric(engine, person, benchmark), person.actor
            )
            st.session_state[STORED] = told(added, bare_of(person, engine, benchmark))
            st.rerun()


def told(added: PointsAdded, bare: list[str]) -> str:
    """Say what an import of points changed, and what has none yet."""
    text = (
        f"Points of {counted(added.added, 'instance')} stored, {added.changed:,} changed, "
        f"{added.unchanged:,} as they were."
    )
    if not bare:
        return text
    return f"{text} {counted(len(bare), 'instance')} without points yet, such as {bare[0]}."


def _cases(
    engine: Engine, person: Person, benchmark: str, cases: list[CaseRubric], may_change: bool
) -> None:
    """Show the points of one case, and let them be corrected."""
    if bare := bare_of(person, engine, benchmark):
        told_bare = (
            f"{counted(len(bare), 'instance')} of {benchmark} without points, such as {bare[0]}"
        )
        st.warning(
            on_page(f"{told_bare}: nobody can be assigned, and no jury run, before each has some.")
        )
    by_name = {case.instance_id: case for case in cases}
    case = by_name[st.selectbox("Instance", [*by_name], key=f"points-instance-{benchmark}")]
    frame.show_rows(f"Points of {case.instance_id}", _points(case.rubric))
    if may_change:
        with st.expander("Correct these points", key="points-correct"):
            _correct(engine, person, benchmark, case)


def _points(rubric: Rubric) -> list[dict[str, object]]:
    """Return points as rows to read."""
    return [
        {
            "Point": one.point,
            "Kind": KINDS[one.kind],
            "Weight": one.weight,
            "Critical": one.critical,
        }
        for one in points_of(rubric)
    ]


def _correct(engine: Engine, person: Person, benchmark: str, case: CaseRubric) -> None:
    """Offer the points as a table to write in; a version with other words is another version."""
    key = f"points-edit-{case.rubric.sha256[:12]}"
    shown = [one.model_dump() for one in points_of(case.rubric)]
    edited = st.data_editor(
        shown,
        key=key,
        num_rows="dynamic",
        hide_index=True,
        column_config={
            "point": st.column_config.TextColumn("Point", width="large", required=True),
            "weight": st.column_config.NumberColumn("Weight", min_value=0.0, required=True),
            "kind": st.column_config.SelectboxColumn("Kind", options=[*KINDS], required=True),
            "critical": st.column_config.CheckboxColumn("Critical"),
        },
    )
    if is_to_be_stored("Store these points", f"{key}-store", changed=edited != shown):
        with frame.refusals():
            rows = list(_rows(case.instance_id, edited))
            added = bring_points(
                person, engine, benchmark, rows, _rubric(engine, person, benchmark), person.actor
            )
            st.session_state[STORED] = told(added, bare_of(person, engine, benchmark))
            st.rerun()


def _rubric(engine: Engine, person: Person, benchmark: str) -> Rubric:
    """Return the rubric of points that a benchmark is on, or is to be put on."""
    views = study_benchmarks(person, engine)
    own = next(view.rubric for view in views if view.name == benchmark)
    return own if own.points else points_rubric()


def _rows(instance_id: str, edited: list[Mapping[str, Any]]) -> Iterator[PointRow]:
    """Yield what was written, read as the cells of a file are."""
    for number, row in enumerate(edited, 1):
        cells = {
            name: "" if row.get(name) is None else f"{row[name]}" for name in POINT_COLUMNS[1:]
        }
        origin = Origin(EDITED, number)
        yield PointRow(origin, instance_id, point_of(origin, cells))
