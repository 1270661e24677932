"""Where clinicians differ, and having a difference settled; what they flag, and answering it."""

import streamlit as st
from sqlalchemy import Engine

from annotate.adjudicate import Settlement, planned_settlement, settle
from annotate.flags import answer
from annotate.screens import frame
from annotate.screens.markup import Cell, good, heading, notice, said, table
from data import queries
from data.person import Person
from data.queries import Difference, Flagged
from data.queries.adjudication import differences_of
from data.queries.study import settings
from data.reading import Settling
from data.schema import Role

ABOUT = (
    "Responses on which two clinicians are at least {points:g} points apart on a criterion. A third "
    "reading is by a clinician who is shown nothing of the others; a consensus is by one who is shown "
    "their scores and comments, without names. Both are kept beside the independent ratings, and no "
    "figure is of them unless it is asked for."
)
OFF = (
    "Differences are not settled in this study. `medjury settings adjudicate_from 2` lists responses on "
    "which two clinicians are two points apart, or more."
)
HEADS = ("Response", "Benchmark", "On", "Settled", "Points apart", "Clinicians")
FLAG_HEADS = ("Response", "Clinician", "Flag", "Words", "Answer", "Seen")
NAMES: dict[Settling, str] = {"third": "third reading", "consensus": "consensus"}
MADE = "differences-made"
MOST_SHOWN, MOST_NAMED = 100, 12
FLAGS = {
    "flag": "something is odd",
    "not_enough_context": "not enough context",
    "names_author": "names its author",
}


def show(engine: Engine, person: Person) -> None:
    """Show the differences with how far each is settled, and the flags with their answers."""
    if made := st.session_state.pop(MADE, None):
        st.html(good(made))
    _show_differences(engine, person)
    _show_flags(engine, person)


def _show_differences(engine: Engine, person: Person) -> None:
    chosen = settings(engine)
    st.html(heading("Differences between clinicians"))
    if not chosen.adjudicates:
        st.html(said(OFF.replace("`", "")))
        return
    found = differences_of(person, engine, chosen.adjudicate_from)
    st.html(said(ABOUT.format(points=chosen.adjudicate_from)))
    if not found:
        st.html(said("No two clinicians differ by that much."))
        return
    open_ = sum(not one.is_done for one in found)
    st.html(said(f"{len(found):,} responses, {open_:,} of them not settled."))
    if person.role == Role.COORDINATOR and not all(one.reading for one in found):
        _assign(engine, person, chosen.adjudicate_by)
    rows = [_row(one) for one in found[:MOST_SHOWN]]
    st.html(table("Differences between clinicians", HEADS, rows, words=4))
    if len(found) > MOST_SHOWN:
        st.html(said(f"The {MOST_SHOWN} largest are shown; medjury adjudicate lists all."))


def _row(one: Difference) -> list[Cell]:
    return [
        *(one.response_id, one.benchmark, one.criterion, state(one)),
        *(f"{one.points:g}", one.clinicians),
    ]


def state(one: Difference) -> str:
    """Return in words how far a difference is settled."""
    if one.reading:
        return f"{'by' if one.is_done else 'given out:'} {NAMES[one.reading]}"
    if one.waits_for:
        readings = "1 reading" if one.waits_for == 1 else f"{one.waits_for} readings"
        return f"waits for {readings}"
    return "no"


def _assign(engine: Engine, person: Person, by: Settling) -> None:
    """Show who would settle what is ready, in counts, and give it out when asked."""
    with frame.refusals():
        plan = planned_settlement(engine, by)
        st.html("".join(_planned(plan)))
        number = len(plan.places)
        label = f"Give out {number} {NAMES[by]}{'s' if number != 1 and by == 'third' else ''}"
        if st.button(label, type="primary", key="settle-now", disabled=not number):
            given = settle(person, engine, plan)
            readings = "1 reading" if given == 1 else f"{given} readings"
            st.session_state[MADE] = f"{readings} given out, after each clinician's other work."
            st.rerun()


def _planned(plan: Settlement) -> list[str]:
    """Return in words what would be given to whom, and what cannot be."""
    each = ", ".join(f"{name} {load}" for name, load in plan.load.items() if load)
    told = [said(f"By {NAMES[plan.reading]}, as the study says: {each}.")] if each else []
    for responses, why in (
        (plan.waiting, "still to be rated by somebody, so not settled yet"),
        (
            plan.nobody,
            "known to every clinician who can rate: add a clinician, or choose consensus",
        ),
        (plan.naming, "with a comment that may name a model, so not for a consensus"),
    ):
        if responses:
            more = f" and {len(responses) - MOST_NAMED} more" if len(responses) > MOST_NAMED else ""
            named = ", ".join(responses[:MOST_NAMED]) + more
            told.append(notice(f"{why[:1].upper()}{why[1:]}: {named}."))
    return told


def _show_flags(engine: Engine, person: Person) -> None:
    found = queries.flags(person, engine)
    st.html(heading("Flags"))
    if not found:
        st.html(said("No newest submission has a flag."))
        return
    unanswered = sum(not one.answers for one in found)
    st.html(said(f"{len(found):,} flags, {unanswered:,} of them not answered."))
    st.html(table("Flags", FLAG_HEADS, [_flag_row(one) for one in found], words=6))
    if person.role == Role.COORDINATOR:
        _answer(engine, person, found)


def _flag_row(one: Flagged) -> list[Cell]:
    given = one.answers[-1] if one.answers else None
    seen = ("yes" if one.seen else "not yet") if one.answers else None
    flag = FLAGS.get(one.flag, one.flag)
    return [one.response_id, one.rater, flag, one.text or None, given, seen]


def _answer(engine: Engine, person: Person, found: list[Flagged]) -> None:
    """Ask which flag is answered, and how; the clinician sees the answer while rating."""
    named = {one.id: f"{one.response_id}, {one.rater}" for one in found}
    with st.form("answer-flag", border=False):
        number = st.selectbox("Flag to answer", [*named], format_func=named.__getitem__)
        text = st.text_area(
            "Answer", max_chars=2000, help="The clinician reads it: name no model.", height=80
        )
        pressed = st.form_submit_button("Answer", type="primary")
    if pressed and number is not None:
        with frame.refusals():
            answer(person, engine, number, text)
            st.session_state[MADE] = "Answered; the clinician sees it while rating."
            st.rerun()
