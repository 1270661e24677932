"""The design and the protocol of a study: who rates what, and what the study is to show."""

from collections.abc import Iterator

import streamlit as st
from sqlalchemy import Engine

from annotate import compute
from annotate.assign import DesignRequest, PlannedDesign, designed, planned_design
from annotate.plan import Design, pace_in_words, spread_in_words
from annotate.screens import frame, people
from annotate.screens.frame import Cell, good, heading, notice, paragraph, table
from annotate.screens.people import HANDED, Handed
from calibration.headlines import protocol_facts
from calibration.protocol import MISS_AT_MOST, Critical, Protocol
from data.errors import Conflict
from data.person import Person, only
from data.schema import Role
from data.study import steering
from data.study.steering import PlannedWork, store_design
from jury.panel import shipped
from medjury.services.record import fix_protocol, panel_jurors, protocol_of

PLANNED, STORED, TURN = "design-planned", "design-stored", "design-turn"
HEADS = ("Clinician", "Responses", "Hidden repeats", "Minutes")
SEED = "A number that the dealing starts from: the same number deals the same way again."
REPEATS = (
    "Responses that a clinician gets a second time without being told: they show how alike a clinician scores "
    "twice."
)
MARGIN = "How much lower than a clinician's the jury's agreement may be: 0.1 of an ICC that goes up to 1."
ABOUT = (
    "A reading is one response rated by one clinician. Every response is read by as many clinicians as you say; "
    "loads and shared responses are dealt evenly. Nothing is stored before you have seen the plan. What is begun stays with its "
    "clinician; open work of those left out passes to the others."
)


def show(engine: Engine, person: Person) -> None:
    """Ask for a design, show its plan, and store it."""
    st.html(frame.style("people.css") + heading("Design") + paragraph(ABOUT))
    people.show_handed()
    if message := st.session_state.pop(STORED, None):
        st.html(good(message))
    if steering.standing(person, engine).locked:
        st.html(paragraph("A locked study takes no design."))
        return
    request = _ask(steering.who_can_rate(person, engine))
    if st.button("Show the plan", key="plan-now", type="primary"):
        st.session_state.pop(PLANNED, None)
        if planned := _planned(engine, person, request):
            st.session_state[PLANNED] = (request, planned)
    planned_for = st.session_state.get(PLANNED)
    if planned_for is None:
        return
    if planned_for[0] != request:
        st.html(notice("The choices have changed since the plan below was made: show it anew."))
    _show_plan(planned_for[1])
    if planned_for[0] == request and st.button(
        "Store this design", key="design-now", type="primary"
    ):
        _store(engine, person, request, planned_for[1])


def _ask(clinicians: list[str]) -> DesignRequest:
    """Ask who rates, how often, how many are shown again, and the seed."""
    turn = st.session_state.get(TURN, 0)
    raters = (
        st.multiselect("Clinicians", clinicians, clinicians, key=f"raters-{turn}")
        if clinicians
        else []
    )
    first, *columns = st.columns((5, 3, 3, 2))
    new = first.text_area("New clinicians, one per line", key=f"design-new-{turn}", height=70)
    per_response = columns[0].number_input("Clinicians per response", 1, 50, 2, key="design-per")
    percent = columns[1].number_input(
        "Hidden repeats (%)", 0, 50, 10, key="design-repeats", help=REPEATS
    )
    seed = columns[2].number_input("Seed", 0, 2**31 - 1, 0, key="design-seed", help=SEED)
    minutes = st.number_input(
        "Minutes per reading",
        *(0.1, 600.0, None, 0.5),
        key="design-minutes",
        placeholder="estimated",
        help="Leave it empty for an estimate from words, or from the pace measured so far.",
    )
    added = [name.strip() for name in new.splitlines() if name.strip()]
    return DesignRequest((*raters, *added), per_response, percent / 100, seed, minutes)


def _planned(engine: Engine, person: Person, request: DesignRequest) -> PlannedDesign | None:
    """Return what the design comes to, if there is one."""
    if not request.raters:
        frame.empty("No clinician is chosen.", "Choose some above, or name new ones.")
        return None
    coming = compute.ask(person, engine, planned_design, request)
    return frame.computed(coming, "The responses are being assigned")


def _show_plan(planned: PlannedDesign) -> None:
    """Show each clinician's work, and what to know before anyone is invited."""
    minutes = planned.plan.minutes
    rows: list[list[Cell]] = [
        [rater, load, planned.repeats_of[rater], f"{minutes[rater]:,.0f}"]
        for rater, load in planned.load.items()
    ]
    st.html(heading("Plan") + table("Work of each clinician as planned", HEADS, rows))
    st.html("".join(paragraph(sentence) for sentence in _told(planned)))


