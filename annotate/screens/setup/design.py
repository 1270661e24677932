"""Who rates what: a design asked for, looked at as a plan, then stored."""

import streamlit as st
from sqlalchemy import Engine

from annotate import compute
from annotate.screens import frame
from annotate.screens.frame import show_heading, show_text
from annotate.screens.home.people import HANDED, show_handed
from data.errors import Conflict
from data.person import Person, only
from data.safe_text import on_page
from data.schema import Role
from data.study import steering
from data.study.steering import store_design
from medjury.services.design.assign import DesignRequest, PlannedDesign, designed, planned_design
from medjury.services.design.plan import Design, plan_lines

PLANNED, STORED, TURN = "design-planned", "design-stored", "design-turn"
SEED = "A number that the dealing starts from: the same number deals the same way again."
REPEATS = (
    "Responses that a clinician gets a second time without being told: they show how alike a clinician scores "
    "twice."
)
ABOUT = (
    "A reading is one response rated by one clinician. Every response is read by as many clinicians as you say; "
    "loads and shared responses are dealt evenly. Nothing is stored before you have seen the plan. What is begun stays with its "
    "clinician; open work of those left out passes to the others."
)


def show(engine: Engine, person: Person) -> None:
    """Ask for a design, show its plan, and store it."""
    show_heading("Clinicians", ABOUT)
    show_handed()
    frame.show_message(STORED)
    if steering.standing(person, engine).locked:
        show_text("A locked study takes no design.")
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
        st.warning(on_page("The choices have changed since the plan below was made: show it anew."))
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
    first, *columns = st.columns((3, 3, 3, 2, 4))
    new = first.text_area("New clinicians, one per line", key=f"design-new-{turn}", height=70)
    per_response = columns[0].number_input("Clinicians per response", 1, 50, 2, key="design-per")
    percent = columns[1].number_input(
        "Hidden repeats (%)", 0, 50, 10, key="design-repeats", help=REPEATS
    )
    seed = columns[2].number_input("Seed", 0, 2**31 - 1, 0, key="design-seed", help=SEED)
    minutes = columns[3].number_input(
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
    rows = [
        {
            "Clinician": rater,
            "Responses": load,
            "Hidden repeats": planned.repeats_of[rater],
            "Minutes": round(minutes[rater]),
        }
        for rater, load in planned.load.items()
    ]
    show_heading("Plan")
    frame.show_rows("Work of each clinician as planned", rows, {"Hidden repeats": REPEATS})
    for line in plan_lines(planned.plan):
        show_text(line)


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
            about = design.slots, request.seed, dropped, design.per_response
            invitations = store_design(person, engine, list(design.load), *about)
        del st.session_state[PLANNED]
        st.session_state[TURN] = st.session_state.get(TURN, 0) + 1
        st.session_state[STORED] = (
            f"{len(design.slots):,} assignments stored, {len(dropped):,} taken back."
        )
        if invitations:
            st.session_state[HANDED] = invitations, False
        st.rerun()


@only(Role.COORDINATOR)
def deal(_: Person, engine: Engine, request: DesignRequest) -> Design:
    """Return the design itself, as it was planned."""
    return designed(engine, request)
