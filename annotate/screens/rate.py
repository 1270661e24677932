"""The rating screen: source, response and the form, one response at a time; training comes first."""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st
from sqlalchemy import Engine

from annotate import lessons, likert, panes, reader
from annotate.replies import Answer, form_data, room_data, take_in, take_in_training
from data import queries, store
from data.card import Card
from data.queries import House, Person, Progress, Task
from data.queries.rating_room import Exercise, Feedback, Result, stage
from data.store.training import leave_feedback, leave_outcome

ANSWER = "answer"
LOCKED = "This study is locked: ratings can no longer be made or changed. All you rated is stored."
TRAINING_ANSWER = "training answer"


@dataclass(frozen=True, slots=True)
class View:
    """What the page shows now: a response, and what the form needs to know beside it."""

    task: Task
    house: House
    answer: Answer | None
    previous: bool
    after: bool

    @property
    def reference(self) -> str:
        """How the reference is offered: not at all, on request, or open."""
        if self.after:
            return "open"
        policy = self.house.settings.reference
        asked = policy == "on_request" or (policy == "after_rating" and self.task.reference_opened)
        return "asked" if asked else ""


def show(engine: Engine, person: Person) -> None:
    """Take in what the form sent, then show a clinician's next response or that all is done."""
    st.html(panes.style())
    rater = person.rater
    if rater is None or _show_training(engine, person, rater):
        return
    _take_in(engine, person, likert.waiting())
    house = queries.house(engine)
    task = None if house.locked else _task(engine, rater)
    progress = queries.progress(engine, rater)
    st.html(panes.top(progress.done, progress.total, person.name))
    if house.locked:
        st.html(panes.note("Thank you", LOCKED))
    elif task is None:
        _show_end(engine, rater, progress)
    elif _take_in(
        engine, person, _show(engine, rater, _view(engine, rater, task, house, progress))
    ):
        st.rerun()


def _take_in(engine: Engine, person: Person, payload: object) -> bool:
    """Take in a message of the rating form; return whether there was one."""
    return _taken_in(ANSWER, payload, lambda: take_in(engine, person, payload))


def _taken_in(key: str, payload: object, take: Callable[[], Answer]) -> bool:
    """Take in a message unless it has been answered; return whether there was one."""
    answer: Answer | None = st.session_state.get(key)
    if payload is None or (answer is not None and answer.answers(payload)):
        return False
    st.session_state[key] = take()
    return True


def _task(engine: Engine, rater: int) -> Task | None:
    """Return the response the clinician is at: the one they went to, or the next."""
    answer: Answer | None = st.session_state.get(ANSWER)
    there = queries.task(engine, rater, answer.at) if answer and answer.at else None
    task = there or queries.next_task(engine, rater)
    if task is None and queries.progress(engine, rater).total and store.claim(engine, rater):
        task = queries.next_task(engine, rater)
    return task


def _view(engine: Engine, rater: int, task: Task, house: House, progress: Progress) -> View:
    """Return what to show of a task."""
    answer: Answer | None = st.session_state.get(ANSWER)
    after = answer is not None and answer.after and answer.at == task.card.code
    is_first = task.ended and queries.rated_codes(engine, rater)[0] == task.card.code
    previous = progress.done > 0 and not is_first
    return View(task, house, answer, previous, after)


def _show_end(engine: Engine, rater: int, progress: Progress) -> None:
    """Say that all is rated, with a way back to it; or that nothing has been assigned."""
    if progress.total == 0:
        st.html(panes.note("Nothing to rate yet", "No response has been assigned to you so far."))
        return
    told = f"All {progress.total} responses are rated and stored. You can close this page."
    st.html(panes.note("Thank you", told))
    rated = queries.rated_codes(engine, rater)
    if rated and st.container(key="end").button("Previous", shortcut="p"):
        st.session_state[ANSWER] = Answer("", 0, 0, at=rated[-1])
        st.rerun()


def _show(engine: Engine, rater: int, view: View) -> object:
    """Draw a response beside its source, and the form; return what the form last sent."""
    card = view.task.card
    if not view.task.opened:
        store.opened(engine, rater, card.code)
    left, right = st.columns([46, 54], gap="small")
    with left, st.container(key="source"):
        reader.draw(card.code)
        if _show_source(card, view.reference) and not view.task.reference_opened:
            store.opened(engine, rater, card.code, reference=True)
    with right:
        _pane(card.response, "Response to rate", "response", card.code)
        sent = room_data(
            view.task, view.answer, view.house, previous=view.previous, after=view.after
        )
        return likert.draw(sent)


def _show_source(card: Card, reference: str) -> bool:
    """Draw what the response was asked for and what supports judging it; tell of the reference."""
    if card.prompt:
        _pane(card.prompt, "Task", "task" if card.context else "source")
    seen = False
    if reference == "open" and card.reference is not None:
        _pane(card.reference, "Reference", "reference")
        seen = True
    elif reference and card.reference is not None:
        seen = _show_on_request("reference", card.reference, card.code)
    if card.checklist is not None:
        _show_on_request("checklist", card.checklist, card.code)
    if card.context:
        _pane(card.context, "Source", "source", folds=True)
    return seen


def _show_on_request(name: str, text: str, code: str) -> bool:
    """Offer a text; it is sent only once it has been opened."""
    box = st.expander(f"Show {name}", key=f"{name}-{code}", on_change="rerun")
    if not box.open:
        return False
    with box:
        st.html(panes.pane(text, name.capitalize(), name))
    return True


def _show_training(engine: Engine, person: Person, rater: int) -> bool:
    """Draw the training round while a clinician is at it; False where the real work may begin."""
    now = stage(engine, rater)
    if now is None:
        return False
    if _take_in_training(engine, rater, likert.waiting()):
        now = stage(engine, rater) or now
    st.html(lessons.style() + lessons.top(now, person.name))
    if isinstance(now, Exercise):
        _show_exercise(engine, rater, now)
    elif isinstance(now, Feedback):
        _show_feedback(engine, rater, now)
    else:
        _show_result(engine, rater, now)
    return True


def _take_in_training(engine: Engine, rater: int, payload: object) -> bool:
    """Take in a message of the form in training; return whether there was one."""
    return _taken_in(TRAINING_ANSWER, payload, lambda: take_in_training(engine, rater, payload))


def _show_exercise(engine: Engine, rater: int, one: Exercise) -> None:
    """Draw a training response as any other, with the same form."""
    left, right = st.columns([46, 54], gap="small")
    with left, st.container(key="source"):
        reader.draw(one.task.card.code)
        _show_source(one.task.card, "asked")
    with right:
        _pane(one.task.card.response, "Response to rate", "response")
        sent = likert.draw(form_data(one.task, st.session_state.get(TRAINING_ANSWER)))
    if _take_in_training(engine, rater, sent):
        st.rerun()


def _show_feedback(engine: Engine, rater: int, one: Feedback) -> None:
    """Draw a training response with the clinician's scores beside the expert's."""
    left, right = st.columns([46, 54], gap="small")
    with left, st.container(key="source"):
        reader.draw(one.card.code)
        _show_source(one.card, "asked")
    with right:
        _pane(one.card.response, "Response you rated", "answered")
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


def _pane(text: str, label: str, name: str, code: str = "", *, folds: bool = False) -> None:
    """Draw a text under its heading."""
    st.html(panes.heading(label))
    st.html(panes.pane(text, label, name, code, folds=folds))
