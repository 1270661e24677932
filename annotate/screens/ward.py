"""The ward screen: what a validated jury does every day, a part at a time."""

from collections.abc import Callable, Mapping

import streamlit as st
from sqlalchemy import Engine

from annotate import worker
from annotate.screens import (
    frame,
    study_home,
    ward_next,
    ward_routing,
    ward_transport,
    ward_watch,
)
from data import queries
from data.person import Person

ABOUT = "A jury at work: what it may pass, what clinicians read, and what to look at while it does."
NOBODY = "No juror has rated a response of this study yet."
FIRST_STEP = "Run a jury, or import scores made elsewhere. Clinicians' ratings are needed as well."
# A part is a name and what draws it; it says itself whom it lets do what.
PARTS: Mapping[str, Callable[[Engine, Person], None]] = {
    "Routing": ward_routing.show,
    "Next to rate": ward_next.show,
    "Transport": ward_transport.show,
    "Watch": ward_watch.show,
}


def show(engine: Engine, person: Person) -> None:
    """Show the part that is chosen."""
    frame.begin(person, "Ward", ABOUT, "study.css")
    frame.say_simulated(queries.standing(person, engine))
    if not queries.jurors_with_ratings(person, engine):
        frame.empty(NOBODY, FIRST_STEP)
        study_home.say_no_jury(engine, person)
        return
    worker.wake()
    PARTS[_chosen()](engine, person)


def _chosen() -> str:
    """Ask which part; it stands in the URL, so that it can be shared."""
    names = [*PARTS]
    chosen = st.segmented_control(
        "Part of the ward",
        names,
        default=names[0],
        required=True,
        key="ward-part",
        bind="query-params",
        label_visibility="collapsed",
    )
    return chosen if chosen in names else names[0]
