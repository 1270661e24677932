"""The first part of the study screen: what may be said, every step, and the one thing to do next."""

import html
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, tables
from annotate.figures import AgreementQuestion, HomeFigures
from annotate.screens import frame
from annotate.screens.frame import heading
from calibration.decision import NOTHING_RATED
from calibration.notes import Note, sentence
from calibration.tables.spec import ICC_WORDS
from calibration.values import AnalysisOptions
from data.person import Person
from data.schema import Role
from medjury.services.status import (
    STATES,
    TITLES,
    NextStep,
    Step,
    StepStatus,
    StudyStatus,
    next_of,
    status,
    steps_of,
)

ABOUT_STEPS = "Steps of the study"
LEFT_TO_COORDINATORS = "A coordinator does this."
TO_A_JURY = (Step.RESPONSES, Step.RATING, Step.CLINICIANS, Step.JURY)
BEFORE_A_JURY = "See how far clinicians and metrics agree; that takes no jury"
ABOUT_ICC = (
    f"{ICC_WORDS} The 95 % interval is where the value would lie with other responses like these."
)
COMPUTING = "Does the jury agree? Computed again without each instance, to say how sure that is"


@dataclass(frozen=True, slots=True)
class Action:
    """What to do next: its words, the screen and part it is done on, and whether by coordinators alone."""

    label: str
    to: str
    is_coordinators: bool = True


ACTIONS: Mapping[NextStep, Action] = {
    NextStep.IMPORT_RESPONSES: Action("Import responses", "/?part=Import"),
    NextStep.SET_PROTOCOL: Action("Commit to a margin", "/?part=Protocol"),
    NextStep.ASSIGN: Action("Assign responses to clinicians", "/?part=Design"),
    NextStep.RUN_JURY: Action("Estimate and run a jury", "/jury"),
    NextStep.LET_RATE: Action("See who has open work", "/?part=Progress", is_coordinators=False),
    NextStep.COMPLETE_JURY: Action("Let the jury rate what is missing", "/jury"),
    NextStep.CALIBRATE: Action("Freeze a report", "/monitor"),
    NextStep.LOCK: Action("Lock the study", "/?part=Record"),
    NextStep.SHARE: Action("Save the study as files", "/?part=Files", is_coordinators=False),
}
PLACES: Mapping[Step, str] = {
    Step.PLAN: "/?part=Protocol",
    Step.RESPONSES: "/?part=Material",
    Step.DESIGN: "/?part=Progress",
    Step.RATING: "/?part=Progress",
    Step.CLINICIANS: "/agreement",
    Step.JURY: "/jury",
    Step.AGREEMENT: "/agreement",
    Step.USE: "/rubrics?part=Export",
    Step.WATCH: "/monitor",
}


def show(engine: Engine, person: Person) -> None:
    """Show the decision and every step: from counts at once, then with what takes computing."""
    study = status(engine)
    steps, following = steps_of(study), next_of(study)
    top, line = st.container(), st.empty()
    line.html(steps_html(steps, following, person.role))
    if not study.clinicians.responses_rated:
        if study.clinicians.responses:
            top.html(tables.of_decision(NOTHING_RATED))
        return
    with top:
        figures = _computed(engine, person)
        if figures is None:
            return
        st.html(tables.of_decision(figures.decision))
    line.html(
        steps_html(answered(steps, figures), following, person.role) + frame.caption(ABOUT_ICC)
    )


def say_no_jury(engine: Engine, person: Person) -> None:
    """Say on a screen about juries how far the study is on its way to one, and what to do."""
    study = status(engine)
    way = [replace(step, is_next=step.step is Step.JURY) for step in steps_of(study)]
    shown = [step for step in way if step.step in TO_A_JURY]
    st.html(frame.style("study.css") + steps_html(shown, NextStep.RUN_JURY, person.role))
    if study.clinicians.shared:
        st.html(f'<p class="mj-next"><a href="/agreement" target="_self">{BEFORE_A_JURY}</a></p>')


def next_html(study: StudyStatus, role: str) -> str:
    """Return the next action as a line with its link."""
    return f'<p class="mj-next">Next: {_action(next_of(study), role)}</p>'


def _computed(engine: Engine, person: Person) -> HomeFigures | None:
    """Return the figures, None where they are refused."""
    question = AgreementQuestion(AnalysisOptions())
    coming: Future[HomeFigures] = compute.ask(person, engine, "annotate.figures:home", question)
    figures: HomeFigures | None = frame.computed(coming, COMPUTING)
    compute.prepare(engine)
    return figures


def answered(steps: Sequence[StepStatus], figures: HomeFigures) -> list[StepStatus]:
    """Return the steps with the answers that took computing."""
    computed: Mapping[Step, Note | None] = {
        Step.CLINICIANS: figures.clinicians,
        Step.AGREEMENT: figures.jury,
    }
    return [replace(step, answer=computed.get(step.step) or step.answer) for step in steps]


def steps_html(steps: Sequence[StepStatus], following: NextStep, role: str) -> str:
    """Return the steps as a list: each with its state, its answer, and of the next one the action."""
    items = "".join(_step(step, following, role) for step in steps)
    return f'{heading(ABOUT_STEPS)}<ol class="mj-steps" aria-label="{ABOUT_STEPS}">{items}</ol>'


def _step(step: StepStatus, following: NextStep, role: str) -> str:
    current = ' aria-current="step"' if step.is_next else ""
    action = f"<span>{_action(following, role)}</span>" if step.is_next else ""
    title = f'<a href="{html.escape(PLACES[step.step])}" target="_self">{TITLES[step.step]}</a>'
    return (
        f'<li class="mj-{step.state.value}"{current}><b>{title}</b>'
        f'<span class="mj-state-word">{STATES[step.state]}</span>'
        f"<span>{html.escape(sentence(step.answer))}</span>{action}</li>"
    )


def _action(following: NextStep, role: str) -> str:
    """Return the link to what is done next, or whose it is."""
    action = ACTIONS[following]
    if action.is_coordinators and role != Role.COORDINATOR:
        return html.escape(f"{action.label}. {LEFT_TO_COORDINATORS}")
    return (
        f'<a class="mj-act" href="{html.escape(action.to)}" target="_self">'
        f"{html.escape(action.label)}</a>"
    )
