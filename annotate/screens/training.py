"""The training round: rate what experts have rated, see where you differ, before the real work."""

import streamlit as st
from sqlalchemy import Engine

from annotate import lessons, likert, panes, reader
from annotate.practice import take_in
from annotate.replies import Answer, form_data
from data.card import Card
from data.queries import Person
from data.queries.rating_room import Exercise, Feedback, Result, stage
from data.store.training import leave_feedback, leave_outcome

ANSWER = "training answer"


def drawn(engine: Engine, person: Person, rater: int) -> bool:
    """Draw the training round while a clinician is at it; False where the real work may begin."""
    now = stage(engine, rater)
    if now is None:
        return False
    if _take_in(engine, rater, likert.waiting()):
        now = stage(engine, rater) or now
    st.html(lessons.style() + lessons.top(now, person.name))
    if isinstance(now, Exercise):
        _show_exercise(engine, rater, now)
    elif isinstance(now, Feedback):
        _show_feedback(engine, rater, now)
    else:
        _show_result(engine, rater, now)
    return True


def _take_in(engine: Engine, rater: int, payload: object) -> bool:
    """Take in a message unless it has been answered; return whether there was one."""
    answer: Answer | None = st.session_state.get(ANSWER)
    if payload is None or (answer is not None and answer.answers(payload)):
        return False
    st.session_state[ANSWER] = take_in(engine, rater, payload)
    return True


def _show_exercise(engine: Engine, rater: int, one: Exercise) -> None:
    """Draw a training response as any other, with the same form."""
    left, right = st.columns([46, 54], gap="small")
    with left, st.container(key="source"):
        _show_source(one.task.card)
    with right:
        st.html(panes.heading("Response to rate"))
        st.html(panes.pane(one.task.card.response, "Response to rate", "response"))
        sent = likert.draw(form_data(one.task, st.session_state.get(ANSWER)))
    if _take_in(engine, rater, sent):
        st.rerun()


def _show_feedback(engine: Engine, rater: int, one: Feedback) -> None:
    """Draw a training response with the clinician's scores beside the expert's."""
    left, right = st.columns([46, 54], gap="small")
    with left, st.container(key="source"):
        _show_source(one.card)
    with right:
        st.html(panes.heading("Response you rated"))
        st.html(panes.pane(one.card.response, "Response you rated", "answered"))
        st.html(lessons.feedback(one))
        label = "Next response" if one.number < one.total else "See how the round went"
        with st.container(key="training-next"):
            left_it = st.button(label, key=f"next-{one.card.code}", shortcut="N")
    if left_it:
        leave_feedback(engine, rater, one.drill)
        st.rerun()


def _show_result(engine: Engine, rater: int, one: Result) -> None:
    """Say how the round went, and offer what comes next."""
    st.html(lessons.result(one))
    label = "Begin rating" if one.outcome.passed else "Start again"
    with st.container(key="training-on"):
        left_it = st.button("Check again" if one.halted else label, shortcut="Enter")
    if left_it:
        leave_outcome(engine, rater, one.round_)
        st.rerun()


def _show_source(card: Card) -> None:
    """Draw what the response was asked for, and whatever supports judging it."""
    reader.draw(card.code)
    if card.prompt:
        st.html(panes.heading("Task"))
        st.html(panes.pane(card.prompt, "Task", "task" if card.context else "source"))
    for name, text in (("reference", card.reference), ("checklist", card.checklist)):
        if text is not None:
            box = st.expander(f"Show {name}", key=f"{name}-{card.code}", on_change="rerun")
            if box.open:
                with box:
                    st.html(panes.pane(text, name.capitalize(), name))
    if card.context:
        st.html(panes.heading("Source"))
        st.html(panes.pane(card.context, "Source", "source", folds=True))
