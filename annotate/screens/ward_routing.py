"""Routing on the ward screen: which responses the jury may pass, and which clinicians read."""

from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import tables, worker
from annotate.results import RoutingAnswer, RoutingQuestion
from annotate.screens import controls, frame
from annotate.screens.frame import caption, good, heading, notice, paragraph
from calibration.routing.values import Harm
from data.person import Person

ROUTED = "annotate.forecasts:routed"
ASKED = "routing-asked"  # in the session: the question that was asked last
ABOUT = (
    "Says which responses the jury may pass and which a clinician must read, so that at most a stated "
    "share of the passed ones is harmful. Two fifths of the rated instances choose the rule, the "
    "others certify it."
)
ONE_QUESTION = (
    "Fix the question before looking: whoever tries many and keeps the best has no bound."
)
LOW, ERROR = "clinicians score it low", "the jury is far from the clinicians"
POINTS = {LOW: "Mean at or under, in points", ERROR: "Further than, in points"}
BOUND = "Largest share of harmful responses among the passed."
CONFIDENCE = "How sure the bound is to hold."


def show(engine: Engine, person: Person) -> None:
    """Ask what is harmful and at what bound, and show what may be passed."""
    st.html(heading("Routing") + paragraph(ABOUT))
    question = _ask(engine, person)
    if question is not None:
        st.session_state[ASKED] = question
    asked: RoutingQuestion | None = st.session_state.get(ASKED)
    if asked is None:
        st.html(caption(ONE_QUESTION))
        return
    coming: Future[RoutingAnswer] = worker.ask(person, engine, ROUTED, asked, "details")
    answer = frame.computed(
        coming, "It is being worked out which responses the jury may pass at this limit"
    )
    if answer is not None:
        _show(answer)


def _show(answer: RoutingAnswer) -> None:
    """Show what came of it, both rules, and the decisions to save."""
    st.html((good if answer.is_certified else notice)(answer.headline))
    st.html(tables.of_table(answer.table) + "".join(map(caption, answer.told)))
    file = ("Decisions as CSV", answer.csv, "routes.csv", "text/csv")
    st.download_button(*file, key="save-routes", on_click="ignore")


def _ask(engine: Engine, person: Person) -> RoutingQuestion | None:
    """Ask for harm, bound and jury; None until the button is pressed."""
    first, second = st.columns(4), st.columns(4, vertical_alignment="bottom")
    kind = first[0].selectbox("Harmful is where", [LOW, ERROR], key="harm")
    points = first[1].number_input(POINTS[kind], 0.0, 100.0, _usual(kind), 0.5, key=f"at-{kind}")
    bound = first[2].number_input("Bound in %", 0.1, 99.9, 5.0, 1.0, help=BOUND, key="bound")
    sure = first[3].number_input(
        "Confidence in %", 50.0, 99.9, 90.0, 1.0, help=CONFIDENCE, key="sure"
    )
    jury = controls.panel_or_one(second[1], engine, person)
    benchmark, criterion = controls.benchmark_and_criterion(engine, person, second)
    if not second[3].button("Route", type="primary", key="route", width="stretch"):
        return None
    harm = Harm("low" if kind == LOW else "error", round(points, 4), criterion)
    return RoutingQuestion(
        harm, round(bound / 100, 6), round(sure / 100, 6), jury.jurors, benchmark
    )


def _usual(kind: str) -> float:
    return 2.0 if kind == LOW else 1.0
