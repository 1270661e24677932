"""Transport on the ward screen: whether notes look like those that the jury was validated on."""

from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import tables, worker
from annotate.results import TransportAnswer, TransportAsked
from annotate.screens import frame
from annotate.screens.frame import heading, paragraph
from data.person import Person

COMPARED = "annotate.forecasts:transported"
ASKED = "transport-asked"  # in the session: whether the comparison was asked for
ABOUT = (
    "Compares the responses that clinicians rated with those that none has rated: length, the jury's score, benchmark "
    "and groups, and texts where the encoder is installed. A group that differs is one the jury is not validated for."
)


def show(engine: Engine, person: Person) -> None:
    """Compare when the button is pressed."""
    st.html(heading("Transport") + paragraph(ABOUT))
    if st.button("Compare", type="primary", key="transport-now"):
        st.session_state[ASKED] = True
    if not st.session_state.get(ASKED):
        return
    coming: Future[TransportAnswer] = worker.ask(
        person, engine, COMPARED, TransportAsked(), "details"
    )
    answer = frame.computed(coming, "The rated responses are compared with the others")
    if answer is not None:
        st.html(tables.of_verdict(answer.headline, answer.told, is_good=answer.is_alike))
        st.html("".join(map(tables.beside, answer.tables)))
