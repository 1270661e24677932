"""What a clinician is shown now, as values: a response, training, consent, or that all is done.

Nothing else reaches their browser: no author, no benchmark, no other rater.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Engine

from annotate.rating import text_html
from annotate.rating.answers import Answer, label
from annotate.rating.text_html import (
    training_feedback,
    training_progress,
    training_result,
    training_way_on,
)
from annotate.rating.words import say, sayer, words
from data.card import SEVERITIES, Card, Score
from data.description import Description
from data.pace import measured
from data.person import Person
from data.rubric import Rubric, low_points
from data.study import assignments, room
from data.study import settings as study_settings
from data.study.assignments import timed_showings, words_left
from data.study.room import Exercise, Feedback, Progress, Situation, Stage, Task

Shown = dict[str, Any]
LOCKED = "This study is locked: ratings can no longer be made or changed. All you rated is stored."
NO_TEXT = "The study is being described anew. Reload the page in a moment."
NOTHING = "No response has been assigned to you so far."


@dataclass(frozen=True, slots=True)
class View:
    """A response as it is shown: whether one stands before it, and whether it was just rated."""

    task: Task
    house: Situation
    previous: bool = False
    after: bool = False

    @property
    def reference(self) -> str:
        """How the reference is offered: not at all, on request, or open."""
        policy = self.house.settings.reference
        if self.after or (policy == "on_request" and self.task.reference_opened):
            return "open"
        was_requested = policy == "on_request" or (
            policy == "after_rating" and self.task.reference_opened
        )
        return "asked" if was_requested else ""


def arrival(engine: Engine, person: Person) -> Shown:
    """Return what a clinician is shown as they arrive, and what holds while they are here.

    `tag` tells the browser which of its notes are this person's; `guide` is what they are told
    of the study, as HTML; `minutes` is how long a response takes them, as far as one can tell;
    """
    rater = person.rater or 0
    now = room.situation(engine, rater)
    description = study_settings.description(engine)
    pinned = {
        "who": person.name,
        "tag": str(person.id),
        "title": description.title if description else "",
        "guide": _guide(description, now.settings.language) if description else "",
        "minutes": _minutes_a_showing(engine, rater),
        "answers": _answers(engine, rater),
        "words": words(now.settings.language),
    }
    return {"room": pinned, "shown": shown(engine, person, situation=now)}


def _answers(engine: Engine, rater: int) -> list[Shown]:
    """Return what coordinators answered to this clinician's flags, and they have not seen yet."""
    return [
        {"id": answer.answer_id, "code": answer.code, "text": answer.text, "answer": answer.answer}
        for answer in assignments.answers_for(engine, rater)
        if answer.seen is None
    ]


def _minutes_a_showing(engine: Engine, rater: int) -> float:
    """Return how long what is left takes, a response: at their own pace, or that of a reader."""
    work = words_left(engine, rater)
    if not work.showings:
        return 0.0
    return measured(timed_showings(engine, rater)).minutes(work) / work.showings


def shown(
    engine: Engine,
    person: Person,
    answer: Answer | None = None,
    situation: Situation | None = None,
) -> Shown:
    """Return what a clinician is shown after a message was answered, or as they arrive.

    `situation` is what was read for that message already, if the message has not changed it.
    """
    rater = person.rater or 0
    now = situation or room.situation(engine, rater)
    if now.locked:
        return {"stage": "note", "title": "Thank you", "text": LOCKED}
    if not now.consents:
        return _consent(engine, now.settings.language)
    if now.stage is not None:
        return _training(now.stage, now)
    return _rating(engine, rater, now, answer)


def opened(engine: Engine, person: Person, code: str, name: str) -> Shown | None:
    """Return a text that a clinician asked for, and record it; None if it is not theirs to ask."""
    rater = person.rater or 0
    task = room.task(engine, rater, code)
    if task is not None:
        if name == "reference" and View(task, room.situation(engine, 0)).reference:
            assignments.opened(engine, rater, code, reference=True)
            return _asked_for(task.card, name)
        return _asked_for(task.card, name) if name == "checklist" else None
    now = room.situation(engine, rater).stage
    card = now.task.card if isinstance(now, Exercise) else getattr(now, "card", None)
    return _asked_for(card, name) if card is not None and card.code == code else None


