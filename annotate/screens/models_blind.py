"""Comparing models lifts the blind: only on a locked study, or by a recorded reason."""

import html
from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import worker
from annotate.screens import frame
from calibration.models.rows import CLINICIANS
from data.errors import MedjuryError
from data.person import Person, only
from data.queries import Standing
from data.schema import Role
from medjury.services.models import ModelsRequest, lift

LONGEST_REASON = 300
BLIND = "This study is open and blind: comparing models would tell how good each author is."
LOCKED = "This study is locked, and its blind is not lifted yet."
WAIT = {
    True: "A coordinator makes the first comparison, which is recorded.",
    False: "A coordinator locks the study when all have rated, or lifts the blind with a reason.",
}
FIRST = {
    True: "The first comparison lifts the blind. That stays in the record and in every later report.",
    False: (
        "Lock it under Study, Record, when all have rated. Or lift the blind now, while some may "
        "still rate: who, when and why stay in the record and in every later report."
    ),
}
SURE = "I know that this cannot be undone"
LACKING = f'Tick "{SURE}".'


def is_lifted(engine: Engine, person: Person, standing: Standing) -> bool:
    """Tell whether models may be compared; if not, show why and what a coordinator can do."""
    acts = [act for act, *_ in standing.steered if act in ("unblinded", "reopened")]
    if acts and acts[-1] == "unblinded":
        return True
    locked = standing.locked is not None
    todo = (FIRST if person.role == Role.COORDINATOR else WAIT)[locked]
    frame.empty(LOCKED if locked else BLIND, todo)
    if person.role == Role.COORDINATOR:
        _ask(engine, person, locked=locked)
    return False


def _ask(engine: Engine, person: Person, *, locked: bool) -> None:
    """Ask for a reason where one is needed, and lift the blind."""
    with st.form("lift", border=False):
        reason = "" if locked else st.text_input("Reason", max_chars=LONGEST_REASON, key="reason")
        sure = st.checkbox(SURE, key="sure")
        pressed = st.form_submit_button("Lift the blind and compare", type="primary")
    if not pressed:
        return
    if not sure or not (locked or reason.strip()):
        lacking = LACKING if not sure else "Give a reason."
        st.html(f'<p class="mj-refused" role="alert">{html.escape(lacking)}</p>')
    elif _lift(person, engine, reason.strip()):
        st.rerun()


@only(Role.COORDINATOR)
def _lift(person: Person, engine: Engine, reason: str) -> bool:
    """Lift the blind if the models can be compared at all; tell whether it was lifted."""
    request = ModelsRequest(by=(CLINICIANS,))
    coming: Future[bool] = worker.ask(person, engine, "annotate.figures.models:check", request)
    if frame.computed(coming, "Looking at the ratings") is None:
        return False
    try:
        lift(engine, reason, person.actor)
    except MedjuryError as error:
        frame.empty(str(error))
        return False
    return True
