"""The watch on the ward screen: its alarms, what was done about them, and what it took in."""

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame
from annotate.screens.frame import Cell, caption, good, heading, notice, paragraph, table
from calibration.messages.form import counted
from calibration.tables.numbers import DASH, fixed, interval
from data import queries
from data.person import Person
from data.queries.watch import AlarmView, Intakes, alarms_raised, refusals, watched_so_far
from data.store.watch import LONGEST_DONE, acknowledge

ABOUT = (
    "A watch takes in outputs as they come, has the jury rate them and clinicians a sample, and raises an "
    "alarm when their agreement falls. Whoever runs the server starts it."
)
NO_WATCH = "No watch has run on this study yet: nothing was taken in, so no alarm can be raised."
NO_ALARM = "No alarm has been raised."
ALL_DONE = "No alarm is open."
HEADS = ("Raised", "Benchmark", "Period", "ICC (95 % interval)", "Compared with", "To act", "State")
REFUSED = ("When", "Bytes", "Why")
WHY = {
    "BadRow": "a row is wrong",
    "BadFile": "cannot be read as a file of outputs",
    "Conflict": "contradicts what the study has",
    "OffScale": "a score is off its scale",
}
ABOUT_REFUSED = (
    "Nothing of a refused file is stored. It lies in the folder refused, with the reason beside it: mend "
    "it, and drop it again."
)
STORED = "alarm-acknowledged"


def show(engine: Engine, person: Person) -> None:
    """Show the alarms, the open ones to be acknowledged, then what was taken in."""
    st.html(heading("Watch") + paragraph(ABOUT))
    if message := st.session_state.pop(STORED, None):
        st.html(good(message))
    taken = watched_so_far(person, engine)
    has_run = taken.last is not None or bool(taken.refused)
    _alarms(engine, person, has_run=has_run)
    if has_run:
        _taken(engine, person, taken)


def _alarms(engine: Engine, person: Person, *, has_run: bool) -> None:
    found = alarms_raised(person, engine)
    open_alarms = [alarm for alarm in found if alarm.is_open]
    for alarm in open_alarms:
        st.html(notice(told(alarm)))
        _form(engine, person, alarm)
    if not found:
        st.html(good(NO_ALARM) if has_run else paragraph(NO_WATCH))
        return
    if not open_alarms:
        st.html(good(ALL_DONE))
    names = queries.names_of_actors(person, engine)
    rows: list[list[Cell]] = [
        [
            f"{alarm.at:%d %b %Y, %H:%M} UTC",
            alarm.benchmark,
            str(alarm.figures.get("period", DASH)),
            _icc(alarm),
            f"{alarm.figures.get('below', DASH)} {fixed(alarm.figures.get('target'))}",
            alarm.owner,
            _state(alarm, names.get(alarm.by, alarm.by)),
        ]
        for alarm in found
    ]
    st.html(table("Alarms", HEADS, rows, words=7))


def told(alarm: AlarmView) -> str:
    """Say what an open alarm is, who is to act, what is due, and whether they were told."""
    sent = " and ".join(sorted(alarm.sent))
    reached = f"Sent by {sent}." if sent else "Not sent to anybody yet."
    failed = f" The last message failed ({alarm.failure})." if alarm.failure else ""
    return (
        f"Agreement has fallen: {alarm.benchmark}, {alarm.figures.get('period')}, ICC {_icc(alarm)}. "
        f"{alarm.owner} is to act by {alarm.due:%d %b %Y}: {alarm.action} {reached}{failed}"
    )


def _icc(alarm: AlarmView) -> str:
    figures = alarm.figures
    ends = interval(figures.get("low"), figures.get("high"), 2)
    return f"{fixed(figures.get('icc'))}{f' ({ends})' if ends else ''}"


def _state(alarm: AlarmView, by: str) -> str:
    if alarm.done_at is None:
        return f"open, due {alarm.due:%d %b %Y}"
    return f"{alarm.done_at:%d %b %Y}, {by}: {alarm.done}"


def _form(engine: Engine, person: Person, alarm: AlarmView) -> None:
    """Let somebody say what was done; an alarm is acknowledged once."""
    with st.form(f"alarm-{alarm.id}", border=False):
        done = st.text_area("What was done about it", max_chars=LONGEST_DONE)
        pressed = st.form_submit_button("Acknowledge", type="primary")
    if pressed:
        with frame.refusals():
            acknowledge(person, engine, alarm.id, done)
            st.session_state[STORED] = "Acknowledged. The record keeps who did what, and when."
            st.rerun()


def _taken(engine: Engine, person: Person, taken: Intakes) -> None:
    """Show what came, what was drawn of it, and what was refused."""
    st.html(heading("Taken in"))
    when = f", the last on {taken.last:%d %b %Y, %H:%M} UTC" if taken.last else ""
    st.html(
        paragraph(
            f"{counted(taken.drops, 'drop')}{when}: {counted(taken.responses, 'output')} that were new, "
            f"{taken.unchanged:,} that the study had. {taken.drawn:,} of the new ones were drawn for "
            "clinicians, at random within each stratum."
        )
    )
    if taken.refused:
        rows: list[list[Cell]] = [
            [f"{one.at:%d %b %Y, %H:%M} UTC", f"{one.size:,}", WHY.get(one.reason, one.reason)]
            for one in refusals(person, engine)
        ]
        st.html(table(f"Refused: {taken.refused}", REFUSED, rows, words=1) + caption(ABOUT_REFUSED))
