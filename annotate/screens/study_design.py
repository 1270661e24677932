"""Who rates what: a design is looked at before it is stored, then codes are handed out."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate.assign import Assigned, Design, Item, top_up
from annotate.screens import frame, people
from annotate.screens.markup import Cell, good, heading, notice, refused, said, table
from annotate.screens.people_forms import HANDED, Handed
from annotate.worker import Figures
from data import queries
from data.errors import Conflict, MedjuryError
from data.person import Person
from data.queries.steering import design_input
from data.store.steering import PlannedWork, store_design

PLANNED, STORED, TURN = "design-planned", "design-stored", "design-turn"
HEADS = ("Clinician", "Responses", "Hidden repeats", "Minutes")
ABOUT = (
    "Every response is read by as many clinicians as you say; loads, shared responses and models are "
    "dealt evenly. Nothing is stored before you have seen the plan. What is begun stays with its "
    "clinician; open work of those left out passes to the others."
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a coordinator asks of a design."""

    raters: tuple[str, ...]
    per_response: int
    repeats: float
    seed: int


def show(engine: Engine, person: Person) -> None:
    """Ask for a design, show its plan, and store it."""
    st.html(f"<style>{people.STYLE}</style>" + heading("Design") + said(ABOUT))
    people.show_handed()
    if told := st.session_state.pop(STORED, None):
        st.html(good(told))
    if queries.standing(person, engine).locked:
        st.html(said("A locked study takes no design."))
        return
    wanted = _ask(queries.who_can_rate(person, engine))
    if st.button("Show the plan", key="plan-now", type="primary"):
        st.session_state.pop(PLANNED, None)
        if figures := _planned(engine, person, wanted):
            st.session_state[PLANNED] = (wanted, figures)
    kept = st.session_state.get(PLANNED)
    if kept is None:
        return
    if kept[0] != wanted:
        st.html(notice("The choices have changed since the plan below was made: show it anew."))
    _show_plan(kept[1])
    if kept[0] == wanted and st.button("Store this design", key="design-now", type="primary"):
        _store(engine, person, wanted, kept[1])


def _ask(known: list[str]) -> Wanted:
    """Ask who rates, how often, how many are shown again, and the seed."""
    turn = st.session_state.get(TURN, 0)
    raters = st.multiselect("Clinicians", known, known, key=f"raters-{turn}") if known else []
    first, *rest = st.columns((5, 3, 3, 2))
    new = first.text_area("New clinicians, one a line", key=f"design-new-{turn}", height=70)
    per_response = rest[0].number_input("Clinicians a response", 1, 50, 2, key="design-per")
    percent = rest[1].number_input("Hidden repeats (%)", 0, 50, 10, key="design-repeats")
    seed = rest[2].number_input("Seed", 0, 2**31 - 1, 0, key="design-seed")
    added = [one.strip() for one in new.splitlines() if one.strip()]
    return Wanted((*raters, *added), per_response, percent / 100, seed)


def _planned(engine: Engine, person: Person, wanted: Wanted) -> Figures | None:
    """Return the figures of `medjury assign --plan`; names go in a file that is deleted again."""
    if not wanted.raters:
        frame.empty("No clinician is chosen.", "Choose some above, or name new ones.")
        return None
    with tempfile.TemporaryDirectory(prefix="medjury-") as folder:
        names = Path(folder) / "names"
        names.write_text("\n".join(wanted.raters), "utf-8")
        return frame.figures(
            person,
            engine,
            *("assign", "--plan", "--raters", str(names)),
            *("--per-response", str(wanted.per_response), "--repeats", str(wanted.repeats)),
            *("--seed", str(wanted.seed)),
        )


def _show_plan(figures: Figures) -> None:
    """Show each clinician's work, and what to know before anyone is invited."""
    plan = figures["plan"]
    minutes, each = plan["minutes"], plan["minutes_per_response"]
    rows: list[list[Cell]] = [
        [rater, load, round(minutes[rater] / each) - load, f"{minutes[rater]:g}"]
        for rater, load in figures["load"].items()
    ]
    st.html(heading("Plan") + table("Work of each clinician as planned", HEADS, rows))
    st.html("".join(said(one) for one in _told(figures, plan)))


def _told(figures: Figures, plan: dict[str, Any]) -> Iterator[str]:
    """Yield what a plan comes to, in sentences."""
    yield (
        f"{plan['responses']:,} responses to {plan['instances']:,} instances, "
        f"{figures['per_response']} clinicians each, {figures['repeats']:,} hidden repeats; "
        f"{plan['minutes_total']:g} minutes in all at {plan['minutes_per_response']:g} a reading."
    )
    if plan["raters"] > 1:
        least, most = plan["overlap_min"], plan["overlap_max"]
        shared = f"{least}" if least == most else f"{least} to {most}"
        yield (
            f"Any two clinicians share {shared} responses; their counts of one model's responses "
            f"differ by {plan['model_spread']} at most."
        )
    if plan["icc_width"] is None:
        yield "Too few responses for an interval of the agreement."
    else:
        yield (
            f"Expected 95 % interval of the agreement, were it {plan['icc_assumed']:g}: "
            f"{plan['icc_low']:z.2f} to {plan['icc_high']:z.2f}."
        )
    yield from (f"{note[0].upper()}{note[1:]}." for note in plan["notes"])


def _store(engine: Engine, person: Person, wanted: Wanted, seen: Figures) -> None:
    """Store the design that was seen, and hand the codes over."""
    try:
        with st.spinner("Dealing the responses"):
            found = _designed(engine, person, wanted)
            if (found.load, found.overlap, found.repeats) != (
                seen["load"],
                seen["overlap"],
                seen["repeats"],
            ):
                raise Conflict("the study has changed since this plan was made: show it anew")
            dropped = [(one.rater, one.response, one.pass_) for one in found.dropped]
            work = PlannedWork(found.slots, dropped, found.per_response, wanted.seed)
            invitations = store_design(person, engine, work, list(found.load))
    except MedjuryError as error:
        st.html(refused(str(error)))
        return
    del st.session_state[PLANNED]
    st.session_state[TURN] = st.session_state.get(TURN, 0) + 1
    st.session_state[STORED] = (
        f"{len(found.slots):,} assignments stored, {len(dropped):,} taken back."
    )
    if invitations:
        st.session_state[HANDED] = Handed(invitations, once=False)
    st.rerun()


def _designed(engine: Engine, person: Person, wanted: Wanted) -> Design:
    """Return the design itself: the same input and seed give the same one everywhere."""
    given = design_input(person, engine)
    return top_up(
        [Assigned(*one) for one in given.assigned],
        [Item(*one) for one in given.items],
        list(wanted.raters),
        wanted.per_response,
        wanted.seed,
        repeats=wanted.repeats,
    )
