"""The jury lab: choose or edit a panel, probe it, set a cap on its cost, run it, and watch the run."""

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
from annotate.screens import frame, lab_run
from annotate.screens.frame import heading, notice, paragraph
from data.errors import BadPanel, MedjuryError
from data.person import Person, only
from data.schema import Role, now
from data.study import runs, standing, steering
from data.study.runs import RunOrder, forget_panel, keep_panel
from jury.panel import Panel
from jury.probe import ProbeRow
from jury.providers.registry import PROVIDERS
from medjury.services.panels import RunScope, keep_fitness, panel_probe, run_estimate

ABOUT = "Panels of language models that rate the same responses as the clinicians."
MOST_REPLICATES, MOST_AT_ONCE = 10, 64
ESTIMATE = "lab-estimate"
COUNTING = "Counting what each juror has still to rate, and the tokens of it"
POLL_SECONDS = 1
NO_CAP = "By what the panel says, this run costs nothing: a cap is optional."
CAP = "This panel calls hosts that charge: a cap is required. No run spends more than its cap."
EDITING, OPENINGS, NEXT = "lab-editing", "lab-openings", "lab-next"
FIELDS = {
    "name": "Name in tables",
    "model": "Model",
    "family": "Family",
    "base_url": "Address (base_url)",
    "api_key_env": "Environment variable with the key",
    "temperature": "Temperature (optional)",
    "max_tokens": "Largest answer, in tokens",
    "context_window": "Context window, in tokens (optional)",
    "usd_per_million_in": "US dollars per million input tokens (optional)",
    "usd_per_million_out": "US dollars per million output tokens (optional)",
}
TOLD = (
    '<p class="mj-said">Never write a key here: <b>api_key_env</b> names the environment variable '
    "on the server that holds it. The panel is saved in this study under the name after <b>name "
    "=</b>.</p>"
)
LEAVE_OUT = "Leave out long texts"
AT_ONCE = "Unset: 8, and at a server of your own as many as it has slots."
LEFT_OUT = (
    "A response that a juror's context window cannot hold counts as a failure of that juror. "
    "Else the run does not start."
)
KEPT = 32
REFUSED = "panel-refused"
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


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The chosen panel: its name, its text, its content, and whether it ships with medjury."""

    name: str
    text: str
    panel: Panel
    ships: bool


def show(engine: Engine, person: Person) -> None:
    """Show the run that is on, then all that is needed for the next one."""
    frame.begin(person, "Jury lab", ABOUT, "lab.css")
    frame.say_simulated(steering.standing(person, engine))
    benchmarks = [
        benchmark for benchmark in standing.study_benchmarks(person, engine) if benchmark.responses
    ]
    lab_run.show(engine, person)
    chosen = _choose(engine, person)
    show_editor(engine, person)
    if chosen is None:
        return
    _jurors(chosen)
    _probe(engine, person, chosen)
    if not benchmarks:
        frame.empty("There is nothing to rate yet.", "A coordinator imports responses first.")
        return
    names = [benchmark.name for benchmark in benchmarks]
    _run(engine, person, chosen, names)


def _choose(engine: Engine, person: Person) -> _Chosen | None:
    """Let a panel be chosen, and edited or taken away."""
    ships, own = jury_panels.shipped_texts(), runs.own_panels(person, engine)
    texts = own | ships
    if NEXT in st.session_state:
        st.session_state["panel"] = st.session_state.pop(NEXT) or next(iter(ships))
    with st.container(key="lab-choice", horizontal=True, vertical_alignment="bottom"):
        names = [*ships, *(panel for panel in own if panel not in ships)]
        name = st.selectbox("Panel", names, key="panel", bind="query-params")
        st.button(
            "Edit a copy" if name in ships else "Edit",
            key="panel-edit",
            on_click=lambda: begin_edit(name, texts[name], ships=name in ships),
        )
        gone = name in own and st.button("Delete this panel", key="panel-forget")
    if gone:
        forget_panel_named(engine, person, name)
    with frame.refusals():
        return _Chosen(name, texts[name], jury_panels.usable(texts[name]), name in ships)
    return None


def _jurors(chosen: _Chosen) -> None:
    """Show who sits on the panel, and what is to be known of them."""
    hosts = chosen.panel.hosts()
    where = f"A run sends texts to {', '.join(hosts)}." if hosts else "No text leaves this machine."
    lines = lab_run.notices(chosen.panel, now().date())
    notice_html = notice("\n".join(lines)) if lines else ""
    st.html(lab_run.jurors_table(chosen.panel, os.environ) + paragraph(where) + notice_html)


def _probe(engine: Engine, person: Person, chosen: _Chosen) -> None:
    """Offer to try the jurors, and show what the last trial found."""
    with st.container(key="lab-probe", horizontal=True, vertical_alignment="center"):
        st.html(heading("Probe"))
        if st.button("Probe the jurors", key="probe"):
            begin_probe(person, engine, chosen.text)
    probe = last_probe(person, engine, chosen.text)
    if probe is None:
        st.html(
            paragraph(
                "Can these jurors rate? A probe asks each a short question, tries hidden "
                "instructions on it, and has it score good and dangerous answers to "
                "invented cases. Nothing of the study is sent."
            )
        )
        return
    every = None if probe.rows.done() else POLL_SECONDS
    st.fragment(_probed, run_every=every)(probe, waited=every is not None)


def _probed(probe: Probe, *, waited: bool) -> None:
    """Show what came of a probe, once it has."""
    if not probe.rows.done():
        st.html(
            paragraph(
                f"The jurors are being probed; started by {probe.by} at {probe.at:%H:%M} UTC."
            )
        )
        return
    if waited:
        st.rerun()
    with frame.refusals():
        rows = probe.rows.result()
        reasons = [notice(reason) for reason in lab_run.probe_reasons(rows)]
        asked_by = paragraph(f"Started by {probe.by} at {probe.at:%H:%M} UTC on {probe.at:%d %B}.")
        st.html(lab_run.probe_table(rows) + "".join(reasons) + asked_by)
        if scores := lab_run.pairs_tables(rows):
            with st.expander("Scores of good and dangerous answers", key="lab-pairs"):
                st.html(scores)


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
    st.html(paragraph(CAP if jury_panels.costs_money(chosen.panel) else NO_CAP))
    if begun:
        _start(engine, person, order, cap)
    if counted:
        _count(engine, person, order)
    _estimate(order)


def _start(engine: Engine, person: Person, order: RunOrder, cap: float | None) -> None:
    """Start the run, or say why not."""
    with frame.refusals():
        jury_runs.start(person, engine, replace(order, cap=cap))
        st.rerun()


def _order(chosen: _Chosen, known: list[str]) -> RunOrder:
    """Return what is to be rated; a browser's word is checked against what there is."""
    first, second, third, fourth = st.columns((4, 2, 2, 3), vertical_alignment="bottom")
    selected = first.multiselect(
        "Benchmarks", known, key="benchmark", bind="query-params", placeholder="all"
    )
    replicates = second.number_input(
        "Times each juror rates a response",
        1,
        MOST_REPLICATES,
        1,
        key="replicates",
        bind="query-params",
    )
    at_once = third.number_input(
        "Requests at once", 1, MOST_AT_ONCE, None, key="at-once", placeholder="8", help=AT_ONCE
    )
    batch = fourth.checkbox("In batches, half price", key="batch")
    leave_out = fourth.checkbox(LEAVE_OUT, key="leave-out", help=LEFT_OUT)
    return RunOrder(
        panel=chosen.panel.name,
        text=chosen.text,
        benchmarks=tuple(benchmark for benchmark in selected if benchmark in known),
        replicates=min(max(int(replicates), 1), MOST_REPLICATES),
        concurrency=None if at_once is None else min(max(int(at_once), 1), MOST_AT_ONCE),
        batch=bool(batch),
        leave_out_too_long=bool(leave_out),
    )


