"""Next to rate on the ward screen: whether clinicians may stop, and what they rate next."""

from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import tables, worker
from annotate.results import LookAnswer, LookQuestion
from annotate.screens import frame
from annotate.screens.frame import heading, paragraph
from data.person import Person, only
from data.schema import Role

LOOKED = "annotate.forecasts:looked"
SEEN = "look-seen"  # in the session: what the last look said
ABOUT = (
    "Says whether clinicians may stop: the goal of the protocol is shown, missed or out of reach, or they go on. "
    "Looking before the end does not spoil the interval; each look is counted in the record."
)
PROTOCOL, OWN = "the goal of the protocol", "an ICC of the jury"
PLANNED = "At most so many are rated; the first look fixes it. 0: the protocol's number, else all."


def show(engine: Engine, person: Person) -> None:
    """Ask for the goal, look when the button is pressed and never else, and list what is next."""
    st.html(heading("Next to rate") + paragraph(ABOUT))
    places = st.columns(4, vertical_alignment="bottom")
    goal = places[0].selectbox("Goal", [PROTOCOL, OWN], key="look-goal")
    icc = places[1].number_input("ICC over", -0.99, 0.99, 0.6, 0.05, disabled=goal == PROTOCOL)
    planned = places[2].number_input("Responses planned", 0, 1_000_000, 0, help=PLANNED)
    if places[3].button("Look now", type="primary", key="look-now", width="stretch"):
        st.session_state.pop(SEEN, None)
        own = None if goal == PROTOCOL else round(icc, 4)
        coming = looked(person, engine, LookQuestion(person.actor, own, planned or None))
        st.session_state[SEEN] = frame.computed(
            coming, "The ratings so far are compared with the goal"
        )
    answer: LookAnswer | None = st.session_state.get(SEEN)
    if answer is not None:
        st.html(tables.of_verdict(answer.headline, answer.told, is_good=answer.is_shown))
        if answer.next is not None:
            st.html(tables.of_table(answer.next))


@only(Role.RESEARCHER, Role.COORDINATOR)
def looked(_: Person, engine: Engine, question: LookQuestion) -> "Future[LookAnswer]":
    """Look at a goal, which the record counts, once for each time somebody asks; the answer is to come."""
    return worker.of_study(engine, LOOKED, question)
