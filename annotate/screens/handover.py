"""The screen on which a study is handed over: a part for each thing that is handed over."""

from collections.abc import Callable, Mapping

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame, handover_dossier, handover_paper
from data import queries
from data.person import Person

ABOUT = "What others get of this study: the forms of committees and journals, filled in from it."
SIMULATED = "Some raters of this study are simulated: nothing that is handed over is evidence."
# Part -> what draws it. A new part is a line here and a module of its own.
PARTS: Mapping[str, Callable[[Engine, Person], None]] = {
    "Dossier": handover_dossier.show,
    "Paper": handover_paper.show,
}


def show(engine: Engine, person: Person) -> None:
    """Show the part that is chosen."""
    frame.begin(person, "Hand over", ABOUT, "study.css")
    frame.say_simulated(queries.standing(person, engine), SIMULATED)
    PARTS[_chosen()](engine, person)


def _chosen() -> str:
    """Ask which part, where there are several; it stands in the URL, so that it can be shared."""
    parts = [*PARTS]
    if len(parts) == 1:
        return parts[0]
    chosen = st.segmented_control(
        "Part of the handover",
        parts,
        default=parts[0],
        required=True,
        key="part",
        bind="query-params",
        label_visibility="collapsed",
    )
    return chosen if chosen in parts else parts[0]
