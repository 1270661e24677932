"""The MedHELM paper's tables and figures of this study, as one archive of files."""

from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import worker
from annotate.screens import frame
from annotate.screens.frame import heading, notice, paragraph
from calibration.values import AnalysisOptions
from data.person import Person, is_blind

ABOUT = (
    "Tables 1 to 3 and E4 and Figures 3 to 5 of the MedHELM paper, made anew from this study: as a page "
    "to read, and each as CSV, LaTeX or SVG. Each says what differs from the paper."
)
BLIND = (
    "They tell how good each model is, and this study is blind. Make the first comparison on Models: a "
    "coordinator lifts the blind there, and the record keeps why."
)
MAKE = "medjury.services.paper:paper_archive"
ASKED = "paper-asked"


def show(engine: Engine, person: Person) -> None:
    """Offer the pages as an archive, once the blind is lifted."""
    st.html(heading("The paper's pages") + paragraph(ABOUT))
    if is_blind(engine):
        st.html(notice(BLIND))
        return
    if st.button("Make the pages", type="primary", key="make-paper"):
        st.session_state[ASKED] = True
    if not st.session_state.get(ASKED):
        return
    coming: Future[bytes] = worker.ask(person, engine, MAKE, AnalysisOptions())
    archive = frame.computed(coming, "Making the pages: models and agreement are resampled")
    if archive is not None:
        st.download_button(
            "Download the pages (ZIP)",
            archive,
            "paper_pages.zip",
            "application/zip",
            key="paper-archive",
            on_click="ignore",
        )
