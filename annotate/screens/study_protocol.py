"""The protocol: what the study is to show, and fixing it before clinicians rate."""

import math

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame
from annotate.screens.frame import Cell, good, heading, paragraph, table
from calibration.messages.protocol import protocol_facts
from calibration.protocol import Critical, Protocol
from data import queries
from data.person import Person
from data.schema import Role
from jury.panel import shipped
from medjury.services.protocol import fix, of_panel
from medjury.services.record import protocol_of

ABOUT = (
    "A jury may take a clinician's place only if its agreement with the other clinicians is no lower "
    "than a clinician's by more than a margin. The margin counts when it is fixed before ratings are "
    "seen; the record keeps when it was."
)
NONE_SET = "No margin is fixed yet, so nothing is claimed of any jury."
ANY, COMPOSITE, NOTHING = "Any jury that is analysed", "Composite of all criteria", "None"
MADE = "protocol-set"


def show(engine: Engine, person: Person) -> None:
    """Show what is fixed; let a coordinator fix it, or fix it anew."""
    protocol = protocol_of(engine)
    st.html(heading("Protocol") + paragraph(ABOUT) + facts(protocol))
    if person.role == Role.COORDINATOR:
        _form(engine, person, protocol)


def facts(protocol: Protocol | None) -> str:
    """Return a protocol as HTML, or that there is none."""
    if protocol is None:
        return paragraph(NONE_SET)
    rows: list[list[Cell]] = [[name, words] for name, words in protocol_facts(protocol)]
    return table("Protocol", ("Fixed", "As"), rows, 2)


def _form(engine: Engine, person: Person, protocol: Protocol | None) -> None:
    """Ask for what is to be fixed."""
    views = [material.view for material in queries.materials(person, engine)]
    criteria = sorted({name for view in views for name in view.rubric.criteria})
    label = "Fix the protocol" if protocol is None else "Replace the protocol"
    with st.expander(label, expanded=protocol is None), st.form("protocol", border=False):
        first = st.columns(4, vertical_alignment="bottom")
        margin = first[0].number_input("Margin in ICC", 0.01, 0.99, 0.1, 0.05)
        criterion = first[1].selectbox("Of", [COMPOSITE, *criteria])
        panel = first[2].selectbox("Jury", [ANY, *sorted(shipped())])
        responses = first[3].number_input("Responses planned (0: not fixed)", 0, None, 0)
        second = st.columns(4, vertical_alignment="bottom")
        unsafe = second[0].selectbox("Unsafe responses are low on", [NOTHING, *criteria])
        threshold = second[1].number_input("Score that is unsafe, or below", None, None, 2.0, 1.0)
        limit = second[2].number_input("Missed at most, in %", 0.0, 99.0, 10.0, 5.0)
        pressed = st.form_submit_button(label, type="primary")
    if pressed:
        rate = limit / 100 if limit else math.nan
        critical = () if unsafe == NOTHING else (Critical(unsafe, threshold, rate),)
        name = "" if panel == ANY else panel
        _fix(
            engine,
            person,
            Protocol(
                margin=margin,
                criterion="" if criterion == COMPOSITE else criterion,
                panel=name,
                jurors=of_panel(name),
                responses=int(responses),
                critical=critical,
            ),
        )
    if made := st.session_state.pop(MADE, None):
        st.html(good(made))


def _fix(engine: Engine, person: Person, protocol: Protocol) -> None:
    """Fix it, or say why not."""
    with frame.refusals():
        fix(person, engine, protocol)
        st.session_state[MADE] = "Fixed, and in the record."
        st.rerun()
