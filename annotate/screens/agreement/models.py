"""Models, on the agreement screen: which leads, by whose scores, how sure that is, and what it cost.

Comparing models unblinds the study: only when it is locked, or with a recorded reason.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, draw
from annotate.figures import Found
from annotate.screens import controls, frame
from calibration.tables.models import CLINICIANS, MEANING, ModelRow
from calibration.tables.numbers import known
from data.person import Person, is_blind, only
from data.schema import Role
from data.study import steering
from medjury.services.models import ModelsRequest, lift

COMPARED, CHECK, COSTS = (
    f"annotate.figures:{name}" for name in ("compared_models", "check_models", "models_costs")
)
ABOUT = (
    "Which model is better: by the clinicians' ratings, by the jury's, and by the jury's ratings "
    "corrected by the clinicians'?"
)
CORRECTED = (
    "Corrected: the jury's means plus the difference between clinicians and jury on "
    "responses that both scored. This is right where those responses are a random sample."
)
LONGEST_REASON, MOST_BYTES = 300, 100_000
BLIND = "This study is open and blinded: comparing models would reveal how good each author is."
LOCKED = "This study is locked and not unblinded yet."
WAIT = {
    True: "A coordinator makes the first comparison, which is recorded.",
    False: "A coordinator locks the study when all have rated, or unblinds it with a reason.",
}
FIRST_STEP = {
    True: "The first comparison unblinds the study. That stays in the record and in every later report.",
    False: (
        "Lock it under Export, Record, when all have rated. Or unblind it now, while some "
        "may still rate: who, when and why stay in the record and in every later report."
    ),
}
SURE = "I know that this cannot be undone"
ASKED = "What each model cost to run: a CSV file with the columns model, usd (optional)"
TOO_LONG = "A file of costs has one line per model, at most 100,000 bytes; nothing of {} was read."


def show(engine: Engine, person: Person) -> None:
    """Show the comparison where the blind is lifted; else what it takes to lift it."""
    st.markdown(ABOUT)
    standing = steering.standing(person, engine)
    if is_blind(engine):
        _blind(engine, person, locked=standing.locked is not None)
        return
    request = controls.of_models(engine, person)
    coming: Future[Found] = compute.ask(person, engine, COMPARED, request)
    found = frame.computed(coming, "The models are compared, resample by resample")
    if found is None:
        return
    if found["decision"] is None:
        frame.say_simulated(standing)
    if found["pairs"] is not None:
        draw.table(found["pairs"])
    if found["decision"] is None:
        return
    draw.decision(found["decision"])
    draw.table(found["models"])
    corrected = any(row.by == "corrected" for row in found["rows"])
    st.caption(f"{MEANING} {CORRECTED}" if corrected else MEANING)
    for name in ("differences", "categories"):
        if found[name] is not None:
            with st.expander(found[name].caption):
                draw.table(found[name], titled=False)
    show_costs(engine, person, found["rows"])


def _blind(engine: Engine, person: Person, *, locked: bool) -> None:
    """Say why models are not compared, and let a coordinator lift the blind."""
    is_coordinator = person.role == Role.COORDINATOR
    st.info(f"{LOCKED if locked else BLIND} {(FIRST_STEP if is_coordinator else WAIT)[locked]}")
    if not is_coordinator:
        return
    with st.form("lift", border=False):
        reason = "" if locked else st.text_input("Reason", max_chars=LONGEST_REASON, key="reason")
        sure = st.checkbox(SURE, key="sure")
        pressed = st.form_submit_button("Unblind and compare", type="primary")
    if not pressed:
        return
    if not sure:
        st.error(f'Tick "{SURE}".')
    elif not (locked or reason.strip()):
        st.error("Give a reason.")
    else:
        with frame.refusals():
            _lift(person, engine, reason.strip())
            st.rerun()


@only(Role.COORDINATOR)
def _lift(person: Person, engine: Engine, reason: str) -> None:
    """Lift the blind if the models can be compared at all, else raise why not."""
    request = ModelsRequest(by=(CLINICIANS,))
    coming: Future[bool] = compute.ask(person, engine, CHECK, request)
    compute.waited(coming, "Looking at the ratings")
    lift(engine, reason, person.actor)


def show_costs(engine: Engine, person: Person, rows: Sequence[ModelRow]) -> None:
    """Ask for a file of costs; show cost beside the win rate by the first way of scoring there is."""
    with st.expander("Cost beside win rate"):
        upload = st.file_uploader(ASKED, type=["csv", "toml"], max_upload_size=1, key="costs")
        if upload is None:
            return
        if upload.size > MOST_BYTES:
            st.error(TOO_LONG.format(upload.name))
            return
        kind = "toml" if upload.name.lower().endswith(".toml") else "csv"
        file = upload.getvalue(), kind
        coming: Future[Mapping[str, float]] = compute.ask(person, engine, COSTS, file)
        costs = frame.computed(coming, "Reading what was spent")
        if costs is None:
            return
        by = rows[0].by
        priced = [
            row for row in rows if row.by == by and row.model in costs and known(row.win_rate)
        ]
        draw.rows(
            f"Cost, and win rate by {by}",
            [
                {"Model": row.model, "US dollars": costs[row.model], "Win rate": row.win_rate}
                for row in sorted(priced, key=lambda row: -row.win_rate)
            ],
        )
