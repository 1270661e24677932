"""The screen on which a study is handed over: a reporting guideline filled in, as a file to save."""

from collections.abc import Mapping
from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import compute
from annotate.screens import frame
from annotate.screens.frame import heading, paragraph
from data.guidelines import GUIDELINES, guideline
from data.person import Person
from data.study import steering

ABOUT = "What others get of this study: the forms of committees and journals, filled in from it."
SIMULATED = "Some raters of this study are simulated: nothing that is handed over is evidence."
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
    frame.begin(person, "Hand over", ABOUT, "study.css")
    frame.say_simulated(steering.standing(person, engine), SIMULATED)
    st.html(heading("Dossier") + paragraph(DOSSIER))
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
