"""The models screen: which model leads, by whose scores, how sure that is, and what it cost.

Comparing models unblinds the study: only when it is locked, or with a recorded reason.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, tables
from annotate.results import CostsRequest, ModelsFigures
from annotate.screens import controls, frame
from annotate.screens.frame import caption, heading, paragraph, refused
from calibration.decision import DecisionKind
from calibration.tables.models import CLINICIANS, MEANING, NO_CATEGORY, ModelRow
from calibration.tables.numbers import known
from data.errors import MedjuryError
from data.person import Person, is_blind, only
from data.schema import Role
from data.study import steering
from data.study.steering import StudyStanding
from medjury.services.models import ModelsRequest, lift

ABOUT = (
    "Which model is better? By the clinicians' ratings, by the jury's, and by the jury's ratings "
    "corrected by the clinicians'."
)
CORRECTED = (
    "Corrected: the jury's means plus the difference between clinicians and jury on "
    "responses that both scored. This is right where those responses are a random sample."
)
LONGEST_REASON = 300
BLIND = "This study is open and blinded: comparing models would reveal how good each author is."
LOCKED = "This study is locked and not unblinded yet."
WAIT = {
    True: "A coordinator makes the first comparison, which is recorded.",
    False: "A coordinator locks the study when all have rated, or unblinds it with a reason.",
}
FIRST_STEP = {
    True: "The first comparison unblinds the study. That stays in the record and in every later report.",
    False: (
        "Lock it under Study, Record, when all have rated. Or unblind it now, while some "
        "may still rate: who, when and why stay in the record and in every later report."
    ),
}
SURE = "I know that this cannot be undone"
LACKING = f'Tick "{SURE}".'
FILE_KINDS = ("csv", "toml")
MOST_BYTES = 100_000
ASKED = "What each model cost to run: a CSV file with the columns model, usd (optional)"
NONE_GIVEN = "The study does not know what the models cost: upload a file above to see cost beside win rates."
TOO_LONG = "A file of costs has one line per model; nothing of this one was read."
OF_SIMULATED = " Some raters are simulated."


def show(engine: Engine, person: Person) -> None:
    """Show the comparison where the blind is lifted; else what it takes to lift it."""
    standing = steering.standing(person, engine)
    frame.begin(person, "Models", ABOUT, "monitoring.css")
    if not is_lifted(engine, person, standing):
        return
    compute.prepare()
    request = controls.of_models(engine, person)
    coming: Future[ModelsFigures] = compute.ask(
        person, engine, "annotate.analyses:compared_models", request
    )
    figures = frame.computed(coming, "The models are compared, resample by resample")
    if figures is None:
        return
    st.html(tables.of_decision(figures.decision))
    if standing.simulated and figures.decision.kind is not DecisionKind.SIMULATED:
        st.html(paragraph(frame.SIMULATED))
    is_corrected = any(row.by == "corrected" for row in figures.rows)
    meaning = f"{MEANING} {CORRECTED}" if is_corrected else MEANING
    st.html(tables.of_table(figures.models) + caption(meaning))
    if figures.differences is not None:
        st.html(tables.folded(figures.differences.caption, tables.of_table(figures.differences)))
    _by_category(figures.rows, OF_SIMULATED if standing.simulated else "")
    show_costs(engine, person, figures)


def is_lifted(engine: Engine, person: Person, standing: StudyStanding) -> bool:
    """Tell whether models may be compared; if not, show why and what a coordinator can do."""
    if not is_blind(engine):
        return True
    locked = standing.locked is not None
    todo = (FIRST_STEP if person.role == Role.COORDINATOR else WAIT)[locked]
    frame.empty(LOCKED if locked else BLIND, todo)
    if person.role == Role.COORDINATOR:
        _ask_to_lift(engine, person, locked=locked)
    return False


def _ask_to_lift(engine: Engine, person: Person, *, locked: bool) -> None:
    """Ask for a reason where one is needed, and lift the blind."""
    with st.form("lift", border=False):
        reason = "" if locked else st.text_input("Reason", max_chars=LONGEST_REASON, key="reason")
        sure = st.checkbox(SURE, key="sure")
        pressed = st.form_submit_button("Unblind and compare", type="primary")
    if not pressed:
        return
    if not sure or not (locked or reason.strip()):
        lacking = LACKING if not sure else "Give a reason."
        st.html(refused(lacking))
    elif _lift(person, engine, reason.strip()):
        st.rerun()


@only(Role.COORDINATOR)
def _lift(person: Person, engine: Engine, reason: str) -> bool:
    """Lift the blind if the models can be compared at all; tell whether it was lifted."""
    request = ModelsRequest(by=(CLINICIANS,))
    coming: Future[bool] = compute.ask(person, engine, "annotate.analyses:check_models", request)
    if frame.computed(coming, "Looking at the ratings") is None:
        return False
    try:
        lift(engine, reason, person.actor)
    except MedjuryError as error:
        frame.empty(str(error))
        return False
    return True


def show_costs(engine: Engine, person: Person, figures: ModelsFigures) -> None:
    """Ask for a file of costs; show cost against win rate."""
    st.html(heading("Cost"))
    request = _given()
    if request is None:
        st.html(paragraph(NONE_GIVEN))
        return
    coming: Future[dict[str, float]] = compute.ask(
        person, engine, "annotate.analyses:models_costs", request
    )
    costs = frame.computed(coming, "Reading what was spent")
    if costs is None:
        return
    made_up = steering.standing(person, engine).simulated
    _against_wins(figures.rows, costs, OF_SIMULATED if made_up else "")


def _given() -> CostsRequest | None:
    """Ask for a file of costs; return what is in it, unread, and which kind it is."""
    with st.expander("Costs of the models"):
        upload = st.file_uploader(ASKED, type=list(FILE_KINDS), max_upload_size=1, key="costs")
    if upload is None:
        return None
    if upload.size > MOST_BYTES:
        frame.empty(f"{upload.name} has more than {MOST_BYTES:,} bytes.", TOO_LONG)
        return None
    kind = "toml" if upload.name.lower().endswith(".toml") else "csv"
    return CostsRequest(upload.getvalue(), kind)


def _by_category(rows: Sequence[ModelRow], more: str) -> None:
    """Show each model's mean in each category, where there is more than one, by each way of scoring."""
    names = [*dict.fromkeys(name for row in rows for name in row.categories)]
    if len(names) < 2:
        return
    shown = [{"model": row.model, "by": row.by, **row.categories} for row in rows]
    columns = [
        tables.words("Model", "model"),
        tables.words("Scored by", "by"),
        *(tables.number(name or NO_CATEGORY, name) for name in names),
    ]
    st.html(tables.table(shown, columns, f"Means by category, on 0 to 1.{more}"))


def _against_wins(rows: Sequence[ModelRow], costs: Mapping[str, float], more: str) -> None:
    """Show cost beside the win rate by the first way of scoring that there is."""
    by = rows[0].by
    priced = [row for row in rows if row.by == by and row.model in costs and known(row.win_rate)]
    shown = [
        {"model": row.model, "usd": costs[row.model], "win_rate": row.win_rate}
        for row in sorted(priced, key=lambda row: -row.win_rate)
    ]
    columns = [
        tables.words("Model", "model"),
        tables.number("US dollars", "usd", 4),
        tables.number("Win rate", "win_rate"),
    ]
    st.html(tables.table(shown, columns, f"Cost, and win rate by {by}.{more}"))
