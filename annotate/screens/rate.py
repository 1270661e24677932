"""The rating screen: source, response and the form, one response at a time."""

import streamlit as st
from sqlalchemy import Engine

from annotate import likert, panes, sessions
from annotate.replies import Answer, form_data, take_in
from annotate.study import study
from data import queries
from data.card import Card
from data.errors import MedjuryError
from data.queries import Person, Progress, Task

ANSWER = "answer"
UNREACHABLE = "The study cannot be reached just now. Reload the page in a moment."


def page() -> None:
    """Show the signed-in clinician what is next; anyone else, the way to sign in."""
    st.html(panes.style())
    try:
        engine = study()
        person = sessions.owner(engine, st.context.cookies.get(sessions.COOKIE))
        if person is None:
            _ask_to_sign_in()
        elif person.rater is None:
            st.html(panes.note("Nothing to rate", "You are signed in, but not as a clinician."))
        else:
            show(engine, person, person.rater)
    except MedjuryError:
        st.html(panes.note("Not reachable", UNREACHABLE))


def show(engine: Engine, person: Person, rater: int) -> None:
    """Take in what the form sent, then show a clinician's next response or that all is done."""
    _take_in(engine, person, likert.waiting())
    task = queries.next_task(engine, rater)
    progress = queries.progress(engine, rater)
    st.html(panes.top(progress.done, progress.total, person.name))
    if task is None:
        _show_end(progress)
        return
    sent = _show_task(task)
    if _take_in(engine, person, sent):
        st.rerun()


def _take_in(engine: Engine, person: Person, payload: object) -> bool:
    """Take in a message unless it has been answered; return whether there was one."""
    answer: Answer | None = st.session_state.get(ANSWER)
    if payload is None or (answer is not None and answer.answers(payload)):
        return False
    st.session_state[ANSWER] = take_in(engine, person, payload)
    return True


def _ask_to_sign_in() -> None:
    st.html(panes.note("Signed out", "Your session has ended. What you entered is kept."))
    st.html('<p style="text-align:center"><a href="/login" target="_self">Sign in</a></p>')


def _show_end(progress: Progress) -> None:
    """Say that all is rated, or that nothing has been assigned."""
    if progress.total == 0:
        st.html(panes.note("Nothing to rate yet", "No response has been assigned to you so far."))
    else:
        told = f"All {progress.total} responses are rated and stored. You can close this page."
        st.html(panes.note("Thank you", told))


def _show_task(task: Task) -> object:
    """Draw a response beside its source, and the form; return what the form last sent."""
    left, right = st.columns([46, 54], gap="small")
    with left, st.container(key="source"):
        _show_source(task.card)
    with right:
        st.html(panes.heading("Response to rate"))
        st.html(panes.pane(task.card.response, "Response to rate", "response"))
        return likert.draw(form_data(task, st.session_state.get(ANSWER)))


def _show_source(card: Card) -> None:
    """Draw what the response was asked for, and whatever supports judging it."""
    if card.prompt:
        st.html(panes.heading("Task"))
        st.html(panes.pane(card.prompt, "Task", "task" if card.context else "source"))
    for name, text in (("reference", card.reference), ("checklist", card.checklist)):
        if text is not None:
            _show_on_request(name, text, card.code)
    if card.context:
        st.html(panes.heading("Source"))
        st.html(panes.pane(card.context, "Source", "source"))


def _show_on_request(name: str, text: str, code: str) -> None:
    """Offer a text; it is sent only once it has been opened."""
    box = st.expander(f"Show {name}", key=f"{name}-{code}", on_change="rerun")
    if box.open:
        with box:
            st.html(panes.pane(text, name.capitalize(), name))