def _told(planned: PlannedDesign) -> Iterator[str]:
    """Yield what a plan comes to, in sentences."""
    plan = planned.plan
    yield (
        f"{plan.responses:,} responses to {plan.instances:,} instances, "
        f"{planned.per_response} clinicians each, {planned.repeats:,} hidden repeats; "
        f"{plan.minutes_total:,.0f} minutes in all, {plan.minutes_per_response:.1f} per reading "
        f"{pace_in_words(plan.pace)}."
    )
    if plan.raters > 1:
        least, most = plan.overlap_min, plan.overlap_max
        shared = f"{least}" if least == most else f"{least} to {most}"
        yield (f"Any two clinicians share {shared} responses. {spread_in_words(plan)}")
    if plan.icc_width is None:
        yield "Too few responses for an interval of the agreement."
    else:
        yield (
            f"Expected 95 % interval of the agreement if it is {plan.icc_assumed:g}: "
            f"{plan.icc_low:z.2f} to {plan.icc_high:z.2f}."
        )
    yield from (f"{note[0].upper()}{note[1:]}." for note in plan.notes)


def _store(engine: Engine, person: Person, request: DesignRequest, planned: PlannedDesign) -> None:
    """Store the design that was seen, and hand the codes over."""
    with frame.refusals():
        with st.spinner("The readings are being stored", show_time=True):
            design = deal(person, engine, request)
            if (design.load, design.overlap, design.repeats) != (
                planned.load,
                planned.overlap,
                planned.repeats,
            ):
                raise Conflict("the study has changed since this plan was made: show it anew")
            dropped = [
                (assignment.rater, assignment.response, assignment.pass_)
                for assignment in design.dropped
            ]
            work = PlannedWork(design.slots, dropped, design.per_response, request.seed)
            invitations = store_design(person, engine, work, list(design.load))
        del st.session_state[PLANNED]
        st.session_state[TURN] = st.session_state.get(TURN, 0) + 1
        st.session_state[STORED] = (
            f"{len(design.slots):,} assignments stored, {len(dropped):,} taken back."
        )
        if invitations:
            st.session_state[HANDED] = Handed(invitations, once=False)
        st.rerun()


@only(Role.COORDINATOR)
def deal(_: Person, engine: Engine, request: DesignRequest) -> Design:
    """Return the design itself, as it was planned."""
    return designed(engine, request)


ABOUT_PROTOCOL = (
    "A jury may take a clinician's place only if its agreement with the other clinicians is no lower "
    "than a clinician's by more than a margin. Fix margin, jury and number of responses before "
    "clinicians rate: what is fixed or changed later explores, and can validate nothing."
)
NONE_SET = "No margin is fixed yet, so nothing is claimed of any jury."
SEEN_BEFORE = (
    "Clinicians' ratings are in already: what you fix or change now makes the study exploratory, and every "
    "report says so."
)
COMMIT = "Commit to this protocol"
BY_NAME, COMPOSITE, NOTHING = "By name", "Composite of all criteria", "None"
MADE = "protocol-set"


def show_protocol(engine: Engine, person: Person) -> None:
    """Show what is fixed; let a coordinator fix it, or fix it anew."""
    protocol = protocol_of(engine)
    st.html(heading("Protocol") + paragraph(ABOUT_PROTOCOL) + protocol_html(protocol))
    if person.role == Role.COORDINATOR:
        _protocol_form(engine, person, protocol)


def protocol_html(protocol: Protocol | None) -> str:
    """Return a protocol as HTML, or that there is none."""
    if protocol is None:
        return paragraph(NONE_SET)
    rows: list[list[Cell]] = [[name, words] for name, words in protocol_facts(protocol)]
    return table("Protocol", ("Fixed", "As"), rows, 2)


def _protocol_form(engine: Engine, person: Person, protocol: Protocol | None) -> None:
    """Ask for what is to be fixed."""
    views = [material.view for material in steering.materials(person, engine)]
    criteria = sorted({name for view in views for name in view.rubric.criteria})
    label = COMMIT if protocol is None else "Replace the protocol"
    with st.expander(label, expanded=protocol is None):
        if any(map(any, steering.readings_by_response(person, engine).values())):
            st.html(notice(SEEN_BEFORE))
        first = st.columns(4, vertical_alignment="bottom")
        margin = first[0].number_input("Margin in ICC", 0.01, 0.99, 0.1, 0.05)
        criterion = first[1].selectbox("Criterion", [COMPOSITE, *criteria])
        panel = first[2].selectbox("Jury", [BY_NAME, *sorted(shipped())])
        responses = first[3].number_input("Responses planned (0: not fixed)", 0, None, 0)
        second = st.columns((2, 1, 3), vertical_alignment="bottom")
        named = second[0].text_input(
            "Jurors by name", placeholder="first, second, third", disabled=panel != BY_NAME
        )
        floor = second[1].number_input("Clinicians agree above", 0.0, 0.95, 0.0, 0.05)
        because = second[2].text_input("Why this margin")
        critical = _critical(criteria)
        pressed = st.button(label, type="primary", key="protocol-now")
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
    if message := st.session_state.pop(MADE, None):
        st.html(good(message))


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
