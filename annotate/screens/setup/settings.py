"""The settings of a study: how the rating room behaves, and what jurors may cost."""

from collections.abc import Mapping

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame
from annotate.screens.frame import show_heading, show_text
from calibration.notes import counted
from data.person import Person, only
from data.schema import Role
from data.settings import Settings
from data.study import steering
from data.study.settings import set_setting

ABOUT = (
    "How does the rating room behave, and what may jurors cost? Each change stays in the record."
)
LOCKED = "A locked study keeps its settings."
MADE = "settings-made"
SURE = "I know that clinicians have begun: what they rate from now on is made under other rules."
REFERENCES = {
    "hidden": "never",
    "on_request": "when they ask, which is recorded",
    "after_rating": "once they have rated",
}
BY = {"third": "a third reading, shown nothing", "consensus": "a consensus, shown the scores"}
LANGUAGES = {"en": "English", "de": "Deutsch"}
# Of the settings below, those that change what a clinician sees while rating.
OF_RATING = (
    "reference",
    "ask_why",
    "error_types",
    "as_typed",
    "language",
    "training_gap",
    "training_order",
)


def show(engine: Engine, person: Person) -> None:
    """Show every setting, and let a coordinator change it."""
    show_heading("Settings", ABOUT)
    frame.show_message(MADE)
    present = steering.study_settings(person, engine)
    locked = steering.standing(person, engine).locked is not None
    if locked:
        show_text(LOCKED)
    may_change = person.role == Role.COORDINATOR and not locked
    begun = any(map(any, steering.readings_by_response(person, engine).values()))
    with st.form("settings", border=False):
        entered = _fields(present, disabled=not may_change)
        sure = st.checkbox(SURE) if may_change and begun else True
        pressed = st.form_submit_button(
            "Save the settings", type="primary", disabled=not may_change
        )
    if not pressed:
        return
    stored = present.as_text()
    changed = {name: value for name, value in entered.items() if value != stored[name]}
    if not sure and {*changed} & {*OF_RATING}:
        st.error(
            "Not saved: clinicians have begun to rate. Tick the box to change this all the same."
        )
        return
    with frame.refusals():
        change_settings(person, engine, changed)
        st.session_state[MADE] = f"{counted(len(changed), 'setting')} changed, and in the record."
        st.rerun()


@only(Role.COORDINATOR)
def change_settings(_: Person, engine: Engine, changed: Mapping[str, str]) -> None:
    """Store settings, each checked; the first that is not allowed is refused, with those after it."""
    for name, value in changed.items():
        set_setting(engine, name, value)


def _fields(present: Settings, *, disabled: bool) -> dict[str, str]:
    """Ask for each setting, as it is stored."""
    left, right = st.columns(2)
    with left:
        entered = _of_rating(present, disabled=disabled)
    with right:
        entered |= _of_study(present, disabled=disabled)
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in entered.items()
    }


def _of_rating(present: Settings, *, disabled: bool) -> dict[str, object]:
    """Ask for what a clinician sees while rating and in training."""
    texts = present.as_text()
    return {
        "reference": st.selectbox(
            "Clinicians see the reference answer",
            [*REFERENCES],
            [*REFERENCES].index(present.reference),
            REFERENCES.__getitem__,
            help="A rubric that never shows it hides it always.",
            disabled=disabled,
        ),
        "ask_why": st.checkbox("A low score asks for a reason", present.ask_why, disabled=disabled),
        "error_types": st.text_input(
            "Error types of a marked passage, with commas between",
            texts["error_types"],
            help='The one named "missing" says that something is left out, and marks the source.',
            disabled=disabled,
        ),
        "as_typed": st.text_input(
            "Benchmarks whose texts are first shown as typed, with commas between",
            texts["as_typed"],
            help="Others are first shown with headings, lists and tables laid out; V changes it.",
            disabled=disabled,
        ),
        "language": st.selectbox(
            "Language of the rating room",
            [*LANGUAGES],
            [*LANGUAGES].index(present.language),
            LANGUAGES.__getitem__,
            help="Of the room's own words; the rubric stays the study's.",
            disabled=disabled,
        ),
        "training_gap": st.number_input(
            "Training is passed up to this mean distance from the experts, in points",
            *(0.0, 1000.0, float(present.training_gap), 0.1),
            format="%g",
            disabled=disabled,
        ),
        "training_order": st.checkbox(
            "Training also asks that the experts' lowest is rated lowest",
            present.training_order,
            disabled=disabled,
        ),
    }


def _of_study(present: Settings, *, disabled: bool) -> dict[str, object]:
    """Ask for what holds around the rating: pauses, reminders, differences, families, cost."""
    entered: dict[str, object] = {
        "pause_minutes": st.number_input(
            "A pause is offered after so many minutes; 0: never",
            *(0, 1000, present.pause_minutes),
            disabled=disabled,
        ),
        "remind_days": st.number_input(
            "A reminder is due after so many days without a rating",
            *(0, 1000, present.remind_days),
            disabled=disabled,
        ),
        "adjudicate_from": st.number_input(
            "Differences are settled from so many points; 0: never",
            *(0.0, 1000.0, float(present.adjudicate_from), 0.5),
            format="%g",
            disabled=disabled,
        ),
        "adjudicate_by": st.selectbox(
            "They are settled by",
            [*BY],
            [*BY].index(present.adjudicate_by),
            BY.__getitem__,
            disabled=disabled,
        ),
        "families": st.text_input(
            "Families of models whose names do not tell them, as MODEL=FAMILY",
            present.as_text()["families"],
            help="For figures of jurors on responses of their own family.",
            disabled=disabled,
        ),
    }
    budget = st.number_input(
        "All jury runs may cost together, in US dollars; empty: no bound",
        0.0,
        value=present.budget,
        step=10.0,
        disabled=disabled,
    )
    return entered | {"budget": "none" if budget is None else budget}