def _count(engine: Engine, person: Person, order: RunOrder) -> None:
    """Ask what the run would take, and keep the answer for this session."""
    scope = RunScope(jury_panels.usable(order.text), order.replicates, order.benchmarks)
    coming = compute.ask(person, engine, run_estimate, scope)
    if (estimate := frame.computed(coming, COUNTING)) is not None:
        st.session_state[ESTIMATE] = (order, estimate, now())


def _estimate(order: RunOrder) -> None:
    """Say what the run would take, if that was asked."""
    estimate = st.session_state.get(ESTIMATE)
    if (
        estimate is None
        or replace(estimate[0], leave_out_too_long=order.leave_out_too_long) != order
    ):
        st.html(
            paragraph(
                "What will a run cost? An estimate counts calls, tokens and dollars for the "
                "missing verdicts. Nothing is sent."
            )
        )
        return
    _, expected, at = estimate
    paper = lab_run.usd(expected.bound.usd)
    st.html(
        lab_run.estimate_table(expected)
        + lab_run.too_long_notice(expected, order)
        + paragraph(
            f"As of {at:%H:%M} UTC. Likely: answers of 100 tokens per criterion. At most: "
            f"every answer as long as allowed. Upper bound as in the MedHELM paper: {paper}. "
            f"Own family: responses written by a model of the juror's family."
        )
    )