def stored(engine: Engine, person: Person, code: str) -> Shown | None:
    """Return what is stored of a clinician's entry for a response; None if it is not theirs."""
    rater = person.rater or 0
    now = room.situation(engine, rater).stage
    if isinstance(now, Exercise) and now.task.card.code == code:
        return entry(now.task)
    task = room.task(engine, rater, code)
    return None if task is None else entry(task)


def entry(task: Task) -> Shown:
    """Return what is stored of a rater's entry for a response.

    What is not of its rubric is left out: a draft from before the rubric was changed.
    """
    draft, criteria = task.draft, task.rubric.criteria
    scores, comments = draft.get("scores", {}), draft.get("comments", {})
    return {
        "scores": {c: scores[c] for c in criteria if scores.get(c) in choices(task.rubric, c)},
        "comment": draft.get("comment", ""),
        "comments": {c: comments[c] for c in criteria if c in comments},
        "spans": _known_marks(draft.get("spans", []), criteria),
        "flags": draft.get("flags", []),
        "odd": draft.get("odd", ""),
        "seq": draft.get("seq", 0),
        "by": draft.get("by", ""),
        "version": task.draft_seq,
        "seconds": task.seconds_active,
    }


def choices(rubric: Rubric, criterion: str) -> tuple[Score, ...]:
    """Return what can be chosen on a criterion: its points, and answers in the place of a score."""
    return (*rubric.scale_of(criterion).points, *rubric.answers_of(criterion))


def _guide(description: Description, language: str) -> str:
    """Return what clinicians are told of the study; its Markdown is read only where there is any."""
    from annotate.description import as_page

    return as_page(description, sayer(language))


def _consent(engine: Engine, language: str) -> Shown:
    """Return what a clinician is to agree to before they go on."""
    description = study_settings.description(engine)
    if description is None:
        return {"stage": "note", "title": "Not ready yet", "text": NO_TEXT}
    html = _guide(description, language)
    return {"stage": "consent", "html": html, "sha256": description.consent_sha256}


def _known_marks(marks: Sequence[Shown], criteria: Sequence[str]) -> list[Shown]:
    """Return the marks whose criterion is known; links are by the new places."""
    places = [index for index, mark in enumerate(marks) if mark["criterion"] in criteria]
    moved: Mapping[int | None, int] = {old: new for new, old in enumerate(places)}
    return [marks[old] | {"linked": moved.get(marks[old].get("linked"))} for old in places]


def _rating(engine: Engine, rater: int, house: Situation, answer: Answer | None) -> Shown:
    """Return the response a clinician is at, or that there is none."""
    current = room.next_task(engine, rater)
    if current.task is None and current.progress.total and assignments.claim(engine, rater):
        current = room.next_task(engine, rater)
    task = (room.task(engine, rater, answer.at) if answer and answer.at else None) or current.task
    done, total = current.progress.done, current.progress.total
    counted = {"progress": {"done": done, "total": total}}
    if current.progress.repeats:  # how many there are would say that some come twice
        counted["progress"]["as_share"] = True
    if task is None:
        return counted | _end(engine, rater, current.progress, house.settings.language)
    after = answer is not None and answer.after and answer.at == task.card.code
    if after or not task.opened:
        assignments.opened(engine, rater, task.card.code, reference=after)
    is_first = task.ended and room.rated_codes(engine, rater)[0] == task.card.code
    view = View(task, house, done > 0 and not is_first, after)
    return counted | card_shown(view) | _of_others(engine, rater, task)


def _of_others(engine: Engine, rater: int, task: Task) -> Shown:
    """Return what the others said, for whoever settles a difference between them by consensus."""
    if task.reading != "consensus":
        return {}
    from medjury.services.adjudication import others_shown

    others = others_shown(engine, rater, task.card.code)
    if task.shown_first == "second":
        others = tuple(other.turned() for other in others)
    shown_others = [
        {"scores": other.scores, "comments": other.comments, "comment": other.comment}
        for other in others
    ]
    return {"others": shown_others}


def _end(engine: Engine, rater: int, progress: Progress, language: str) -> Shown:
    """Return that all is rated, with the way back to it; or that nothing has been assigned."""
    if progress.total == 0:
        return {"stage": "note", "title": "Nothing to rate yet", "text": NOTHING}
    if progress.repeats:
        text = say(language, "All responses are rated and stored. You can close this page.")
    else:
        done = "All {count} responses are rated and stored. You can close this page."
        text = say(language, done, count=progress.total)
    rated = room.rated_codes(engine, rater)
    back = rated[-1] if rated else ""
    return {"stage": "note", "title": "Thank you", "text": text, "back": back}


