"""The study screen: what it is made of, how far it is, and what a coordinator does to it."""

import html
from concurrent.futures import Future
from importlib.resources import files
from pathlib import Path

import streamlit as st
from sqlalchemy import Engine

from annotate import tables, worker
from annotate.figures.shown import AgreementQuestion
from annotate.screens import (
    frame,
    study_design,
    study_import,
    study_material,
    study_progress,
    study_protocol,
    study_record,
)
from annotate.screens.markup import notice
from calibration.decision import Decision
from calibration.values import AnalysisOptions
from data import queries
from data.person import Person
from data.queries import Material, Standing
from data.schema import Role

STYLE = (files("annotate") / "screens" / "study.css").read_text("utf-8")
ABOUT = "What is rated, by whom, how far they are, and what the record says. Database: {}"
PARTS = {
    "Progress": study_progress.show,
    "Material": study_material.show,
    "Protocol": study_protocol.show,
    "Import": study_import.show,
    "Design": study_design.show,
    "Record": study_record.show,
}
ACTS = ("Import", "Design")  # of a coordinator only
NONE_YET = "This study has no responses yet."
FIRST = {
    Role.COORDINATOR: "Bring in responses under Import, then give them to clinicians under Design.",
    Role.RESEARCHER: "A coordinator brings them in under Import.",
}


def show(engine: Engine, person: Person) -> None:
    """Show the study's standing, and the part of it that is chosen."""
    materials, standing = queries.materials(person, engine), queries.standing(person, engine)
    frame.begin(person, "Study", ABOUT.format(Path(engine.url.database or "").name))
    st.html(f"<style>{STYLE}</style>")
    st.html(_facts(materials, standing, queries.workloads(person, engine)))
    if standing.simulated:
        st.html(notice("Some raters of this study are simulated."))
    if standing.locked:
        told = "nobody rates, imports or assigns until it is reopened; reading goes on."
        st.html(notice(f"Locked since {standing.locked}: {told}"))
    answer = st.container()
    chosen = _chosen(person)
    if not materials and chosen in ("Progress", "Material", "Design"):
        frame.empty(NONE_YET, FIRST[person.role])
        return
    PARTS[chosen](engine, person)
    if materials:
        with answer:  # last: nothing of the page waits for it
            _decision(engine, person)


def _decision(engine: Engine, person: Person) -> None:
    """Show what may be said of the jury so far, and what to do next."""
    question = AgreementQuestion(AnalysisOptions())
    coming: Future[Decision] = worker.ask(
        person, engine, "annotate.figures.agreement:decision", question
    )
    found = frame.computed(coming, "Does the jury agree? It is being computed")
    if found is not None:
        st.html(tables.of_decision(found))


def _chosen(person: Person) -> str:
    """Ask which part; it stands in the URL, so that it can be shared."""
    mine = [one for one in PARTS if person.role == Role.COORDINATOR or one not in ACTS]
    chosen = st.segmented_control(
        "Part of the study",
        mine,
        default=mine[0],
        required=True,
        key="part",
        bind="query-params",
        label_visibility="collapsed",
    )
    return chosen if chosen in mine else mine[0]


def _facts(
    materials: list[Material],
    standing: Standing,
    workloads: list[queries.Workload],
) -> str:
    """Return the figures at the top."""
    done, total = sum(one.done for one in workloads), sum(one.total for one in workloads)
    views = [one.view for one in materials]
    facts = {
        "Benchmarks": f"{len(views):,}",
        "Instances": f"{sum(one.instances for one in views):,}",
        "Responses": f"{sum(one.responses for one in views):,}",
        "Clinicians": f"{len(workloads):,}",
        "Readings done": f"{done:,} of {total:,}" if total else "none assigned",
        "State": "locked" if standing.locked else "open",
    }
    told = "".join(
        f"<div><dt>{name}</dt><dd>{html.escape(value)}</dd></div>" for name, value in facts.items()
    )
    return f'<dl class="mj-facts">{told}</dl>'
