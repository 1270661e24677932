"""The report of a study, and the checklist of a reporting guideline filled in from it."""

from collections.abc import Mapping
from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import compute
from annotate.figures import AgreementQuestion
from annotate.screens import frame
from annotate.screens.frame import show_heading
from calibration.values import AnalysisOptions
from data.guidelines import GUIDELINES, guideline
from data.person import Person
from medjury.services.record import protocol_of

ABOUT_REPORT = (
    "How well do jury and clinicians agree, to be kept and read without a network? One HTML file with "
    "every figure, and the table of all scorers in three formats, as the protocol fixes them."
)
REPORTS = "annotate.figures:agreement_report"
REPORT_MADE = "report-made"
WRITING = "The report is being written: its figures are computed, then its charts are drawn"
REPORT_FILES = {
    "html": ("Report to read and print", "html", "text/html"),
    "markdown": ("Table as Markdown", "md", "text/markdown"),
    "csv": ("Table as CSV", "csv", "text/csv"),
    "latex": ("Table for LaTeX", "tex", "text/plain"),
}
DOSSIER = (
    "A methods section, the agreement table, and each item of a reporting guideline in our own words "
    "with what of this study answers it. What the study lacks is not done; what only its authors "
    "know is left to them."
)
MAKE = "medjury.services.dossier:dossier_files"
CHOSEN = "dossier-chosen"
FORMATS = {".html": ("HTML, which prints", "text/html"), ".md": ("Markdown", "text/markdown")}


def show(engine: Engine, person: Person) -> None:
    """Offer the files of a guideline, made when they are asked for."""
    _report(engine, person)
    show_heading("Checklist", DOSSIER)
    narrow, _ = st.columns((2, 3))
    chosen = narrow.selectbox(
        "Reporting guideline",
        GUIDELINES,
        key="guideline",
        bind="query-params",
        format_func=lambda name: guideline(name).title,
    )
    name = chosen if chosen in GUIDELINES else GUIDELINES[0]
    if st.button("Make the files", type="primary", key="dossier-make"):
        st.session_state[CHOSEN] = name
    if st.session_state.get(CHOSEN) != name:
        return
    coming: Future[Mapping[str, str]] = compute.ask(person, engine, MAKE, name)
    files = frame.computed(coming, "The items are filled in, and their figures computed")
    if files is None:
        return
    with st.container(horizontal=True, gap="small"):
        for ending, body in files.items():
            label, mime = FORMATS[ending]
            file = f"dossier-{name}{ending}"
            st.download_button(label, body, file, mime, key=f"save-{file}", on_click="ignore")


def _report(engine: Engine, person: Person) -> None:
    """Offer the report on what the protocol fixes; it is made when it is asked for."""
    show_heading("Report", ABOUT_REPORT)
    if st.button("Make the report", type="primary", key="make-report"):
        st.session_state[REPORT_MADE] = True
    if not st.session_state.get(REPORT_MADE):
        return
    protocol = protocol_of(engine)
    options = protocol.analysis() if protocol else AnalysisOptions()
    offer(engine, person, AgreementQuestion(options))


def offer(engine: Engine, person: Person, question: AgreementQuestion) -> None:
    """Offer the report and the table of all scorers as files, once they are made."""
    coming: Future[dict[str, str]] = compute.ask(person, engine, REPORTS, question, "long")
    texts = frame.computed(coming, WRITING)
    if texts is None:
        return
    with st.container(horizontal=True, gap="small"):
        for name, (label, end, mime) in REPORT_FILES.items():
            to = f"agreement.{end}"
            st.download_button(label, texts[name], to, mime, key=f"file-{name}", on_click="ignore")
