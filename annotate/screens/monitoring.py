"""The monitoring screen: whether the jury still agrees with the clinicians, and if not, why."""

import html
from concurrent.futures import Future
from importlib.resources import files

import streamlit as st
from sqlalchemy import Engine

from annotate import charts, tables, worker
from annotate.figures.shown import MonitoringAnswer, MonitoringBehind
from annotate.screens import frame, monitoring_controls, monitoring_reports
from data import queries
from data.person import Person

STYLE = (files("annotate") / "screens" / "monitoring.css").read_text("utf-8")
ABOUT = (
    "How far the jury agrees with the clinicians, period by period, and what speaks for a change."
)
NOBODY = "No juror has rated a response of this study yet."
FIRST_STEP = (
    "Run a jury, or bring in scores made elsewhere; clinicians' ratings are needed beside them."
)
NO_ANCHOR = (
    "No anchor: nothing was scored again a week or more later. A run in the Jury lab with more "
    '"Verdicts of each juror" makes one, and tells a changed model from other cases.'
)
UNKNOWN_ENDS = "A dash: no end is announced, or the model is not known."
FIRST, THEN = "annotate.figures.monitoring:answer", "annotate.figures.monitoring:behind"


def show(engine: Engine, person: Person) -> None:
    """Show the decision and agreement over time, then what was chosen, and the frozen reports."""
    frame.begin(person, "Monitoring", ABOUT)
    st.html(f"<style>{STYLE}</style>")
    if not queries.jurors_heard(person, engine):
        frame.empty(NOBODY, FIRST_STEP)
        return
    worker.wake()
    top = st.container()
    question = monitoring_controls.watched(engine, person)
    monitoring_reports.say_frozen()
    figures = st.container()  # they take a while: a report just frozen is listed before them
    monitoring_reports.show(engine, person, question.options)
    first: Future[MonitoringAnswer] = worker.ask(person, engine, FIRST, question)
    then: Future[MonitoringBehind] = worker.ask(person, engine, THEN, question)
    with top:
        found = frame.computed(first, "Agreement over time is being computed")
        if found is not None:
            _answer(found)
    with figures:
        if found is not None:
            st.html(tables.of_table(found.periods))
            _behind(then)


def _answer(found: MonitoringAnswer) -> None:
    """Show the decision, and beside each other the charts."""
    st.html(tables.of_decision(found.decision))
    jury = ", ".join(found.jury)
    st.html(f'<p class="mj-caption">Jury: {html.escape(jury)}</p>')
    with st.container(key="beside"):
        for place, one in zip(st.columns(len(found.charts)), found.charts, strict=True):
            with place:
                charts.show(one.spec, one.name, one.caption, one.alt)


def _behind(coming: "Future[MonitoringBehind]") -> None:
    """Show what a change may come from, and when the jurors' models end."""
    found = frame.computed(coming, "What speaks for what is being computed")
    if found is None:
        return
    lines = [*found.said, *([] if found.anchored else [NO_ANCHOR])]
    said = "".join(f'<p class="mj-said">{html.escape(one)}</p>' for one in lines)
    st.html(f'<h2 class="mj-part">What speaks for what</h2>{said}')
    for one in found.tables:
        st.html(tables.of_table(one))
    note = f'<p class="mj-caption">{html.escape(UNKNOWN_ENDS)}</p>'
    st.html(tables.of_table(found.jurors) + note)
