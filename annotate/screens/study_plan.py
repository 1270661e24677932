"""The plan of a study: how many responses and clinicians it needs, and what it can show."""

from concurrent.futures import Future
from typing import TYPE_CHECKING

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, tables
from annotate.screens import frame
from annotate.screens.frame import heading, paragraph
from calibration.tables.numbers import PAGE
from calibration.tables.planning import panel_size_table, plan_tables
from calibration.tables.spec import ICC_WORDS
from calibration.values import PlanOptions, PlanQuestion
from data.person import Person
from data.study import steering

if TYPE_CHECKING:
    from medjury.services.planning import StudyPlan

PLANNED = "medjury.services.planning:planned"
ASKED = "plan-asked"
ABOUT = (
    "How many responses, rated by how many clinicians, give an interval of the agreement that is narrow "
    f"enough. {ICC_WORDS} Plan before you import, from an ICC that similar studies report; or later, "
    "from the ratings of this study as a pilot."
)
ASSUMED, PILOT = "An expected ICC", "The ratings of this study"
WIDTH = "From end to end. With 0.3 an ICC of 0.6 may lie between about 0.45 and 0.75."
ASSURANCE = "Share of studies planned like this whose interval is that narrow."
MARGIN = "How much worse than a clinician the jury may be. 0: not planned for."
PROTOCOL = "Sentences for a protocol, and what the plan assumes"
RELIABILITY = "How reliable the mean of several raters is"
NOT_KNOWN = "0: not known."


def show(engine: Engine, person: Person) -> None:
    """Ask what the study is to reach, and show what that takes."""
    st.html(heading("Plan") + paragraph(ABOUT))
    question = _ask(engine, person)
    if question is not None:
        st.session_state[ASKED] = question
    asked: PlanQuestion | None = st.session_state.get(ASKED)
    if asked is None:
        return
    coming: Future[StudyPlan] = compute.ask(person, engine, PLANNED, asked, "long")
    plan = frame.computed(coming, "How many responses and clinicians it takes is being worked out")
    if plan is not None:
        st.html("".join(map(tables.of_table, plan_tables(plan.rows, asked.options, PAGE))))
        with st.expander(PROTOCOL):
            st.html("".join(map(paragraph, plan.told)))
        with st.expander(RELIABILITY):
            st.html(tables.of_table(panel_size_table(plan.reliability, PAGE)))


def _ask(engine: Engine, person: Person) -> PlanQuestion | None:
    """Ask for an ICC or a pilot, and for what is wanted; None until the button is pressed."""
    names = [material.view.name for material in steering.materials(person, engine)]
    sources = [ASSUMED, PILOT] if names else [ASSUMED]
    source = st.radio("Plan from", sources, horizontal=True, key="plan-from")
    with st.form("plan", border=False):
        first, second = st.columns(4, vertical_alignment="bottom"), st.columns(4)
        icc = benchmark = None
        if source == PILOT:
            every = [None, *names] if len(names) > 1 else names
            benchmark = first[0].selectbox("Pilot", every, format_func=_named)
        else:
            icc = first[0].number_input("Expected ICC(C,2)", 0.0, 0.99, 0.6, 0.05)
        width = first[1].number_input(
            "Width of the 95 % interval", 0.01, 2.0, 0.3, 0.05, help=WIDTH
        )
        per_response = first[2].number_input("Clinicians per response", 1, 50, 2)
        percent = first[3].number_input("Assurance in %", 50, 99, 80, 5, help=ASSURANCE)
        clinicians = second[0].number_input("Clinicians available", 0, 500, 0, help=NOT_KNOWN)
        minutes = second[1].number_input(
            "Minutes per reading", 0.0, 600.0, 0.0, 0.5, help=NOT_KNOWN
        )
        margin = second[2].number_input("Margin in ICC", 0.0, 0.99, 0.0, 0.05, help=MARGIN)
        pressed = st.form_submit_button("Make the plan", type="primary")
    if not pressed or _refused(per_response, clinicians, margin):
        return None
    options = PlanOptions(
        width=round(width, 4),
        per_response=per_response,
        assurance=percent / 100,
        clinicians=clinicians or None,
        minutes=minutes or None,
        margin=round(margin, 4) or None,
    )
    return PlanQuestion(options, None if icc is None else round(icc, 4), benchmark)


def _refused(per_response: int, clinicians: int, margin: float) -> bool:
    """Say what cannot be planned, if it cannot."""
    if clinicians and clinicians < per_response:
        st.html(frame.refused(f"{per_response} different clinicians rate a response."))
    elif margin and per_response < 2:
        st.html(frame.refused("A margin takes 2 clinicians per response or more."))
    else:
        return False
    return True


def _named(benchmark: str | None) -> str:
    return benchmark or "all combined"
