"""Taking in what the rating form sends: every message names its own response and its number."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Engine

from data import store
from data.card import Reply
from data.errors import BadInput, MedjuryError, NoStudy, NotAllowed, OffScale, Unknown
from data.queries import Person, Task

LARGEST = 2**31 - 1
LONGEST_COMMENT = 20_000
DAY = 24 * 3600
GARBLED = "The page sent something that cannot be read. Nothing was saved; reload the page."
OFF = "A score is not a point of this scale. Nothing was saved; reload the page."
FOREIGN = "This response is not assigned to you. Nothing was saved; reload the page."
BUSY = "The study cannot be reached just now. Your entries are kept here and are sent again."

Count = Annotated[int, Field(ge=0, le=LARGEST)]


class Message(BaseModel):
    """One message of the form: all that is entered for one response, as draft or to submit.

    Attributes
    ----------
    code, seq, attempt
        Which response; which state of it, counted up; how often that state was sent.
    by
        The page that sent it: two pages open on one response tell their drafts apart.
    seconds
        Seconds active on this response so far.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")
    code: str = Field(max_length=64)
    seq: Count
    attempt: Count
    by: str = Field(max_length=32)
    scores: dict[Annotated[str, Field(max_length=64)], int] = Field(max_length=64)
    comment: str = Field(max_length=LONGEST_COMMENT)
    seconds: float = Field(ge=0, le=DAY)
    submit: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a message; `error` is empty where all is well."""

    code: str
    seq: int
    attempt: int
    error: str = ""

    def answers(self, payload: object) -> bool:
        """Return whether this is the answer to that very message."""
        return isinstance(payload, Mapping) and (self.code, self.seq, self.attempt) == tuple(
            payload.get(name) for name in ("code", "seq", "attempt")
        )


def take_in(engine: Engine, person: Person, payload: object) -> Answer:
    """Save a draft or submit a rating; taking in the same message again changes nothing."""
    try:
        message = Message.model_validate(payload)
    except ValidationError:
        return _unreadable(payload)
    return Answer(message.code, message.seq, message.attempt, _save(engine, person, message))


def form_data(task: Task, answer: Answer | None) -> dict[str, Any]:
    """Return all that the form is sent: the criteria and what this rater entered, no author."""
    points = list(task.rubric.scale.points)
    scores = task.draft.get("scores", {})
    return {
        "code": task.card.code,
        "points": points,
        "criteria": [
            {
                "name": one.name,
                "label": one.name.replace("_", " ").capitalize(),
                "question": one.question,
                "anchors": {str(point): text for point, text in sorted(one.anchors.items())},
            }
            for one in task.rubric.criterion
        ],
        "scores": {c: scores[c] for c in task.rubric.criteria if scores.get(c) in points},
        "comment": task.draft.get("comment", ""),
        "seq": task.draft_seq,
        "by": task.draft.get("by", ""),
        "seconds": task.seconds_active,
        "answer": _shown(task, answer),
    }


def _save(engine: Engine, person: Person, message: Message) -> str:
    """Store a message; return what to tell the rater, or nothing."""
    draft = message.model_dump(include={"scores", "comment", "by"})
    try:
        if message.submit:
            reply = Reply(message.scores, comment=message.comment)
            store.submit(engine, person.rater or 0, message.code, reply, message.seconds)
        else:
            store.save_draft(
                engine, person.rater or 0, message.code, message.seq, draft, message.seconds
            )
    except MedjuryError as error:
        return _plainly(error)
    return ""


def _plainly(error: MedjuryError) -> str:
    """Return an error in words that betray neither rubric, benchmark nor database."""
    for kind, words in ((OffScale, OFF), (Unknown, OFF), (NotAllowed, FOREIGN), (NoStudy, BUSY)):
        if isinstance(error, kind):
            return words
    return str(error) if isinstance(error, BadInput) else BUSY


def _unreadable(payload: object) -> Answer:
    """Answer a message that is none of our form's, so that it is not read again and again."""
    fields = payload if isinstance(payload, Mapping) else {}
    code, seq, attempt = (fields.get(name) for name in ("code", "seq", "attempt"))
    return Answer(code, seq, attempt, GARBLED)  # type: ignore[arg-type] # echoes what was sent


def _shown(task: Task, answer: Answer | None) -> dict[str, Any] | None:
    """Return the answer for the form, if it is about the response now shown or went wrong."""
    if answer is None or (answer.code != task.card.code and not answer.error):
        return None
    return {
        "code": answer.code,
        "seq": answer.seq,
        "error": answer.error,
        "again": answer.error == BUSY,
    }
