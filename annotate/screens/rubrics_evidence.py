"""What stands behind a rubric: ratings on its exact words, and juries held against clinicians."""

import streamlit as st
from sqlalchemy import Engine

from annotate import tables
from annotate.screens import frame
from annotate.screens.markup import heading, said
from annotate.screens.study_protocol import facts
from calibration.tables.evidence import EvidenceRow, evidence_table
from data import queries
from data.person import Person
from data.queries import Validation
from data.rubric import Rubric
from medjury.services.record import protocol_of

NONE_YET = "No jury was held against clinicians on exactly these words."
TODO = (
    "Calibrate a jury on a benchmark rated on this rubric, and freeze the report under Monitoring."
)
STATED = (
    "An export says validated only where clinicians' ratings on exactly this rubric show what the "
    "study's protocol asks for, and no simulated rater takes part. The protocol is fixed on Study."
)


def show(engine: Engine, person: Person, rubric: Rubric) -> None:
    """Show the evidence, and what the study asks of it."""
    found = queries.validations(person, engine, rubric.sha256)
    if found:
        st.html(tables.of_table(evidence_table([_row(one) for one in found])))
    else:
        frame.empty(NONE_YET, TODO)
    st.html(heading("What this study calls valid") + said(STATED) + facts(protocol_of(engine)))


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
