"""The record: whether it is whole, and freezing the study."""

from collections.abc import Mapping
from datetime import datetime

import streamlit as st
from sqlalchemy import Engine

from annotate.screens.markup import Cell, good, heading, notice, refused, said, table
from data import queries
from data.errors import MedjuryError
from data.person import Person
from data.queries import Standing
from data.queries.record import Verified
from data.schema import Role, now
from data.store.steering import lock_study, reopen_study

CHECKED, LOCKED_AT = "record-checked", "record-head"
WORD = "lock"
KEEP = (
    "Keep this hash with somebody who cannot write to the database, such as an ethics board: it "
    "proves later that nothing was cut off."
)
ABOUT_LOCK = (
    "Locking is final for everybody at work: nobody rates, imports or assigns afterwards, open drafts "
    "stay unsubmitted, and only the reading goes on. Reopening needs a reason, which stays in the "
    "record and in every later report."
)


def show(engine: Engine, person: Person) -> None:
    """Show what was done to the study as a whole; check the record; lock or reopen."""
    standing = queries.standing(person, engine)
    st.html(heading("Record") + said(f"{standing.events:,} events, each sealed by the next."))
    names = queries.names_of_actors(person, engine)
    rows: list[list[Cell]] = [
        [f"{at:%Y-%m-%d %H:%M}", act, named(by, names), reason or None]
        for act, at, by, reason in standing.steered
    ]
    if rows:
        st.html(table("Locks and unblindings", ("When (UTC)", "Act", "By", "Reason"), rows, 4))
    else:
        st.html(said("It was never locked, reopened or unblinded."))
    _check(engine, person)
    if person.role == Role.COORDINATOR:
        _reopen(engine, person) if standing.locked else _lock(engine, person, standing)


def named(actor: str, names: Mapping[str, str]) -> str:
    """Return who acted as the record has it, with the name where that may be seen."""
    return f"{names[actor]} ({actor})" if actor in names else actor


def _check(engine: Engine, person: Person) -> None:
    """Check every event and every row that an event vouches for."""
    st.html(heading("Check the record"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        head = st.text_input("A head kept elsewhere (optional)", key="head", max_chars=64)
        pressed = st.button("Check now", key="verify-now")
    if pressed:
        try:
            with st.spinner("Checking every event and row"):
                found = queries.checked_record(person, engine, head or None)
        except MedjuryError as error:
            st.html(refused(str(error)))
            return
        st.session_state[CHECKED] = (found, now())
    if kept := st.session_state.get(CHECKED):
        _show_verified(*kept)


def _show_verified(found: Verified, at: datetime) -> None:
    """Show what a check found, and when: the study may have changed since."""
    rows = ", ".join(f"{number:,} {name}s" for name, number in found.rows.items())
    told = f"{found.events:,} events vouch for {rows}. Checked at {at:%H:%M} UTC."
    if found.findings:
        st.html("".join(refused(one) for one in found.findings))
        st.html(said(f"{len(found.findings)} findings. {told}"))
    else:
        st.html(good(f"Whole: no findings. {told}"))
    st.html(said(f"Head of the chain. {KEEP}"))
    st.code(found.head, language=None, wrap_lines=True)


def _lock(engine: Engine, person: Person, standing: Standing) -> None:
    """Ask for the word before the study is frozen."""
    st.html(heading("Lock the study") + notice(ABOUT_LOCK))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        typed = st.text_input(f"Type {WORD} to confirm", key=f"lock-word-{standing.events}")
        pressed = st.button("Lock the study", key="lock-now")
    if not pressed:
        return
    if typed.strip().lower() != WORD:
        st.html(refused(f"Not locked: type {WORD} first."))
        return
    try:
        st.session_state[LOCKED_AT] = lock_study(person, engine)
    except MedjuryError as error:
        st.html(refused(str(error)))
        return
    st.rerun()


def _reopen(engine: Engine, person: Person) -> None:
    """Show the head at the lock, and ask for a reason before the study is opened again."""
    if head := st.session_state.get(LOCKED_AT):
        st.html(good(f"Locked. {KEEP}"))
        st.code(head, language=None, wrap_lines=True)
    st.html(heading("Reopen the study"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        reason = st.text_input("Reason; it stays in the record", key="reopen-why")
        pressed = st.button("Reopen", key="reopen-now")
    if not pressed:
        return
    try:
        reopen_study(person, engine, reason)
    except MedjuryError as error:
        st.html(refused(str(error)))
        return
    st.session_state.pop(LOCKED_AT, None)
    st.rerun()
