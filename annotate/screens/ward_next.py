"""Next to rate on the ward screen: whether clinicians may stop, and what they rate next."""

from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import tables, worker
from annotate.results import LookAnswer, LookQuestion
from annotate.screens import frame
from annotate.screens.frame import caption, good, heading, notice, paragraph
from data.person import Person

LOOKED = "annotate.forecasts:looked"
ASKED = "look-asked"  # in the session: the question of the last look
ABOUT = (
    "Says whether clinicians may stop: the goal of the protocol is shown, missed or out of reach, or they go on. "
    "The interval holds although somebody looks while they rate; each look is counted in the record."
)
PROTOCOL, OWN = "the goal of the protocol", "an ICC of the jury"
PLANNED = "At most so many are rated; the first look fixes it. 0: the protocol's number, else all."


def show(engine: Engine, person: Person) -> None:
    """Ask for the goal, look when the button is pressed, and list what is next."""
    st.html(heading("Next to rate") + paragraph(ABOUT))
    places = st.columns(4, vertical_alignment="bottom")
    goal = places[0].selectbox("Goal", [PROTOCOL, OWN], key="look-goal")
    icc = places[1].number_input("ICC over", -0.99, 0.99, 0.6, 0.05, disabled=goal == PROTOCOL)
    planned = places[2].number_input("Responses planned", 0, 1_000_000, 0, help=PLANNED)
    if places[3].button("Look now", type="primary", key="look-now", width="stretch"):
        own = None if goal == PROTOCOL else round(icc, 4)
        st.session_state[ASKED] = LookQuestion(person.actor, own, planned or None)
    asked: LookQuestion | None = st.session_state.get(ASKED)
    if asked is None:
        return
    coming: Future[LookAnswer] = worker.ask(person, engine, LOOKED, asked, "details")
    answer = frame.computed(coming, "The ratings so far are compared with the goal")
    if answer is not None:
        st.html((good if answer.is_shown else notice)(answer.headline))
        st.html("".join(map(caption, answer.told)))
        if answer.next is not None:
            st.html(tables.of_table(answer.next))
