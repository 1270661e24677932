"""Where clinicians differ, and having a difference settled; what they flag, and answering it."""

import streamlit as st
from sqlalchemy import Engine

from annotate.adjudicate import Settlement, answer, found_differences, planned_settlement, settle
from annotate.screens import frame
from annotate.screens.frame import Cell, good, heading, notice, paragraph, table
from data.card import Settling
from data.person import Person
from data.schema import Role
from data.study import assignments
from data.study.adjudication import Disagreement
from data.study.assignments import Flagged
from data.study.standing import settings

ABOUT = (
    "Responses on which two clinicians are at least {points:g} points apart on a criterion. A "
    "third reading is by a clinician who is shown nothing of the others; a consensus is by one "
    "who is shown their scores and comments, without names. Both are stored apart from the "
    "independent ratings; figures use them only where Agreement is asked for the reading 'adjudicated'."
)
OFF = (
    "Settling of differences is off. Whoever runs the server can switch it on and set from how many points "
    "apart two clinicians' scores are to be settled, such as 2."
)
HEADS = ("Response", "Benchmark", "On", "Settled", "Points apart", "Clinicians")
FLAG_HEADS = ("Response", "Clinician", "Flag", "Comment", "Answer", "Seen")
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
    if message := st.session_state.pop(MADE, None):
        st.html(good(message))
    _show_differences(engine, person)
    _show_flags(engine, person)


def _show_differences(engine: Engine, person: Person) -> None:
    chosen = settings(engine)
    st.html(heading("Differences between clinicians"))
    if not chosen.adjudicates:
        st.html(paragraph(OFF.replace("`", "")))
        return
    differences = found_differences(person, engine)
    st.html(paragraph(ABOUT.format(points=chosen.adjudicate_from)))
    if not differences:
        st.html(paragraph("No two clinicians differ by that much."))
        return
    open_ = sum(not difference.is_done for difference in differences)
    st.html(paragraph(f"{len(differences):,} responses, {open_:,} of them not settled."))
    if person.role == Role.COORDINATOR and not all(
        difference.reading for difference in differences
    ):
        _assign(engine, person, chosen.adjudicate_by)
    rows = [_row(difference) for difference in differences[:MOST_SHOWN]]
    st.html(table("Differences between clinicians", HEADS, rows, words=4))
    if len(differences) > MOST_SHOWN:
        st.html(
            paragraph(f"The {MOST_SHOWN} largest are shown; whoever runs the server can list all.")
        )


def _row(difference: Disagreement) -> list[Cell]:
    return [
        *(difference.response_id, difference.benchmark, difference.criterion, state(difference)),
        *(f"{difference.points:g}", difference.clinicians),
    ]


def state(difference: Disagreement) -> str:
    """Return in words how far a difference is settled."""
    if difference.reading:
        return f"{'by' if difference.is_done else 'assigned:'} {NAMES[difference.reading]}"
    if difference.waits_for:
        readings = "1 reading" if difference.waits_for == 1 else f"{difference.waits_for} readings"
        return f"waits for {readings}"
    return "no"


def _assign(engine: Engine, person: Person, by: Settling) -> None:
    """Show who would settle what is ready, in counts, and give it out when asked."""
    with frame.refusals():
        plan = planned_settlement(person, engine, by)
        st.html("".join(_planned(plan)))
        number = len(plan.places)
        label = f"Assign {number} {NAMES[by]}{'s' if number != 1 and by == 'third' else ''}"
        if st.button(label, type="primary", key="settle-now", disabled=not number):
            number_assigned = settle(person, engine, plan)
            readings = "1 reading" if number_assigned == 1 else f"{number_assigned} readings"
            st.session_state[MADE] = f"{readings} assigned, after each clinician's other work."
            st.rerun()


def _planned(plan: Settlement) -> list[str]:
    """Return in words what would be given to whom, and what cannot be."""
    loads = ", ".join(f"{name} {load}" for name, load in plan.load.items() if load)
    messages = (
        [paragraph(f"By {NAMES[plan.reading]}, as the study says: {loads}.")] if loads else []
    )
    for responses, why in (
        (plan.waiting, "not rated by everybody assigned yet, so not ready to settle"),
        (
            plan.nobody,
            "known to every clinician who can rate: add a clinician, or choose consensus",
        ),
        (plan.naming, "with a comment that may name a model, so not for a consensus"),
        (plan.of_points, "rated by points of the case, which a third reading settles"),
    ):
        if responses:
            more = f" and {len(responses) - MOST_NAMED} more" if len(responses) > MOST_NAMED else ""
            listed = ", ".join(responses[:MOST_NAMED]) + more
            messages.append(notice(f"{why[:1].upper()}{why[1:]}: {listed}."))
    return messages


def _show_flags(engine: Engine, person: Person) -> None:
    flagged = assignments.flags(person, engine)
    st.html(heading("Flags"))
    if not flagged:
        st.html(paragraph("No current submission has a flag."))
        return
    unanswered = sum(not flag.answers for flag in flagged)
    st.html(paragraph(f"{len(flagged):,} flags, {unanswered:,} of them not answered."))
    st.html(table("Flags", FLAG_HEADS, [_flag_row(flag) for flag in flagged], words=6))
    if person.role == Role.COORDINATOR:
        _answer(engine, person, flagged)


def _flag_row(flagged: Flagged) -> list[Cell]:
    answer = flagged.answers[-1] if flagged.answers else None
    is_seen = ("yes" if flagged.seen else "not yet") if flagged.answers else None
    flag = FLAGS.get(flagged.flag, flagged.flag)
    return [flagged.response_id, flagged.rater, flag, flagged.text or None, answer, is_seen]


def _answer(engine: Engine, person: Person, flagged: list[Flagged]) -> None:
    """Ask which flag is answered, and how; the clinician sees the answer while rating."""
    labels = {flag.id: f"{flag.response_id}, {flag.rater}" for flag in flagged}
    with st.form("answer-flag", border=False):
        number = st.selectbox("Flag to answer", [*labels], format_func=labels.__getitem__)
        text = st.text_area(
            "Answer", max_chars=2000, help="The clinician reads it: name no model.", height=80
        )
        pressed = st.form_submit_button("Answer", type="primary")
    if pressed and number is not None:
        with frame.refusals():
            answer(person, engine, number, text)
            st.session_state[MADE] = "Answered; the clinician sees it while rating."
            st.rerun()
