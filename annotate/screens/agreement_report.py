"""The report of the agreement on the screen, as files."""

from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate.figures.shown import AgreementQuestion
from annotate.screens import frame
from annotate.worker import ask
from data.person import Person

FILES = {
    "html": ("Report to read and print", "html", "text/html"),
    "markdown": ("Table as Markdown", "md", "text/markdown"),
    "csv": ("Table as CSV", "csv", "text/csv"),
    "latex": ("Table for LaTeX", "tex", "text/plain"),
}
ABOUT = (
    "One HTML file with all of this page, which needs no network and can be kept for years; and "
    "the table of every scorer in three forms. They are of what is chosen above."
)
MADE = "report-made"  # in the session: for which question the report was asked


def show(engine: Engine, person: Person, question: AgreementQuestion) -> None:
    """Offer the report of what is asked for; it is made when it is wanted."""
    st.html(f'<h2 class="mj-part">Report</h2><p class="mj-lead">{ABOUT}</p>')
    if st.button("Make the report", type="primary", key="make-report"):
        st.session_state[MADE] = question
    if st.session_state.get(MADE) != question:
        return
    coming: Future[dict[str, str]] = ask(
        person, engine, "annotate.figures.agreement:reports", question, "details"
    )
    texts = frame.computed(coming, "The report is being written")
    if texts is None:
        return
    with st.container(horizontal=True, gap="small"):
        for name, (label, end, mime) in FILES.items():
            to = f"agreement.{end}"
            st.download_button(label, texts[name], to, mime, key=f"file-{name}", on_click="ignore")
