"""What stands behind a rubric: ratings on its exact words, and juries held against clinicians."""

import html

import streamlit as st
from sqlalchemy import Engine

from annotate import tables
from annotate.screens import frame
from calibration.tables.evidence import EvidenceRow, evidence_table
from data import queries
from data.errors import MedjuryError
from data.person import Person
from data.queries import Validation
from data.queries.validation import Needed
from data.rubric import Rubric
from data.schema import Role
from data.store.settings import state_valid

NONE_YET = "No jury was held against clinicians on exactly these words."
TODO = (
    "Calibrate a jury on a benchmark rated on this rubric, and freeze the report under Monitoring."
)
STATED = (
    "An export says validated only where all of this holds for clinicians' ratings on exactly this "
    "rubric, and no simulated rater takes part."
)
MADE = "criterion-stated"


def show(engine: Engine, person: Person, rubric: Rubric) -> None:
    """Show the evidence, and what the study asks of it."""
    found = queries.validations(person, engine, rubric.sha256)
    if found:
        st.html(tables.of_table(evidence_table([_row(one) for one in found])))
    else:
        frame.empty(NONE_YET, TODO)
    stated = queries.stated_valid(person, engine)
    st.html('<h2 class="mj-part">What this study calls valid</h2>' + _criterion(stated))
    if person.role == Role.COORDINATOR:
        _form(engine, person, stated)


def _row(one: Validation) -> EvidenceRow:
    return EvidenceRow(
        report=one.report,
        name=one.name,
        times=one.times,
        at=one.at,
        jurors=one.jurors,
        benchmark=one.benchmark,
        criterion=one.criterion,
        method=one.method,
        icc=(one.icc, one.low, one.high),
        like_for_like=one.like_for_like,
        n_responses=one.n_responses,
        is_simulated=one.simulated,
    )


def _criterion(stated: Needed) -> str:
    """Return the study's criterion as a sentence and a list."""
    told = (
        f"at least {stated.responses:g} responses of at least {stated.instances:g} instances that "
        "clinicians and jury both scored",
        f"at least {stated.clinicians:g} clinicians a response on average",
        f"the 95 % interval of the jury's ICC(C,2) wholly above {stated.icc:g}",
        f"that of like for like wholly above {stated.like_for_like:g}",
    )
    return f'<p class="mj-said">{html.escape(STATED)}</p>{tables.style()}{tables.noted(told)}'


def _form(engine: Engine, person: Person, stated: Needed) -> None:
    """Let a coordinator state it otherwise, before the ratings are looked at."""
    with st.expander("State it otherwise"), st.form("criterion", border=False):
        columns = st.columns(5, vertical_alignment="bottom")
        wanted = Needed(
            responses=columns[0].number_input("Responses", 3, None, int(stated.responses)),
            instances=columns[1].number_input("Instances", 3, None, int(stated.instances)),
            clinicians=columns[2].number_input(
                "Clinicians a response", 1.0, None, float(stated.clinicians), 0.5
            ),
            icc=columns[3].number_input("ICC above", -1.0, 0.99, float(stated.icc), 0.05),
            like_for_like=columns[4].number_input(
                "Like for like above", -1.0, 0.99, float(stated.like_for_like), 0.05
            ),
        )
        pressed = st.form_submit_button("State it", type="primary")
    if pressed:
        try:
            changed = state_valid(person, engine, wanted)
        except MedjuryError as error:
            st.html(f'<p class="mj-refused" role="alert">{html.escape(str(error))}</p>')
            return
        st.session_state[MADE] = (
            "Stated, and in the record." if changed else "It is stated so already."
        )
        st.rerun()
    if made := st.session_state.pop(MADE, None):
        st.html(f'<p class="mj-good" role="status">{made}</p>')
