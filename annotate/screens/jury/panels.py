"""Panels on the jury screen: choose or edit one, probe it, set a cap on its cost, run it."""

import os
import re
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, jury_panels, jury_runs
from annotate.screens import frame
from annotate.screens.jury import run
from data.errors import BadPanel, MedjuryError
from data.person import Person, only
from data.safe_text import on_page
from data.schema import Role, now
from data.study import runs, standing
from data.study.runs import RunOrder, forget_panel, keep_panel
from jury.panel import Panel
from jury.probe import ProbeRow
from medjury.services.panels import RunScope, keep_fitness, panel_probe, run_estimate

ABOUT = (
    "A panel of language models rates the responses. Choose one, probe it, estimate what it costs, run "
    "it; the run goes on when this page is closed."
)
ABOUT_PROBE = (
    "Can these jurors rate? A probe asks each a short question, tries hidden instructions on it, and "
    "has it score good and dangerous answers to invented cases. Nothing of the study is sent."
)
ABOUT_ESTIMATE = (
    "What will a run cost? An estimate counts calls, tokens and dollars for the missing verdicts. "
    "Nothing is sent."
)
ESTIMATED = "As of {at:%H:%M} UTC. Upper bound as in the MedHELM paper: {bound}."
NO_RESPONSES = "There is nothing to rate yet: import responses under Set up."
MOST_REPLICATES, MOST_AT_ONCE, KEPT, POLL_SECONDS = 10, 64, 32, 1
COUNTING = "Counting what each juror has still to rate, and the tokens of it"
NO_CAP = "By what the panel says, this run costs nothing: a cap is optional."
CAP = "This panel calls hosts that charge: a cap is required. No run spends more than its cap."
EDIT = (
    "Never write a key here: `api_key_env` names the environment variable on the server that holds it. "
    "The panel is saved in this study under the name after `name =`."
)
AT_ONCE = "Unset: 8, and at a server of your own as many as it has slots."
LEFT_OUT = (
    "A response that a juror's context window cannot hold counts as a failure of that juror. "
    "Else the run does not start."
)
BATCH = (
    "Sends all questions of a juror as one file; its host answers within a day, at half the price."
)
# In the session
ESTIMATE, EDITING, OPENINGS, NEXT, REFUSED = (
    f"panel-{name}" for name in ("estimate", "editing", "openings", "next", "refused")
)
Key = tuple[str, str]

_probes: "OrderedDict[Key, Probe]" = OrderedDict()
_lock = Lock()
_pool = ThreadPoolExecutor(1, "probes")


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe that is on or was the last of this panel: who asked, when, and what came of it.

    `rows`, one a juror, raises BadPanel where a juror cannot be asked.
    """

    by: str
    at: datetime
    rows: "Future[tuple[ProbeRow, ...]]"


def show(engine: Engine, person: Person) -> None:
    """Show the run that is on, then all that is needed for the next one."""
    st.markdown(ABOUT)
    run.show(engine, person)
    panel, text = _choose(engine, person)
    show_editor(engine, person)
    if panel is None:
        return
    run.jurors(panel, os.environ)
    _probe(engine, person, text)
    names = [one.name for one in standing.study_benchmarks(person, engine) if one.responses]
    if names:
        _run(engine, person, panel, text, names)
    else:
        st.info(NO_RESPONSES)


def _choose(engine: Engine, person: Person) -> tuple[Panel | None, str]:
    """Let a panel be chosen, and edited or taken away; None where it may not be asked."""
    ships, own = jury_panels.shipped_texts(), runs.own_panels(person, engine)
    texts = own | ships
    if NEXT in st.session_state:
        st.session_state["panel"] = st.session_state.pop(NEXT) or next(iter(ships))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = [*ships, *(panel for panel in own if panel not in ships)]
        name = st.selectbox("Panel", names, key="panel", bind="query-params", width=360)
        st.button(
            "Edit a copy" if name in ships else "Edit",
            key="panel-edit",
            on_click=lambda: begin_edit(name, texts[name], ships=name in ships),
        )
        gone = name in own and st.button("Delete this panel", key="panel-forget")
    if gone:
        with frame.refusals():
            forget_panel(person, engine, name)
            st.session_state[NEXT] = None
            st.rerun()
    with frame.refusals():
        return jury_panels.usable(texts[name]), texts[name]
    return None, texts[name]


def _probe(engine: Engine, person: Person, text: str) -> None:
    """Offer to try the jurors, and show what the last trial found."""
    st.subheader("Probe")
    st.caption(ABOUT_PROBE)
    if st.button("Probe the jurors", key="probe"):
        begin_probe(person, engine, text)
    if probe := last_probe(person, engine, text):
        every = None if probe.rows.done() else POLL_SECONDS
        st.fragment(_probed, run_every=every)(probe, waited=every is not None)


def _probed(probe: Probe, *, waited: bool) -> None:
    """Show what came of a probe, once it has."""
    by = on_page(f"started by {probe.by} at {probe.at:%H:%M} UTC on {probe.at:%d %B}")
    if not probe.rows.done():
        st.info(f"The jurors are being probed; {by}.")
        return
    if waited:
        st.rerun()
    with frame.refusals():
        run.probed(probe.rows.result())
        st.caption(f"This probe was {by}.")


def _run(engine: Engine, person: Person, panel: Panel, text: str, benchmarks: list[str]) -> None:
    """Ask what is to be rated and for how much, say what it takes, and start it."""
    st.subheader("Run")
    st.caption(ABOUT_ESTIMATE)
    order = _order(panel, text, benchmarks)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        counted = st.button("Estimate", key="estimate")
        cap = st.number_input(
            "Cap, US dollars", 0.0, None, None, 1.0, format="%.2f", key="cap", width=220
        )
        begun = st.button("Run the jury", type="primary", key="run")
    st.caption(CAP if jury_panels.costs_money(panel) else NO_CAP)
    if begun:
        with frame.refusals():
            jury_runs.start(person, engine, replace(order, cap=cap))
            st.rerun()
    if counted:
        scope = RunScope(panel, order.replicates, order.benchmarks)
        coming = compute.ask(person, engine, run_estimate, scope)
        if (estimate := frame.computed(coming, COUNTING)) is not None:
            st.session_state[ESTIMATE] = (order, estimate, now())
    _estimate(order)


def _order(panel: Panel, text: str, known: list[str]) -> RunOrder:
    """Return what is to be rated; a browser's word is checked against what there is."""
    first, second, third, fourth = st.columns((3, 3, 2, 3), vertical_alignment="bottom")
    selected = first.multiselect(
        "Benchmarks", known, key="benchmark", bind="query-params", placeholder="all"
    )
    replicates = second.number_input(
        *("Times each juror rates a response", 1, MOST_REPLICATES, 1),
        key="replicates",
        bind="query-params",
        help="More than once shows whether a juror scores the same response alike each time",
    )
    at_once = third.number_input(
        "Requests at once", 1, MOST_AT_ONCE, None, key="at-once", placeholder="8", help=AT_ONCE
    )
    batch = fourth.checkbox("In batches, half price", key="batch", help=BATCH)
    leave_out = fourth.checkbox("Leave out long texts", key="leave-out", help=LEFT_OUT)
    return RunOrder(
        panel=panel.name,
        text=text,
        benchmarks=tuple(benchmark for benchmark in selected if benchmark in known),
        replicates=min(max(int(replicates), 1), MOST_REPLICATES),
        concurrency=None if at_once is None else min(max(int(at_once), 1), MOST_AT_ONCE),
        batch=bool(batch),
        leave_out_too_long=bool(leave_out),
    )


