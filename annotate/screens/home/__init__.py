"""Home: what may be said of the jury, what is to be done, how far the work is, and who takes part."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, draw
from annotate.figures import AgreementQuestion, Found
from annotate.screens import frame
from annotate.screens.home import people, progress, to_do
from calibration.decision import NOTHING_RATED
from calibration.values import AnalysisOptions
from data.person import Person
from data.safe_text import on_page
from data.schema import Role
from data.study import steering
from medjury.services.status import (
    NextStep,
    next_of,
    status,
)

ABOUT = "May the jury stand in for the clinicians, and what is to be done now?"
LEFT_TO_COORDINATORS = "A coordinator does this."
COMPUTING = "Does the jury agree? Computed again without each instance, to say how sure that is"


@dataclass(frozen=True, slots=True)
class Action:
    """What to do next: its words, the screen and part it is done on, and whether by coordinators alone."""

    label: str
    to: str
    is_coordinators: bool = True


ACTIONS: Mapping[NextStep, Action] = {
    NextStep.IMPORT_RESPONSES: Action("Import responses", "/setup?part=Notes"),
    NextStep.SET_PROTOCOL: Action("Commit to a margin", "/setup?part=Goal"),
    NextStep.ASSIGN: Action("Assign responses to clinicians", "/setup?part=Clinicians"),
    NextStep.RUN_JURY: Action("Estimate and run a jury", "/jury"),
    NextStep.LET_RATE: Action("See who has open work", "/?view=Progress", is_coordinators=False),
    NextStep.COMPLETE_JURY: Action("Let the jury rate what is missing", "/jury"),
    NextStep.CALIBRATE: Action("Freeze a report", "/monitor"),
    NextStep.LOCK: Action("Lock the study", "/export?view=Record"),
    NextStep.SHARE: Action("Save the study as files", "/export?view=Files", is_coordinators=False),
}


def show(engine: Engine, person: Person) -> None:
    """Show what may be said and what comes next; then, in parts, what waits for whom."""
    study = status(engine)
    frame.begin(person, "Home", ABOUT, "study.css")
    if study.record.locked:
        st.warning(
            on_page(
                f"Locked since {study.record.locked}: nobody can rate, import or assign until it is "
                "reopened under Export, Record. Results can be read."
            )
        )
    rated = study.clinicians.responses_rated > 0
    top = st.container()
    with st.container(horizontal=True, vertical_alignment="center"):
        show_next(next_of(study), person.role)
        if rated:
            frame.show_link("Agreement, with its figures", "/agreement", "mj-plain")
    parts: dict[str, Callable[[], None]] = {
        "To do": partial(to_do.show, engine, person),
        "Progress": partial(progress.show, engine, person, study),
    }
    if person.role == Role.COORDINATOR:
        parts["People"] = partial(people.show, engine, person)
    frame.show_tabs(parts)
    with top:
        if not rated:  # what rests on simulated raters says so itself
            frame.say_simulated(steering.standing(person, engine))
        show_verdict(engine, person, rated=rated)


def show_verdict(engine: Engine, person: Person, *, rated: bool) -> None:
    """Show what may be said of the jury: the sentence, its picture, and its reasons behind it."""
    found: Found | None = {"decision": NOTHING_RATED, "held": None}
    if rated:
        question = AgreementQuestion(AnalysisOptions())
        coming: Future[Found] = compute.ask(person, engine, "annotate.figures:home", question)
        found = frame.computed(coming, COMPUTING)
    if found is None:
        return
    draw.verdict(found["decision"])
    if found["held"]:
        draw.picture(found["held"])
    draw.reasons(found["decision"])
    compute.prepare(engine)
    compute.load_agreement()


def show_next(following: NextStep, role: str) -> None:
    """Show what is to be done next, with the way there for those who may do it."""
    action = ACTIONS[following]
    if action.is_coordinators and role != Role.COORDINATOR:
        frame.show_text(f"Next: {action.label}. {LEFT_TO_COORDINATORS}")
    else:
        frame.show_link(f"Next: {action.label}", action.to)
