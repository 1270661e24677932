"""Store a message of the rating form, or refuse it with a reason in words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Engine

from data.card import Flag, Reply, Severity, Side
from data.errors import (
    BadInput,
    MedjuryError,
    NoStudy,
    NotAllowed,
    OffScale,
    Stale,
    Unexplained,
    Unknown,
)
from data.person import Person
from data.study import assignments, ratings, room
from data.study.ratings import FormState
from data.study.room import Situation, Task
from data.study.training import answer_drill, save_drill_draft

LARGEST = 2**31 - 1
LONGEST_COMMENT = 20_000
LONGEST_NOTE = 2_000
LONGEST_REASON = 500
MOST_MARKS = 200
DAY = 24 * 3600
MOST_SCORES = 400  # a case has up to 300 points
NOT_SAID = {"code", "seq", "base", "attempt", "submit", "scores"}  # of a training answer

Count = Annotated[int, Field(ge=0, le=LARGEST)]
Name = Annotated[str, Field(max_length=64)]
Comment = Annotated[str, Field(max_length=LONGEST_COMMENT)]
STRICT = ConfigDict(frozen=True, strict=True, extra="forbid")


class Mark(BaseModel):
    """A marked stretch as the form sends it; see `data.card.Marked`."""

    model_config = STRICT
    criterion: Name
    start: Count
    end: Count
    error: Name
    note: str = Field(default="", max_length=LONGEST_NOTE)
    side: Side = "response"
    severity: Severity = ""
    linked: Count | None = None


class Message(BaseModel):
    """One message of the form: all that is entered for one response, as draft or to submit.

    Attributes
    ----------
    code, seq, attempt
        Which response; which state of it, as its own page counts; how often that was sent.
    base
        Number of the stored state that the page last knew; None replaces whatever is stored.
    by
        The page that sent it: two pages open on one response tell their drafts apart.
    comment, comments
        On the response as a whole, and by criterion.
    odd
        What a flag is about, for the coordinator.
    seconds
        Seconds active on this response so far.
    go, reason
        Where the clinician goes from here, this state kept; and why, if they recuse themselves.
    appearance
        Whether the page is light or dark.
    """

    model_config = STRICT
    code: str = Field(max_length=64)
    seq: Count
    base: Count | None = None
    attempt: Count
    by: str = Field(max_length=32)
    scores: dict[Name, int | Literal["not_applicable", "cannot_tell"]] = Field(
        max_length=MOST_SCORES
    )
    comment: Comment
    comments: dict[Name, Comment] = Field(default_factory=dict, max_length=MOST_SCORES)
    seconds: float = Field(ge=0, le=DAY)
    submit: bool
    spans: list[Mark] = Field(default_factory=list, max_length=MOST_MARKS)
    flags: list[Flag] = Field(default_factory=list, max_length=8)
    odd: str = Field(default="", max_length=LONGEST_NOTE)
    go: Literal["", "previous", "next", "recuse"] = ""
    reason: str = Field(default="", max_length=LONGEST_REASON)
    appearance: Literal["light", "dark"] = "light"

    def state(self) -> FormState:
        """Return what is kept of this state for whoever returns to it."""
        stored_fields = {"scores", "comment", "comments", "by", "seq", "spans", "flags", "odd"}
        draft: dict[str, Any] = self.model_dump(include=stored_fields)
        return FormState(draft, self.seconds, self.base, self.appearance)

    def reply(self) -> Reply:
        """Return this state as a rater's answer."""
        return self.state().reply()


