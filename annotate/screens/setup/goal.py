"""The goal: what the study is to show, fixed before clinicians rate, and how much that takes."""

from concurrent.futures import Future
from typing import TYPE_CHECKING

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, draw
from annotate.screens import frame
from annotate.screens.frame import show_heading, show_text
from calibration.protocol import MISS_AT_MOST, Critical, Protocol
from calibration.tables.numbers import PAGE
from calibration.tables.planning import panel_size_table, plan_tables
from calibration.tables.spec import ICC_WORDS
from calibration.values import PlanOptions, PlanQuestion
from data.person import Person
from data.safe_text import on_page
from data.schema import Role
from data.study import steering
from data.study.standing import study_benchmarks
from jury.panel import shipped
from medjury.services.pairs import margin_unit
from medjury.services.record import fix_protocol, panel_jurors, protocol_of

if TYPE_CHECKING:
    from medjury.services.planning import StudyPlan

ABOUT_PROTOCOL = (
    "A jury may take a clinician's place only if its agreement with the other clinicians is no lower "
    "than a clinician's by more than a margin. Fix margin, jury and number of responses before "
    "clinicians rate: what is fixed or changed later explores, and can validate nothing."
)
SEEN_BEFORE = (
    "Clinicians' ratings are in already: what you fix or change now makes the study exploratory, and every "
    "report says so."
)
COMMIT = "Commit to this protocol"
BY_NAME, COMPOSITE, NOTHING = "By name", "Composite of all criteria", "None"
MADE = "protocol-set"
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
LOWER = "How much lower than a clinician's the jury's agreement may be: 0.1 of an ICC that goes up to 1."
FLOOR = "Where clinicians agree less than this among themselves, nothing is claimed of a jury."
SURE = "I know: the study becomes exploratory, and cannot validate a jury any more."
MARGIN = "How much worse than a clinician the jury may be. 0: not planned for."
SENTENCES = "Sentences for a protocol, and what the plan assumes"
RELIABILITY = "How reliable the mean of several raters is"
NOT_KNOWN = "0: not known."


def show(engine: Engine, person: Person) -> None:
    """Show what is fixed; let a coordinator fix it, or fix it anew; plan how much it takes."""
    protocol = protocol_of(engine)
    show_heading("Protocol", ABOUT_PROTOCOL)
    frame.show_message(MADE)
    draw.protocol(protocol, margin_unit(engine))
    if person.role == Role.COORDINATOR:
        _protocol_form(engine, person, protocol)
    with st.expander("How many responses and clinicians it takes", key="plan"):
        show_plan(engine, person)


def _protocol_form(engine: Engine, person: Person, protocol: Protocol | None) -> None:
    """Ask for what is to be fixed."""
    views = study_benchmarks(person, engine)
    criteria = sorted({name for view in views for name in view.rubric.criteria})
    label = COMMIT if protocol is None else "Replace the protocol"
    with st.expander(label, expanded=protocol is None):
        seen = any(map(any, steering.readings_by_response(person, engine).values()))
        if seen:
            st.warning(on_page(SEEN_BEFORE))
        first = st.columns(4, vertical_alignment="bottom")
        margin = first[0].number_input(
            f"Margin in {margin_unit(engine)}", 0.01, 0.99, 0.1, 0.05, help=LOWER
        )
        criterion = first[1].selectbox("Criterion", [COMPOSITE, *criteria])
        panel = first[2].selectbox("Jury", [BY_NAME, *sorted(shipped())])
        responses = first[3].number_input("Responses planned (0: not fixed)", 0, None, 0)
        second = st.columns((2, 1, 3), vertical_alignment="bottom")
        named = second[0].text_input(
            "Jurors by name", placeholder="first, second, third", disabled=panel != BY_NAME
        )
        floor = second[1].number_input("Clinicians agree above", 0.0, 0.95, 0.0, 0.05, help=FLOOR)
        because = second[2].text_input("Why this margin")
        critical = _critical(criteria)
        sure = st.checkbox(SURE) if seen else True
        pressed = st.button(label, type="primary", key="protocol-now", disabled=not sure)
    if pressed:
        name = "" if panel == BY_NAME else panel
        jurors = tuple(dict.fromkeys(filter(None, map(str.strip, named.split(",")))))
        _fix(
            engine,
            person,
            Protocol(
                margin=margin,
                criterion="" if criterion == COMPOSITE else criterion,
                panel=name,
                jurors=panel_jurors(name) or jurors,
                responses=int(responses),
                critical=critical,
                floor=floor,
                because=because.strip(),
            ),
        )


def _critical(criteria: list[str]) -> tuple[Critical, ...]:
    """Ask which responses are unsafe and how many of them may be missed; () where none are named."""
    places = st.columns(4, vertical_alignment="bottom")
    unsafe = places[0].selectbox("Unsafe responses are low on", [NOTHING, *criteria])
    off = unsafe == NOTHING
    threshold = places[1].number_input(
        "Score that is unsafe, or below", None, None, 2.0, 1.0, disabled=off
    )
    limit = places[2].number_input(
        "Unsafe missed at most, in %", 1.0, 99.0, 100 * MISS_AT_MOST, 5.0, disabled=off
    )
    if off:
        return ()
    return (Critical(unsafe, threshold, limit / 100),)


def _fix(engine: Engine, person: Person, protocol: Protocol) -> None:
    """Fix it, or say why not."""
    with frame.refusals():
        fix_protocol(person, engine, protocol)
        st.session_state[MADE] = "Fixed, and in the record."
        st.rerun()


def show_plan(engine: Engine, person: Person) -> None:
    """Ask what the study is to reach, and show what that takes."""
    show_text(ABOUT)
    question = _ask(engine, person)
    if question is not None:
        st.session_state[ASKED] = question
    asked: PlanQuestion | None = st.session_state.get(ASKED)
    if asked is None:
        return
    coming: Future[StudyPlan] = compute.ask(person, engine, PLANNED, asked, "long")
    plan = frame.computed(coming, "How many responses and clinicians it takes is being worked out")
    if plan is not None:
        for table in plan_tables(plan.rows, asked.options, PAGE):
            draw.table(table)
        with st.expander(SENTENCES):
            for sentence in plan.told:
                show_text(sentence)
        with st.expander(RELIABILITY):
            draw.table(panel_size_table(plan.reliability, PAGE))


def _ask(engine: Engine, person: Person) -> PlanQuestion | None:
    """Ask for an ICC or a pilot, and for what is wanted; None until the button is pressed."""
    names = [one.name for one in study_benchmarks(person, engine)]
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
        st.error(on_page(f"{per_response} different clinicians rate a response."))
    elif margin and per_response < 2:
        st.error(on_page("A margin takes 2 clinicians per response or more."))
    else:
        return False
    return True


def _named(benchmark: str | None) -> str:
    return benchmark or "all combined"