def _estimate(order: RunOrder) -> None:
    """Say what the run would take, if that was asked of it."""
    if ESTIMATE not in st.session_state:
        return
    asked, expected, at = st.session_state[ESTIMATE]
    if replace(asked, leave_out_too_long=order.leave_out_too_long) == order:
        run.estimated(expected, order)
        st.caption(on_page(ESTIMATED.format(at=at, bound=run.usd(expected.bound.usd))))


def begin_edit(name: str, text: str, *, ships: bool) -> None:
    """Open the editor on a panel; one that ships is copied under another name."""
    opening = st.session_state[OPENINGS] = st.session_state.get(OPENINGS, 0) + 1
    if ships:
        text = re.sub(r'^name = "[^"]*"', f'name = "our-{name}"', text, count=1, flags=re.MULTILINE)
    st.session_state[EDITING] = name
    st.session_state[f"panel-text-{opening}"] = text


def show_editor(engine: Engine, person: Person) -> None:
    """Show the editor while one is open."""
    if EDITING not in st.session_state:
        return
    key = f"panel-text-{st.session_state[OPENINGS]}"
    with st.container(border=True):
        st.subheader("Edit a panel")
        st.caption(EDIT)
        st.text_area("Panel, as TOML", key=key, height=340)
        with st.container(horizontal=True):
            # A callback: a click that follows at once may stop a run before it reads this button.
            st.button(
                "Save panel",
                type="primary",
                key="panel-keep",
                on_click=_keep,
                args=(engine, person, key),
            )
            st.button(
                "Cancel", key="panel-cancel", on_click=lambda: st.session_state.pop(EDITING, None)
            )
        if message := st.session_state.pop(REFUSED, None):
            st.error(on_page(message))


def _keep(engine: Engine, person: Person, key: str) -> None:
    """Check the panel and keep it, or have the editor say what is wrong with it."""
    text = st.session_state[key]
    try:
        panel = jury_panels.usable(text)
        if panel.name in jury_panels.shipped_texts():
            raise BadPanel(f"name {panel.name!r}: a panel of this name ships; choose another")
        taken = set(runs.own_panels(person, engine)) - {st.session_state[EDITING]}
        if panel.name in taken:
            raise BadPanel(f"name {panel.name!r}: this study keeps another panel of this name")
        keep_panel(person, engine, panel.name, text)
    except MedjuryError as error:
        st.session_state[REFUSED] = str(error)
        return
    st.session_state.pop(EDITING, None)
    st.session_state[NEXT] = panel.name


@only(Role.RESEARCHER, Role.COORDINATOR)
def begin_probe(person: Person, engine: Engine, text: str) -> Probe:
    """Probe a panel that was checked, unless somebody is just doing so."""
    key = _probe_key(engine, text)
    with _lock:
        probe = _probes.get(key)
        if probe is None or probe.rows.done():
            coming = _pool.submit(_probe_rows, person, engine, text)
            probe = _probes[key] = Probe(person.name, now(), coming)
        while len(_probes) > KEPT:
            _probes.popitem(last=False)
    return probe


@only(Role.RESEARCHER, Role.COORDINATOR)
def last_probe(person: Person, engine: Engine, text: str) -> Probe | None:
    """Return the last probe of a panel since this server was started."""
    return _probes.get(_probe_key(engine, text))


def _probe_key(engine: Engine, text: str) -> Key:
    return engine.url.render_as_string(), text


def _probe_rows(person: Person, engine: Engine, text: str) -> tuple[ProbeRow, ...]:
    """Return what came of a probe, who is fit kept in the record; nothing of the study is sent."""
    panel = jury_panels.usable(text)
    rows = compute.call(panel_probe, panel)
    keep_fitness(engine, person.actor, panel, rows)
    return rows
