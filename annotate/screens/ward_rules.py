"""The routing rules that a study keeps, on the ward screen: what each holds, and responses routed by one."""

from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import tables, worker
from annotate.results import RoutedByAnswer, RoutedByQuestion, RulesAnswer, RulesAsked
from annotate.screens import frame
from annotate.screens.frame import heading, paragraph
from data.person import Person
from data.queries import names_of_actors

RULES, ROUTED_BY = "annotate.routings:rules", "annotate.routings:routed_by"
BY = "routed-by"  # in the session: the kept rule that responses were routed by last
ABOUT = (
    "A kept rule routes every response of the study, those that came later too. What it was not "
    "certified for is read: another benchmark, another rubric, a response that a juror has not scored."
)
NO_RULE = "No rule is kept yet. A question above that certifies one lets a coordinator keep it."


def show(engine: Engine, person: Person) -> None:
    """List the rules that are kept, and route by the one that is chosen."""
    st.html(heading("Kept rules"))
    asked = RulesAsked(tuple(names_of_actors(person, engine).items()))
    coming: Future[RulesAnswer] = worker.ask(person, engine, RULES, asked, "details")
    kept = frame.computed(coming, "Rules are being read")
    if kept is None:
        return
    if not kept.names:
        st.html(paragraph(NO_RULE))
        return
    st.html(tables.of_table(kept.table) + paragraph(ABOUT))
    places = st.columns((2, 1, 1), vertical_alignment="bottom")
    name = places[0].selectbox("Kept rule", kept.names, key="kept-rule")
    if places[1].button("Route by this rule", key="route-by", width="stretch"):
        st.session_state[BY] = name
    by: str | None = st.session_state.get(BY)
    if by in kept.names and by == name:
        _routed(engine, person, RoutedByQuestion(by), places[2])


def _routed(
    engine: Engine,
    person: Person,
    asked: RoutedByQuestion,
    place: "st.delta_generator.DeltaGenerator",
) -> None:
    """Show what a kept rule makes of every response, and the routes to save."""
    coming: Future[RoutedByAnswer] = worker.ask(person, engine, ROUTED_BY, asked, "details")
    answer = frame.computed(coming, "Responses are being routed")
    if answer is None:
        return
    changed = [answer.changed] if answer.changed else []
    is_good = not (changed or answer.is_simulated)
    st.html(tables.of_verdict(answer.headline, (*changed, *answer.told), is_good=is_good))
    save(place, "Routes as CSV", answer.csv, simulated=answer.is_simulated)


def save(
    place: "st.delta_generator.DeltaGenerator", label: str, body: bytes, *, simulated: bool
) -> None:
    """Offer decisions as a file, whose name says where simulated raters are behind it."""
    file = f"routes{'_simulated' if simulated else ''}.csv"
    place.download_button(
        label, body, file, "text/csv", key=f"save-{label}", on_click="ignore", width="stretch"
    )
