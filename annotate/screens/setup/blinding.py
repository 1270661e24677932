"""What may name a response's author: listed with the names blotted, to be masked or left."""

from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame
from annotate.screens.frame import show_heading, show_text
from calibration.notes import counted
from data.person import Person
from data.study import steering
from data.study.masks import LeftNames
from data.study.standing import study_benchmarks
from medjury.services.blinding.places import doubtful_places, leave_places, mask_found, mask_places
from medjury.services.blinding.search import WHY

ABOUT = (
    "Does a response name the model that wrote it? What surely does is masked when it is imported. "
    "What may be a patient, a place or a thing is listed here with the name blotted out: mask it, or "
    "leave it. What somebody has begun to rate is never changed."
)
NO_RESPONSES = "No response has been imported yet."
NONE_LEFT = "Nothing that may name an author is left unmasked."
MADE = "blinding-made"
COLUMNS = {"Place": "Characters from the start of the response as raters see it"}


def show(engine: Engine, person: Person) -> None:
    """List the doubtful places; mask those that are chosen, or leave them."""
    show_heading("Blinding", ABOUT)
    frame.show_message(MADE)
    if not study_benchmarks(person, engine):
        frame.empty(NO_RESPONSES, "Import responses under Notes.")
        return
    if steering.standing(person, engine).locked:
        show_text("A locked study keeps its masks.")
        return
    with frame.refusals():
        if masked := mask_found(person, engine):
            st.success(f"{counted(masked, 'response')} named their author and were masked.")
        with st.spinner("Every response is searched", show_time=True):
            places = doubtful_places(person, engine)
        if places:
            _choose(engine, person, places)
        else:
            st.success(NONE_LEFT)


def _choose(engine: Engine, person: Person, places: list[dict[str, Any]]) -> None:
    show_text(f"{counted(len(places), 'place')} may name an author. Choose some, then act.")
    rows = [
        {
            "Response": one["response"],
            "Place": one["start"],
            "May be": WHY[one["why"]],
            "Around it": one["around"],
        }
        for one in places
    ]
    labels = [f"{one['response']}@{one['start']}" for one in places]
    frame.show_rows("Places that may name an author", rows, COLUMNS)
    chosen = st.multiselect("Places", labels, key=f"blinding-{len(places)}")
    with st.container(horizontal=True):
        to_mask = st.button("Mask these", type="primary", disabled=not chosen)
        to_leave = st.button("Leave these as they are", disabled=not chosen)
    if not (to_mask or to_leave):
        return
    by_label = dict(zip(labels, places, strict=True))
    named = LeftNames(
        places=frozenset((by_label[one]["response"], by_label[one]["start"]) for one in chosen)
    )
    if to_mask:
        changed, begun = mask_places(person, engine, named)
        kept = f", {begun} left: somebody has begun to rate them" if begun else ""
        st.session_state[MADE] = f"{counted(changed, 'response')} masked{kept}."
    else:
        leave_places(person, engine, named)
        st.session_state[MADE] = f"{counted(len(chosen), 'place')} left as they are, and recorded."
    st.rerun()