def card_shown(view: View) -> Shown:
    """Return a response with its form."""
    task, settings = view.task, view.house.settings
    low = list(low_points(task.rubric)) if settings.ask_why else []
    return {
        "stage": "rate",
        "code": task.card.code,
        "mode": "after" if view.after else "rate",
        "texts": _texts(task.card, view.reference),
        "unseen": {
            "response": text_html.unseen(task.card.response),
            "second": text_html.unseen(task.card.second or ""),
            "source": text_html.unseen(task.card.context or task.card.prompt),
        },
        "pair": task.rubric.compares,
        "typed": task.benchmark in settings.as_typed,
        "criteria": _criteria(task.rubric),
        "checked": task.rubric.case is not None,
        "why": {"criterion": task.rubric.criteria[0], "points": low},
        "errors": list(settings.error_types),
        "severities": list(filter(None, SEVERITIES)),
        "pause": settings.pause_minutes,
        "previous": view.previous,
        "rated": task.done_at.isoformat() if task.ended and task.done_at else "",
        "unsent": task.ended and task.draft_seq > task.submitted_seq,
        "entry": entry(task),
    }


def _training(now: Stage, house: Situation) -> Shown:
    """Return a training response with the form of the real work, its feedback, or how a round went."""
    training, told = training_progress(now), sayer(house.settings.language)
    if isinstance(now, Exercise):
        view = View(now.task, replace(house, settings=replace(house.settings, pause_minutes=0)))
        return training | card_shown(view) | {"training": True}
    if isinstance(now, Feedback):
        texts = _texts(now.card, "asked")
        also: Shown = {"code": now.card.code, "texts": texts, "html": training_feedback(now, told)}
        also["typed"] = now.benchmark in house.settings.as_typed
        label_ = "Next response" if now.number < now.total else "See how the round went"
        return training | also | {"stage": "feedback", "read": now.drill, "go": label_}
    return training | {
        "stage": "outcome",
        "html": training_result(now, told),
        "read": now.round_,
        "go": training_way_on(now),
    }


def _texts(card: Card, reference: str) -> list[Shown]:
    """Return the texts of a card in their order; what is sent only on request has no HTML."""
    texts = []
    if card.prompt:
        texts.append(_text("task" if card.context else "source", "Task", card.prompt))
    if reference and card.reference is not None:
        texts.append(_on_request(card, "reference", reference == "open"))
    if card.checklist is not None:
        texts.append(_on_request(card, "checklist", False))
    if card.context:
        texts.append(_text("source", "Source", card.context, folds=True))
    if card.second is None:
        return [*texts, _text("response", "Response to rate", card.response)]
    both = {"response": "First response", "second": "Second response"}
    named = zip(both.items(), card.rated, strict=True)
    return [*texts, *(_text(name, label_, text) for (name, label_), text in named)]


def _asked_for(card: Card, name: str) -> Shown | None:
    text = {"reference": card.reference, "checklist": card.checklist}.get(name)
    return None if text is None else _text(name, name.capitalize(), text)


def _on_request(card: Card, name: str, is_open: bool) -> Shown:
    shown_text = _asked_for(card, name) if is_open else None
    return shown_text or {"name": name, "label": name.capitalize()}


def _text(name: str, label_: str, text: str, *, folds: bool = False) -> Shown:
    return {"name": name, "label": label_, "html": text_html.body(text, folds)}


def _in_order(rubric: Rubric, criterion: str) -> list[int]:
    """Return the points as they stand from left to right: of a pair the first one's side is left."""
    points = list(rubric.scale_of(criterion).points)
    return points[::-1] if rubric.compares else points


def _criteria(rubric: Rubric) -> list[Mapping[str, Any]]:
    return [
        {
            "name": criterion.name,
            "label": label(criterion.name),
            "question": criterion.question,
            "anchors": {str(point): text for point, text in sorted(criterion.anchors.items())},
            "points": _in_order(rubric, criterion.name),
            "pair": rubric.compares,
            "answers": list(rubric.answers_of(criterion.name)),
        }
        for criterion in rubric.criterion
    ]