GARBLED = "The page sent something that cannot be read. Nothing was saved; reload the page."
OFF = "A score is not a point of this scale. Nothing was saved; reload the page."
FOREIGN = "This response is not assigned to you. Nothing was saved; reload the page."
BUSY = "The study cannot be reached just now. Your entries are kept here and are sent again."
CLOSED = "The study is locked. Nothing was saved; ask the coordinator."
NO_RECUSAL = "A training response cannot be given back: it shows how the scale is used."
WHY = "write one line why, or mark where in the response."
CHANGED = "This response was changed in another window. What is stored now is shown here."


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a message, and what the page shows next.

    Attributes
    ----------
    code, seq, attempt
        Of the message.
    version
        Number of the state that is stored of this response now; None where nothing was stored.
    error
        What to tell the clinician; empty where all is well.
    busy, stale
        Whether the study could not be reached, so that the same message may be sent again; and
        whether another page has changed this response.
    moved
        Whether the page goes on from this response: to `at`, or to whatever is next.
    after
        Whether to show it as just rated, with its reference.
    """

    code: str
    seq: int
    attempt: int
    version: int | None = None
    error: str = ""
    busy: bool = False
    stale: bool = False
    moved: bool = False
    at: str = ""
    after: bool = False


def take_in(
    engine: Engine, person: Person, payload: object, house: Situation | None = None
) -> Answer:
    """Save a draft or submit a rating; taking in the same message again changes nothing."""
    settings = house or room.situation(engine, 0)
    return _taken_in(payload, partial(_take_in, engine, person.rater or 0, settings))


def take_in_training(
    engine: Engine, rater: int, payload: object, house: Situation | None = None
) -> Answer:
    """Save a draft or an answer of the training round: the same messages, other tables."""
    settings = house or room.situation(engine, 0)
    return _taken_in(payload, partial(_take_in_training, engine, rater, settings))


def _taken_in(payload: object, act: Callable[[Message, Answer], Answer]) -> Answer:
    """Act on a message, and answer it; one that is none of our form's is answered, not read again."""
    try:
        message = Message.model_validate(payload)
    except ValidationError:
        return refused(payload, GARBLED)
    answer = Answer(message.code, message.seq, message.attempt)
    try:
        return act(message, answer)
    except MedjuryError as error:
        message_text, stale = plainly(error), isinstance(error, Stale)
        return replace(answer, error=message_text, busy=message_text == BUSY, stale=stale)


def refused(payload: object, why: str) -> Answer:
    """Return the answer to a message that is not taken in; it echoes what was sent."""
    fields = payload if isinstance(payload, Mapping) else {}
    code, seq, attempt = (fields.get(name) for name in ("code", "seq", "attempt"))
    return Answer(code, seq, attempt, error=why)  # type: ignore[arg-type]


def plainly(error: MedjuryError) -> str:
    """Return an error in words that betray neither rubric, benchmark nor database."""
    if isinstance(error, NotAllowed) and "locked" in str(error):
        return CLOSED
    if isinstance(error, Unexplained):
        return f"{label(str(error))} is low: {WHY}"
    field_name = (
        *((OffScale, OFF), (Unknown, OFF), (NotAllowed, FOREIGN)),
        *((NoStudy, BUSY), (Stale, CHANGED)),
    )
    for kind, words in field_name:
        if isinstance(error, kind):
            return words
    return str(error) if isinstance(error, BadInput) else BUSY


def label(criterion: str) -> str:
    """Return a criterion's name as the page writes it."""
    return criterion.replace("_", " ").capitalize()


def _take_in(
    engine: Engine, rater: int, house: Situation, message: Message, answer: Answer
) -> Answer:
    """Store a message, and find out where the clinician goes from there."""
    if message.go == "recuse":
        assignments.recuse(engine, rater, message.code, message.reason)
        return replace(answer, moved=True)
    if message.submit:
        return _submit(engine, rater, house, message, answer)
    version = ratings.save_draft(engine, rater, message.code, message.state())
    stored = replace(answer, version=version, moved=bool(message.go))
    if message.go == "previous":
        return replace(stored, at=_before(engine, rater, message.code))
    return stored


def _take_in_training(
    engine: Engine, rater: int, house: Situation, message: Message, answer: Answer
) -> Answer:
    """Store a message of the training round; it asks for a reason as the real work does."""
    if message.go == "recuse":
        return replace(answer, error=NO_RECUSAL)
    if message.submit:
        entered = message.model_dump(mode="json", exclude=NOT_SAID)
        why = house.settings.ask_why
        answer_drill(engine, rater, message.code, message.reply(), entered, ask_why=why)
        return replace(answer, moved=True)
    return replace(answer, version=save_drill_draft(engine, rater, message.code, message.state()))


def _submit(
    engine: Engine, rater: int, house: Situation, message: Message, answer: Answer
) -> Answer:
    """Submit a rating; say whether its reference is shown now."""
    why = house.settings.ask_why
    state, reply = message.state(), message.reply()
    ratings.submit(engine, rater, message.code, reply, message.seconds, state, ask_why=why)
    after = house.settings.reference == "after_rating" and _has_reference(
        room.task(engine, rater, message.code)
    )
    return replace(answer, moved=True, at=message.code if after else "", after=after)


def _has_reference(task: Task | None) -> bool:
    """Tell whether a response has a reference that the clinician has not seen."""
    return task is not None and task.card.reference is not None and not task.reference_opened


def _before(engine: Engine, rater: int, code: str) -> str:
    """Return the code of what was rated before a response; the first stays where it is."""
    rated = room.rated_codes(engine, rater)
    if code not in rated:
        return rated[-1] if rated else code
    return rated[max(0, rated.index(code) - 1)]
