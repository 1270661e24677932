"""The record of a study: checked, locked and reopened, and the lifting of the blind."""

from collections.abc import Mapping
from datetime import datetime

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame
from annotate.screens.frame import show_heading, show_text
from data.files import cells, csv_bytes
from data.person import Person, only
from data.safe_text import on_page
from data.schema import Role, now
from data.study import people, steering
from data.study.settings import unblind
from data.study.steering import StudyStanding, lock_study, reopen_study
from data.study.verify import Verified

UNBLIND, CSV = "unblind", "text/csv"
WHO_WROTE = ("response_id", "model")
ABOUT_UNBLINDING = (
    "Shows who wrote which response. This cannot be taken back: every later report says when the blind "
    "was lifted, by whom and why. Clinicians who rate afterwards are still shown no author."
)
CHECKING = "Every event is hashed again, and every row that an event vouches for is compared"
CHECKED, LOCKED_AT = "record-checked", "record-head"
WORD = "lock"
ABOUT_RECORD = (
    "Was anything changed or taken out behind the record? {:,} events say who did what, and when. Each "
    "carries the fingerprint (hash) of the one before, so that a check finds what was changed later."
)
KEEP = (
    "Give this hash to somebody who cannot write to the database, such as an ethics board: "
    "with it, a later check shows whether events were removed."
)
ABOUT_LOCK = (
    "Locking stops all work: nobody can rate, import or assign afterwards, and open drafts "
    "stay unsubmitted. Results can still be read. Reopening needs a reason, which stays in "
    "the record and in every later report."
)


def show(engine: Engine, person: Person) -> None:
    """Show what was done to the study as a whole; check the record; lock or reopen."""
    standing = steering.standing(person, engine)
    show_heading("Record", ABOUT_RECORD.format(standing.events))
    _check(engine, person)
    names = people.names_of_actors(person, engine)
    rows = [
        {"When (UTC)": at, "Act": act, "By": actor_label(by, names), "Reason": reason}
        for act, at, by, reason in standing.steered
    ]
    if rows:
        frame.show_rows("Locks and unblindings", rows)
    else:
        show_text("It was never locked, reopened or unblinded.")
    if person.role == Role.COORDINATOR:
        left, right = st.columns(2)
        with left:
            _reopen(engine, person) if standing.locked else _lock(engine, person, standing)
        with right:
            _unblind(engine, person)


def actor_label(actor: str, names: Mapping[str, str]) -> str:
    """Return who acted as the record has it, with the name where that may be seen."""
    return f"{names[actor]} ({actor})" if actor in names else actor


def _check(engine: Engine, person: Person) -> None:
    """Check every event and every row that an event vouches for."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        head = st.text_input("Hash kept outside the study (optional)", key="head", max_chars=64)
        pressed = st.button("Check now", key="verify-now")
    with frame.refusals():
        if pressed:
            with st.spinner(CHECKING, show_time=True):
                verified = steering.checked_record(person, engine, head or None)
            st.session_state[CHECKED] = (verified, now())
        if checked := st.session_state.get(CHECKED):
            _show_verified(*checked)


def _show_verified(verified: Verified, at: datetime) -> None:
    """Show what a check found, and when: the study may have changed since."""
    rows = sum(verified.rows.values())
    summary = f"{verified.events:,} events checked against {rows:,} rows, at {at:%H:%M} UTC."
    for finding in verified.findings:
        st.error(on_page(finding))
    if verified.findings:
        show_text(f"{len(verified.findings)} findings. {summary}")
    else:
        st.success(on_page(f"Whole: no findings. {summary}"))
    show_text(f"Latest hash of the record. {KEEP}")
    st.code(verified.head, language=None, wrap_lines=True)


def _lock(engine: Engine, person: Person, standing: StudyStanding) -> None:
    """Ask for the word before the study is frozen."""
    show_heading("Lock the study")
    st.warning(on_page(ABOUT_LOCK))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        typed = st.text_input(f"Type {WORD} to confirm", key=f"lock-word-{standing.events}")
        pressed = st.button("Lock the study", key="lock-now")
    if not pressed:
        return
    if typed.strip().lower() != WORD:
        st.error(f"Not locked: type {WORD} first.")
        return
    with frame.refusals():
        st.session_state[LOCKED_AT] = lock_study(person, engine, person.actor)
        st.rerun()


def _reopen(engine: Engine, person: Person) -> None:
    """Show the head at the lock, and ask for a reason before the study is opened again."""
    if head := st.session_state.get(LOCKED_AT):
        st.success(on_page(f"Locked. {KEEP}"))
        st.code(head, language=None, wrap_lines=True)
    show_heading("Reopen the study")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        reason = st.text_input("Reason; it stays in the record", key="reopen-why")
        pressed = st.button("Reopen", key="reopen-now")
    if not pressed:
        return
    with frame.refusals():
        reopen_study(person, engine, person.actor, reason)
        st.session_state.pop(LOCKED_AT, None)
        st.rerun()


def _unblind(engine: Engine, person: Person) -> None:
    """Ask for a reason and the word before the blind is lifted, then hand the authors over."""
    show_heading("Lift the blind")
    st.warning(on_page(ABOUT_UNBLINDING))
    with (
        st.form("unblind", border=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        reason = st.text_input("Reason for lifting the blind")
        typed = st.text_input(f"Type {UNBLIND} to confirm")
        pressed = st.form_submit_button("Lift the blind")
    if pressed and typed.strip().lower() != UNBLIND:
        st.error(f"Not lifted: type {UNBLIND} first.")
    elif pressed:
        with frame.refusals():
            rows = unblinded(person, engine, reason)
            st.success("Lifted, and in the record.")
            body = csv_bytes(WHO_WROTE, cells(WHO_WROTE, rows))
            st.download_button("Save who wrote what", body, "authors.csv", CSV, on_click="ignore")


@only(Role.COORDINATOR)
def unblinded(person: Person, engine: Engine, reason: str) -> list[tuple[str, str]]:
    """Lift the blind in a coordinator's name, and return (response_id, model) of every response."""
    return unblind(engine, person.actor, reason)
