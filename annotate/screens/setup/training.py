"""The training round on the study screen: the experts' scores, how clinicians stand, who may begin."""

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame
from annotate.screens.export import files
from annotate.screens.frame import show_heading, show_text
from calibration.notes import counted
from data.importers.ratings import expert_rows
from data.importers.table import TableFile
from data.person import Person, asking
from data.schema import Role
from data.study import steering
from data.study.room import Trainee, trainees
from data.study.training import ExpertsAdded, bring_experts, let_through_as
from data.training import MOST_ROUNDS
from medjury.services.importing import Upload

ABOUT = (
    "Clinicians first rate responses that experts have rated, and see after each where they differ and "
    "why. A round is passed when the mean distance from the experts is small enough; who does not pass "
    "in {rounds} rounds waits for a coordinator."
)
ABOUT_FILE = (
    "One row a score: response_id, criterion, score, why; or a column a criterion. Choose three to six "
    "responses that span the scale before you assign any: from then on they serve training alone and "
    "are in no figure."
)
ABOUT_LETTING = (
    "Who did not pass can still be let through. The reason stays in the record, under your name."
)
EXAMPLE = {
    "response_id": "r1",
    "criterion": "accuracy",
    "score": "2",
    "why": "The dose was never said.",
}
NONE_STANDS = "There is no training: no experts' scores are imported, or no clinician can sign in."
STORED = "training-stored"
# How clinicians stand, with their names.
standings = asking(trainees, Role.COORDINATOR)


def show(engine: Engine, person: Person) -> None:
    """Show how clinicians stand in training; take experts' scores; let somebody begin."""
    show_heading("Training round", ABOUT.format(rounds=MOST_ROUNDS))
    frame.show_message(STORED)
    clinicians = standings(person, engine)
    if clinicians:
        frame.show_rows("How clinicians stand in training", list(map(_row, clinicians)))
    else:
        show_text(NONE_STANDS)
    if steering.standing(person, engine).locked:
        return
    _upload(engine, person, is_first=not clinicians)
    if waiting := [trainee.name for trainee in clinicians if not trainee.ended]:
        _let_through(engine, person, waiting)


def _upload(engine: Engine, person: Person, *, is_first: bool) -> None:
    """Take in a file of experts' scores."""
    with st.expander("Import experts' scores", expanded=is_first, key="training-file"):
        show_text(ABOUT_FILE)
        body = files.template(EXAMPLE)
        name = "experts_template.csv"
        st.download_button("Template of experts' scores", body, name, on_click="ignore")
        file = st.file_uploader("File of experts' scores", key="training-upload")
        if file is None or not st.button("Import these scores", type="primary"):
            return
        source = Upload(file.name, file.getvalue(), "", "").source
        with frame.refusals():
            added = bring_experts(person, engine, expert_rows(TableFile(source)), person.actor)
            st.session_state[STORED] = told(added)
            st.rerun()


def told(added: ExpertsAdded) -> str:
    """Return what an import of experts' scores changed."""
    return (
        f"{counted(added.added, 'expert score')} imported, {added.changed:,} changed, "
        f"{added.unchanged:,} were there already. {counted(added.responses, 'response')} for "
        "training: every clinician rates them first, and no figure has them."
    )


def _let_through(engine: Engine, person: Person, waiting: list[str]) -> None:
    """Ask who may begin without having passed, and why."""
    with st.expander("Let a clinician begin", key="training-let"), st.form("let", border=False):
        show_text(ABOUT_LETTING)
        name = st.selectbox("Clinician who may begin", waiting)
        reason = st.text_input("Reason; it stays in the record")
        pressed = st.form_submit_button("Let them begin", type="primary")
    if pressed and name is not None:
        with frame.refusals():
            let_through_as(person, engine, name, reason, person.actor)
            st.session_state[STORED] = f"{name} may begin."
            st.rerun()


def _row(trainee: Trainee) -> dict[str, str | None]:
    rounds = {
        f"Round {number + 1}, points from the experts": _round(trainee, number)
        for number in range(MOST_ROUNDS)
    }
    waits = "no: did not pass" if trainee.halted else "not yet"
    begins = f"yes, {trainee.ended}" if trainee.ended else waits
    return {"Clinician": trainee.name} | rounds | {"May begin": begins}


def _round(trainee: Trainee, number: int) -> str | None:
    """Return a round's distance and whether it was passed, or how far it is; None before it."""
    if number < len(trainee.rounds):
        outcome = trainee.rounds[number]
        return f"{outcome.distance:.2f}, {'passed' if outcome.passed else 'not passed'}"
    if number == len(trainee.rounds) and trainee.answered:
        return f"{trainee.answered} of {trainee.total} answered"
    return None
