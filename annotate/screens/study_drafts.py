"""Drafts of points on the study screen: what a juror would take, started with a cap, and what it cost."""

from dataclasses import dataclass, replace
from datetime import datetime

import streamlit as st
from sqlalchemy import Engine

from annotate import jury_panels, jury_runs, worker
from annotate.screens import frame, lab_run
from annotate.screens.frame import Cell, paragraph, table
from calibration.messages.form import counted
from data import queries
from data.person import Person
from data.schema import now
from data.store.jury_runs import RunOrder
from jury.cost import JurorEstimate
from jury.panel import Panel
from medjury.services.point_drafts import DraftScope, drafts_estimate

ESTIMATE = "drafts-estimate"  # in the session: what was counted last
HEADS = ("Juror", "Instances", "Tokens in", "USD, likely", "USD, at most")
ABOUT = (
    "A juror of a panel writes points for each instance that has neither points nor a draft. It reads the source, "
    "the task and the reference, never a response. Its drafts count nowhere until you have corrected and "
    "stored them."
)
PUTS_ON = (
    "The first draft puts {} on points: nobody can be assigned, and no jury run, before each instance has "
    "points that people stored."
)
NO_CAP = "By what the panel says, this costs nothing: a cap is optional."
CAP = "This panel calls hosts that charge: a cap is required. Drafting never spends more than its cap."
UNCOUNTED = "What will it cost? An estimate counts calls, tokens and dollars. Nothing is sent."


@dataclass(frozen=True, slots=True)
class _Counted:
    """What was counted, of what, and when."""

    scope: DraftScope
    row: JurorEstimate
    at: datetime


def show(engine: Engine, person: Person, benchmark: str, *, is_on_points: bool) -> None:
    """Show the drafting that is on or was the last; let a coordinator start another."""
    st.html(frame.style("lab.css"))
    lab_run.show(engine, person, of="draft")
    with st.expander("Ask a model for drafts", key=f"drafts-{benchmark}"):
        st.html(paragraph(ABOUT) + ("" if is_on_points else paragraph(PUTS_ON.format(benchmark))))
        chosen = _chosen(engine, person, benchmark)
        if chosen is not None:
            _ask(engine, person, *chosen)


def _chosen(engine: Engine, person: Person, benchmark: str) -> tuple[DraftScope, str] | None:
    """Ask for panel and juror; return them with the panel's text, None if they may not be asked."""
    texts = queries.own_panels(person, engine) | jury_panels.shipped_texts()
    first, second = st.columns(2)
    name = first.selectbox("Panel", [*texts], key="drafts-panel")
    with frame.refusals():
        panel = jury_panels.usable(texts[name])
        jurors = [juror.name for juror in panel.juror]
        juror = second.selectbox("Juror that drafts", jurors, key=f"drafts-juror-{name}")
        return DraftScope(panel, juror, benchmark), texts[name]
    return None


def _ask(engine: Engine, person: Person, scope: DraftScope, text: str) -> None:
    """Say where texts go, count what it would take, and start it."""
    costs = jury_panels.costs_money(scope.panel)
    st.html(paragraph(_sent(scope.panel, scope.juror)))
    with st.container(key="drafts-start", horizontal=True, vertical_alignment="bottom"):
        counting = st.button("Estimate", key="drafts-estimate-button")
        cap = st.number_input(
            *("Cap for drafting, US dollars", 0.0),
            value=None,
            step=1.0,
            format="%.2f",
            key="drafts-cap",
        )
        begun = st.button("Ask for drafts", type="primary", key="drafts-ask")
    st.html(paragraph(CAP if costs else NO_CAP))
    if begun:
        order = RunOrder(scope.panel.name, text, (scope.benchmark,), task="draft")
        with frame.refusals():
            jury_runs.start(person, engine, replace(order, juror=scope.juror, cap=cap))
            st.rerun()
    if counting:
        coming = worker.ask(person, engine, drafts_estimate, scope)
        with frame.refusals(), st.spinner("Counting what is missing"):
            st.session_state[ESTIMATE] = _Counted(scope, coming.result(), now())
    _estimate(scope)


def _estimate(scope: DraftScope) -> None:
    """Say what drafting would take, if that was asked."""
    last: _Counted | None = st.session_state.get(ESTIMATE)
    if last is None or last.scope != scope:
        st.html(paragraph(UNCOUNTED))
        return
    row = last.row
    cells: list[Cell] = [
        row.juror,
        row.calls,
        row.tokens_in,
        *map(lab_run.usd, (row.usd_likely, row.usd_most)),
    ]
    line = f"As of {last.at:%H:%M} UTC: {counted(row.calls, 'instance')} with neither points nor a draft."
    st.html(table("Estimate of drafting", HEADS, [cells]) + paragraph(line))


def _sent(panel: Panel, name: str) -> str:
    """Return where the texts of cases go."""
    juror = next(one for one in panel.juror if one.name == name)
    if juror.simulated:
        return "No text leaves this machine; simulated drafts say nothing of the case."
    return f"Sources, tasks and references go to {juror.place}."
