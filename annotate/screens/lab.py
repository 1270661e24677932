"""The jury lab: choose a panel, try it, say what it may cost, let it rate, and watch it."""

import os
from dataclasses import dataclass, replace
from importlib.resources import files

import streamlit as st
from sqlalchemy import Engine

from annotate import jury_panels, jury_probes, jury_runs, worker
from annotate.screens import frame, jury_tables, lab_edit, lab_run
from annotate.screens.markup import heading, notice, refused, said
from data import queries
from data.errors import BadInput, MedjuryError
from data.person import Person
from data.schema import now
from data.store.jury_runs import RunOrder
from jury.panel import Panel
from medjury.services.jury_lab import RunScope, run_estimate

STYLE = (files("annotate") / "screens" / "lab.css").read_text("utf-8")
ABOUT = "Panels of language models that rate the same responses as the clinicians."
MOST_REPLICATES, MOST_AT_ONCE = 10, 64
ESTIMATE = "lab-estimate"
POLL_SECONDS = 1
NO_CAP = "Nothing here costs money, as far as the panel says: a cap is optional."
CAP = "This panel asks hosts that cost money: a cap is required. No run spends more than it."


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The panel on the table: its name, its text, what it says, and whether it ships."""

    name: str
    text: str
    panel: Panel
    ships: bool


def show(engine: Engine, person: Person) -> None:
    """Show the run that is on, then all that is needed for the next one."""
    frame.begin(person, "Jury lab", ABOUT)
    st.html(f"<style>{STYLE}</style>")
    benchmarks = [one for one in queries.study_benchmarks(person, engine) if one.responses]
    lab_run.show(engine, person)
    chosen = _choose(engine, person)
    lab_edit.show(engine, person)
    if chosen is None:
        return
    _jurors(chosen)
    _probe(engine, person, chosen)
    if not benchmarks:
        frame.empty("There is nothing to rate yet.", "A coordinator brings responses in first.")
        return
    _run(engine, person, chosen, [one.name for one in benchmarks])


def _choose(engine: Engine, person: Person) -> _Chosen | None:
    """Let a panel be chosen, and edited or taken away."""
    ships, own = jury_panels.shipped_texts(), queries.own_panels(person, engine)
    texts = own | ships
    if lab_edit.NEXT in st.session_state:
        st.session_state["panel"] = st.session_state.pop(lab_edit.NEXT) or next(iter(ships))
    with st.container(key="lab-choice", horizontal=True, vertical_alignment="bottom"):
        names = [*ships, *(one for one in own if one not in ships)]
        name = st.selectbox("Panel", names, key="panel", bind="query-params")
        st.button(
            "Edit a copy" if name in ships else "Edit",
            key="panel-edit",
            on_click=lambda: lab_edit.begin(name, texts[name], ships=name in ships),
        )
        gone = name in own and st.button("Forget", key="panel-forget")
    if gone:
        lab_edit.forget(engine, person, name)
    try:
        return _Chosen(name, texts[name], jury_panels.usable(texts[name]), name in ships)
    except BadInput as error:
        st.html(refused(str(error)))
        return None


def _jurors(chosen: _Chosen) -> None:
    """Show who sits on the panel, and what is to be known of them."""
    hosts = chosen.panel.hosts()
    where = f"A run sends texts to {', '.join(hosts)}." if hosts else "No text leaves this machine."
    lines = jury_tables.notices(chosen.panel, now().date())
    known = notice("\n".join(lines)) if lines else ""
    st.html(jury_tables.jurors_table(chosen.panel, os.environ) + said(where) + known)


def _probe(engine: Engine, person: Person, chosen: _Chosen) -> None:
    """Offer to try the jurors, and show what the last trial found."""
    with st.container(key="lab-probe", horizontal=True, vertical_alignment="center"):
        st.html(heading("Probe"))
        if st.button("Probe the jurors", key="probe"):
            jury_probes.probe(person, engine, chosen.text)
    probe = jury_probes.last_probe(person, engine, chosen.text)
    if probe is None:
        st.html(
            said(
                "Asks each juror one tiny question and tries hidden instructions on it. Nothing of the study is sent."
            )
        )
        return
    every = None if probe.rows.done() else POLL_SECONDS
    st.fragment(_probed, run_every=every)(probe, waited=every is not None)


def _probed(probe: jury_probes.Probe, *, waited: bool) -> None:
    """Show what came of a probe, once it has."""
    if not probe.rows.done():
        st.html(said(f"{probe.by} asked at {probe.at:%H:%M} UTC; the jurors are being probed."))
        return
    if waited:
        st.rerun()
    try:
        rows = probe.rows.result()
    except MedjuryError as error:
        st.html(refused(str(error)))
        return
    reasons = [notice(one) for one in jury_tables.probe_reasons(rows)]
    asked = said(f"Asked by {probe.by} at {probe.at:%H:%M} UTC on {probe.at:%d %B}.")
    st.html(jury_tables.probe_table(rows) + "".join(reasons) + asked)


def _run(engine: Engine, person: Person, chosen: _Chosen, benchmarks: list[str]) -> None:
    """Ask what is to be rated and for how much, tell what it takes, and start it."""
    st.html(heading("Run"))
    order = _order(chosen, benchmarks)
    with st.container(key="lab-start", horizontal=True, vertical_alignment="bottom"):
        counted = st.button("Estimate", key="estimate")
        cap = st.number_input(
            "Cap, US dollars", min_value=0.0, value=None, step=1.0, format="%.2f", key="cap"
        )
        begun = st.button("Run the jury", type="primary", key="run")
    st.html(said(CAP if jury_panels.costs_money(chosen.panel) else NO_CAP))
    if begun:
        _start(engine, person, order, cap)
    if counted:
        _count(engine, person, order)
    _estimate(order)


def _start(engine: Engine, person: Person, order: RunOrder, cap: float | None) -> None:
    """Start the run, or say why not."""
    try:
        jury_runs.start(person, engine, replace(order, cap=cap))
    except MedjuryError as error:
        st.html(refused(str(error)))
        return
    st.rerun()


def _order(chosen: _Chosen, known: list[str]) -> RunOrder:
    """Return what is to be rated; a browser's word is checked against what there is."""
    first, second, third, fourth = st.columns((4, 2, 2, 3), vertical_alignment="bottom")
    wanted = first.multiselect(
        "Benchmarks", known, key="benchmark", bind="query-params", placeholder="all"
    )
    replicates = second.number_input(
        "Verdicts of each juror", 1, MOST_REPLICATES, 1, key="replicates", bind="query-params"
    )
    at_once = third.number_input("Requests at once", 1, MOST_AT_ONCE, 8, key="at-once")
    batch = fourth.checkbox("In batches, half price", key="batch")
    return RunOrder(
        panel=chosen.panel.name,
        text=chosen.text,
        benchmarks=tuple(one for one in wanted if one in known),
        replicates=min(max(int(replicates), 1), MOST_REPLICATES),
        concurrency=min(max(int(at_once), 1), MOST_AT_ONCE),
        batch=bool(batch),
    )


def _count(engine: Engine, person: Person, order: RunOrder) -> None:
    """Ask what the run would take, and keep the answer for this session."""
    scope = RunScope(jury_panels.usable(order.text), order.replicates, order.benchmarks)
    coming = worker.ask(person, engine, run_estimate, scope)
    try:
        with st.spinner("Counting what is missing"):
            st.session_state[ESTIMATE] = (order, coming.result(), now())
    except MedjuryError as error:
        st.html(refused(str(error)))


def _estimate(order: RunOrder) -> None:
    """Say what the run would take, if that was asked."""
    known = st.session_state.get(ESTIMATE)
    if known is None or known[0] != order:
        st.html(
            said("An estimate counts calls, tokens and money of what is missing. Nothing is sent.")
        )
        return
    _, expected, at = known
    paper = jury_tables.usd(expected.bound.usd)
    st.html(
        jury_tables.estimate_table(expected)
        + said(
            f"As of {at:%H:%M} UTC. Likely: 100 tokens of answer a criterion; at most: every answer "
            f"as long as allowed. The MedHELM paper's upper bound: {paper}. Own family: responses "
            "written by the juror's own family."
        )
    )
