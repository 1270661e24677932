"""What waits for somebody: flags, differences, recusals, silent clinicians, and a jury that drifts."""

from concurrent.futures import Future
from datetime import UTC, datetime
from urllib.parse import urlsplit

import streamlit as st
from sqlalchemy import Engine

from annotate import compute
from annotate.figures import Found
from annotate.screens import frame
from annotate.screens.frame import show_heading, show_text
from calibration.decision import DecisionKind
from calibration.notes import counted
from calibration.values import MonitoringOptions
from data.card import Settling
from data.person import Person
from data.safe_text import on_page
from data.schema import Role, now
from data.study import assignments, people, rubrics
from data.study.adjudication import Disagreement
from data.study.assignments import LONG_RUN, Flagged, odd_habits
from data.study.standing import settings
from medjury.services import reminders
from medjury.services.adjudication import (
    Settlement,
    answer,
    found_differences,
    planned_settlement,
    settle,
)

FLAGS = {
    "flag": "something is odd",
    "not_enough_context": "not enough context",
    "names_author": "names its author",
    "both_unsafe": "both unsafe",
}
MADE = "to-do-made"
OPEN_FLAGS, MOST_NAMED = 10, 12
ABOUT_FLAGS = "What did clinicians find odd while they rated? They read your answer there."
ABOUT_DIFFERENCES = (
    "Which responses do clinicians see differently, by {points:g} points or more on a criterion? A third "
    "reading is by a clinician who is shown nothing of the others; a consensus is by one who is shown "
    "their scores and comments, without names. Both are stored apart from the independent ratings."
)
OFF = (
    "Differences between clinicians are not settled in this study. Set under Set up, Settings, from "
    "how many points apart they are to be settled."
)
NAMES: dict[Settling, str] = {"third": "third reading", "consensus": "consensus"}
DUE = (
    "Who has had open work for {days} days and finished none of it? A reminder has no score and "
    "nothing of a patient."
)
ABOUT_HASTE = (
    "Who rates faster than a response can be read, or gives the same scores over and over? Their ratings "
    "stay and count; they are in no pace that plans, and Agreement says what hangs on them."
)
HASTE_COLUMNS = {
    "Too fast to read": "Ratings in less time than the response alone can be scanned for a word: 600 words "
    "a minute (Carver 1992)",
    "Median seconds": "Active on the page of a response",
    "Same scores in a row": f"Pointed out from {LONG_RUN} on",
}
FALLEN = "The jury's agreement with the clinicians has fallen: see Monitor."
WATCHING = "Has the jury's agreement fallen? It is computed for each month"


def show(engine: Engine, person: Person) -> None:
    """Show all that waits, each with what can be done about it here."""
    frame.show_message(MADE)
    coordinates = person.role == Role.COORDINATOR
    flagged = assignments.flags(person, engine)
    differences = found_differences(person, engine) if settings(engine).adjudicates else []
    shown = [
        _flags(engine, person, flagged),
        _differences(engine, person, differences),
        _recusals(engine, person),
        coordinates and _reminders(engine, person),
        coordinates and _haste(engine, person),
        _alarm(engine, person),
    ]
    if not any(shown):
        st.success("Nothing waits: no flag, difference, recusal, reminder or alarm is open.")
    if not settings(engine).adjudicates:
        st.caption(OFF)


def _flags(engine: Engine, person: Person, flagged: list[Flagged]) -> bool:
    """Show the flags, those without an answer with a field for it; return whether any is open."""
    if not flagged:
        return False
    unanswered = [flag for flag in flagged if not flag.answers]
    show_heading(f"{counted(len(flagged), 'flag')}, {len(unanswered)} not answered", ABOUT_FLAGS)
    for flag in unanswered[:OPEN_FLAGS]:
        with st.container(border=True):
            show_text(f"{flag.response_id}, {flag.rater}: {FLAGS.get(flag.flag, flag.flag)}")
            if flag.text:
                st.text(flag.text)
            if person.role == Role.COORDINATOR:
                _answer(engine, person, flag)
    if len(unanswered) > OPEN_FLAGS:
        st.caption(f"{len(unanswered) - OPEN_FLAGS} more follow when these are answered.")
    if answered := [flag for flag in flagged if flag.answers]:
        with st.expander(f"{counted(len(answered), 'answered flag')}"):
            frame.show_rows("Answered flags", list(map(_answered, answered)))
    return bool(unanswered)


def _answer(engine: Engine, person: Person, flag: Flagged) -> None:
    with st.form(f"answer-{flag.id}", border=False):
        field, press = st.columns((5, 1), vertical_alignment="bottom")
        text = field.text_area(
            f"Answer to {flag.rater} on {flag.response_id}",
            max_chars=2000,
            help="The clinician reads it: name no model.",
            height=70,
        )
        if not press.form_submit_button("Answer"):
            return
    with frame.refusals():
        answer(person, engine, flag.id, text)
        st.session_state[MADE] = "Answered; the clinician sees it while rating."
        st.rerun()


def _answered(flag: Flagged) -> dict[str, object]:
    return {
        "Response": flag.response_id,
        "Clinician": flag.rater,
        "Flag": FLAGS.get(flag.flag, flag.flag),
        "Comment": flag.text,
        "Answer": flag.answers[-1],
        "Seen": "yes" if flag.seen else "not yet",
    }