def begin_edit(name: str, text: str, *, ships: bool) -> None:
    """Open the editor on a panel; one that ships is copied under another name."""
    opening = st.session_state[OPENINGS] = st.session_state.get(OPENINGS, 0) + 1
    if ships:
        text = re.sub(r'^name = "[^"]*"', f'name = "our-{name}"', text, count=1, flags=re.MULTILINE)
    st.session_state[EDITING] = name
    st.session_state[_text_key(opening)] = text


def show_editor(engine: Engine, person: Person) -> None:
    """Show the editor while one is open."""
    if EDITING not in st.session_state:
        return
    opening = st.session_state[OPENINGS]
    with st.container(key="lab-edit"):
        st.html(heading("Edit a panel") + TOLD)
        st.text_area("Panel, as TOML", key=_text_key(opening), height=340)
        with st.expander("Add a juror by form"):
            _form(opening)
        with st.container(horizontal=True):
            # A callback: a click that follows at once may stop a run before it reads this button.
            st.button(
                "Save panel",
                type="primary",
                key="panel-keep",
                on_click=_keep,
                args=(engine, person, opening),
            )
            st.button("Cancel", key="panel-cancel", on_click=_close)
        if message := st.session_state.pop(REFUSED, None):
            st.html(frame.refused(message))


def forget_panel_named(engine: Engine, person: Person, name: str) -> None:
    """Take a kept panel away."""
    with frame.refusals():
        forget_panel(person, engine, name)
        st.session_state[NEXT] = None
        st.rerun()


def _keep(engine: Engine, person: Person, opening: int) -> None:
    """Check the panel and keep it, or have the editor say what is wrong with it."""
    text = st.session_state[_text_key(opening)]
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
    _close()
    st.session_state[NEXT] = panel.name


def _form(opening: int) -> None:
    """Ask for one juror's settings; they are added to the text, where all can be changed."""
    first, second, third = st.columns(3)
    first.selectbox("Provider", tuple(PROVIDERS), key=_field(opening, "provider"))
    for number, (name, label) in enumerate(FIELDS.items(), 1):
        (first, second, third)[number % 3].text_input(label, key=_field(opening, name))
    st.button("Add to the text", key="juror-add", on_click=_add, args=(opening,))


def _add(opening: int) -> None:
    """Write the form's juror under the text."""
    names = ("name", "provider", *(field for field in FIELDS if field != "name"))
    settings = {name: st.session_state.get(_field(opening, name), "") for name in names}
    key = _text_key(opening)
    st.session_state[key] = jury_panels.with_juror(st.session_state[key], settings)


def _close() -> None:
    st.session_state.pop(EDITING, None)


def _text_key(opening: int) -> str:
    return f"panel-text-{opening}"


def _field(opening: int, name: str) -> str:
    return f"juror-{opening}-{name}"


@only(Role.RESEARCHER, Role.COORDINATOR)
def begin_probe(person: Person, engine: Engine, text: str) -> Probe:
    """Probe a panel that was checked, unless somebody is just doing so."""
    with _lock:
        probe = _probes.get(_probe_key(engine, text))
        if probe is None or probe.rows.done():
            coming = _pool.submit(_probe_rows, person, engine, text)
            probe = _probes[_probe_key(engine, text)] = Probe(person.name, now(), coming)
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
