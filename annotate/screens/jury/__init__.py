"""The jury screen: panels and their runs, all possible juries ranked, their cost, and two compared."""

import streamlit as st
from sqlalchemy import Engine

from annotate import compute
from annotate.screens import frame
from annotate.screens.jury import panels, ranking
from data.person import Person
from data.study import rubrics

ABOUT = (
    "Which language models rate the same responses as the clinicians, how well, and for how much?"
)
NOBODY = (
    "No juror has rated a response of this study yet. Run a panel under Run, or import scores made "
    "elsewhere; then every combination of the jurors is compared here with the clinicians."
)
VIEWS = ("Run", "Ranking", "Cost", "Two juries")


def show(engine: Engine, person: Person) -> None:
    """Show a view at a time: the run that is on, or what the jurors heard so far are worth."""
    frame.begin(person, "Jury", ABOUT, "agreement.css")
    tabs = st.tabs(VIEWS, key="view", on_change="rerun", bind="query-params")
    view = next(name for name, tab in zip(VIEWS, tabs, strict=True) if tab.open)
    with tabs[VIEWS.index(view)]:
        if view == "Run":
            panels.show(engine, person)
        elif jurors := rubrics.jurors_with_ratings(person, engine):
            compute.prepare(engine)
            ranking.show(engine, person, view, jurors)
        else:
            st.info(NOBODY)