def _differences(engine: Engine, person: Person, differences: list[Disagreement]) -> bool:
    """Show the differences, and who would settle what is ready; return whether any is open."""
    if not differences:
        return False
    chosen = settings(engine)
    open_ = sum(not difference.is_done for difference in differences)
    show_heading(
        f"{counted(len(differences), 'difference')} between clinicians, {open_} not settled",
        ABOUT_DIFFERENCES.format(points=chosen.adjudicate_from),
    )
    if person.role == Role.COORDINATOR and not all(one.reading for one in differences):
        _assign(engine, person, chosen.adjudicate_by)
    rows = [
        {
            "Response": one.response_id,
            "Benchmark": one.benchmark,
            "On": one.criterion,
            "Settled": state(one),
            "Points apart": one.points,
            "Clinicians": one.clinicians,
        }
        for one in differences
    ]
    about = {
        "On": "The criterion on which two clinicians are farthest apart",
        "Points apart": "Between the highest and the lowest of them on that criterion",
        "Clinicians": "How many rated it by themselves",
    }
    frame.show_rows("Differences between clinicians", rows, about)
    return open_ > 0


def state(difference: Disagreement) -> str:
    """Return in words how far a difference is settled."""
    if difference.reading:
        return f"{'by' if difference.is_done else 'assigned:'} {NAMES[difference.reading]}"
    return f"waits for {counted(difference.waits_for, 'reading')}" if difference.waits_for else "no"


def _assign(engine: Engine, person: Person, by: Settling) -> None:
    """Show who would settle what is ready, in counts, and give it out when asked."""
    with frame.refusals():
        plan = planned_settlement(person, engine, by)
        _planned(plan)
        number = len(plan.places)
        label = f"Assign {number} {NAMES[by]}{'s' if number != 1 and by == 'third' else ''}"
        if st.button(label, type="primary", key="settle-now", disabled=not number):
            given = counted(settle(person, engine, plan), "reading")
            st.session_state[MADE] = f"{given} assigned, after each clinician's other work."
            st.rerun()


def _planned(plan: Settlement) -> None:
    """Show what would be given to whom, and what cannot be."""
    if loads := ", ".join(f"{name} {load}" for name, load in plan.load.items() if load):
        show_text(f"By {NAMES[plan.reading]}, as the study says: {loads}.")
    for responses, why in (
        (plan.waiting, "Not rated by everybody assigned yet, so not ready to settle"),
        (
            plan.nobody,
            "Known to every clinician who can rate: add a clinician, or choose consensus",
        ),
        (plan.naming, "With a comment that may name a model, so not for a consensus"),
        (plan.of_points, "Rated by points of the case, which a third reading settles"),
    ):
        if responses:
            rest = len(responses) - MOST_NAMED
            more = f" and {rest} more" if rest > 0 else ""
            st.warning(on_page(f"{why}: {', '.join(responses[:MOST_NAMED])}{more}."))


def _recusals(engine: Engine, person: Person) -> bool:
    """Show who gave responses back; return whether any is still without a reader."""
    gave_back = [one for one in people.workloads(person, engine) if one.recused]
    if not gave_back:
        return False
    show_heading("Recusals", "Which clinicians gave responses back, and who reads these now?")
    named = ", ".join(f"{one.handle} {one.recused}" for one in gave_back)
    show_text(
        f"Given back: {named}. Each goes to the next clinician who has time; what stays open is "
        "dealt anew under Set up, Clinicians."
    )
    return True


def _reminders(engine: Engine, person: Person) -> bool:
    """Show who is due a reminder: to be sent where there is a mail server, else to copy."""
    base, days = urlsplit(st.context.url or ""), settings(engine).remind_days
    due = reminders.due(person, engine, now(), f"{base.scheme}://{base.netloc}")
    if not due:
        return False
    show_heading(f"{counted(len(due), 'reminder')} due", DUE.format(days=days))
    with frame.refusals():
        server = reminders.mail_server()
        with_address = [reminder for reminder in due if reminder.email]
        if server and with_address:
            names = ", ".join(one.name for one in with_address)
            show_text(f"By mail from {server.sender}: {names}.")
            if st.button(f"Send {len(with_address)} by mail", key="remind-now", type="primary"):
                sent = reminders.send(person, engine, server, with_address)
                st.session_state[MADE] = f"Sent to {', '.join(sent)}, and in the record."
                st.rerun()
    chosen = st.selectbox("Clinician", [reminder.name for reminder in due], key="remind")
    st.code(next(one.text for one in due if one.name == chosen), language=None, wrap_lines=True)
    return True


def _haste(engine: Engine, person: Person) -> bool:
    """Show who rates faster than one can read, or the same over and over; return whether any does."""
    odd = odd_habits(person, engine)
    if not odd:
        return False
    show_heading(f"{counted(len(odd), 'clinician')} to speak to", ABOUT_HASTE)
    rows = [
        {
            "Clinician": one.rater,
            "Too fast to read": one.n_hasty,
            "Timed": one.n_timed,
            "Median seconds": one.median_seconds,
            "Same scores in a row": one.longest_run,
        }
        for one in odd
    ]
    frame.show_rows("Haste and straight lines", rows, HASTE_COLUMNS)
    return True


def _alarm(engine: Engine, person: Person) -> bool:
    """Say whether the jury's agreement has fallen since a report was frozen."""
    if not rubrics.frozen_reports(person, engine):
        return False
    options = MonitoringOptions(today=datetime.now(UTC).date())
    coming: Future[Found] = compute.ask(person, engine, "annotate.figures:monitoring", options)
    found = frame.computed(coming, WATCHING)
    if found is None or found["decision"].kind is not DecisionKind.FALLEN:
        return False
    st.error(f"{FALLEN} {on_page(found['decision'].headline)}")
    return True
