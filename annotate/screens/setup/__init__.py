"""Set up: a study's steps in the order of the work, each shown done or open."""

from collections.abc import Callable, Mapping

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame
from annotate.screens.setup import (
    blinding,
    description,
    design,
    goal,
    notes,
    rubric,
    settings,
    training,
)
from data.person import Person
from data.schema import Role
from data.study import steering
from data.study.masks import searched_up_to, stored_texts
from medjury.services.status import StudyStatus, status

ABOUT = "What is rated, on which rubric, by whom, and what the study is to show."
PART, SHOWN_PART = "part", "setup-part"
PARTS: Mapping[str, Callable[[Engine, Person], None]] = {
    "Notes": notes.show,
    "Blinding": blinding.show,
    "Rubric": rubric.show,
    "Goal": goal.show,
    "Description": description.show,
    "Training": training.show,
    "Clinicians": design.show,
    "Settings": settings.show,
}
OF_COORDINATORS = ("Blinding", "Training", "Clinicians")


def show(engine: Engine, person: Person) -> None:
    """Show the steps with how far each is, and the chosen one."""
    frame.begin(person, "Set up", ABOUT, "study.css")
    frame.say_simulated(steering.standing(person, engine))
    may_act = person.role == Role.COORDINATOR
    parts = [part for part in PARTS if may_act or part not in OF_COORDINATORS]
    done = _done(engine, person, status(engine))
    frame.take_from_address(PART, SHOWN_PART, parts)
    chosen = st.segmented_control(
        "Step",
        parts,
        required=True,
        key=SHOWN_PART,
        format_func=lambda part: (
            f"{part}: {'done' if done[part] else 'open'}" if part in done else part
        ),
        label_visibility="collapsed",
    )
    shown = chosen if chosen in parts else parts[0]
    frame.keep_in_address(PART, shown, parts)
    PARTS[shown](engine, person)


def _done(engine: Engine, person: Person, study: StudyStatus) -> dict[str, bool]:
    """Return whether each step is done; steps that a study can do without are left out."""
    has_responses = study.clinicians.responses > 0
    unsearched = next(stored_texts(engine, searched_up_to(engine)), None)
    return {
        "Notes": has_responses,
        "Blinding": has_responses and unsearched is None,
        "Rubric": has_responses,
        "Goal": study.protocol_set_at is not None,
        "Description": bool(steering.study_descriptions(person, engine)),
        "Clinicians": study.clinicians.clinicians > 0,
    }
