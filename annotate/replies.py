"""What the rating form sends and is sent: every message names its own response and its number."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Engine

from annotate.panes import unseen
from data import queries, store
from data.card import Flag, Marked, Reply
from data.errors import BadInput, MedjuryError, NoStudy, NotAllowed, OffScale, Unknown
from data.queries import House, Person, Task
from data.rubric import low_points
from data.store.training import answer_drill, save_drill_draft

LARGEST = 2**31 - 1
LONGEST_COMMENT = 20_000
LONGEST_REASON = 500
MOST_MARKS = 200
DAY = 24 * 3600
GARBLED = "The page sent something that cannot be read. Nothing was saved; reload the page."
OFF = "A score is not a point of this scale. Nothing was saved; reload the page."
FOREIGN = "This response is not assigned to you. Nothing was saved; reload the page."
BUSY = "The study cannot be reached just now. Your entries are kept here and are sent again."
CLOSED = "The study is locked. Nothing was saved; ask the coordinator."
NOT_SAID = {"code", "seq", "attempt", "submit", "scores"}  # of a training answer, beside its scores

Count = Annotated[int, Field(ge=0, le=LARGEST)]
Name = Annotated[str, Field(max_length=64)]


class Mark(BaseModel):
    """A marked stretch as the form sends it; see `data.card.Marked`."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")
    criterion: Name
    start: Count
    end: Count
    error: Name


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
    go, reason
        Where the clinician goes from here, this state kept; and why, if they recuse themselves.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")
    code: str = Field(max_length=64)
    seq: Count
    attempt: Count
    by: str = Field(max_length=32)
    scores: dict[Name, int] = Field(max_length=64)
    comment: str = Field(max_length=LONGEST_COMMENT)
    seconds: float = Field(ge=0, le=DAY)
    submit: bool
    spans: list[Mark] = Field(default_factory=list, max_length=MOST_MARKS)
    flags: list[Flag] = Field(default_factory=list, max_length=8)
    go: Literal["", "previous", "next", "recuse"] = ""
    reason: str = Field(default="", max_length=LONGEST_REASON)

    def draft(self) -> dict[str, Any]:
        """Return what is kept of this state until it is submitted."""
        return self.model_dump(include={"scores", "comment", "by", "spans", "flags"})

    def reply(self) -> Reply:
        """Return this state as a rater's answer."""
        spans = tuple(Marked(m.criterion, m.start, m.end, m.error) for m in self.spans)
        return Reply(self.scores, comment=self.comment, spans=spans, flags=tuple(self.flags))


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a message, and what the page shows next.

    Attributes
    ----------
    error
        What to tell the clinician; empty where all is well.
    at
        Code of the response to show; empty for whatever is next.
    after
        Whether to show it as just rated, with its reference.
    """

    code: str
    seq: int
    attempt: int
    error: str = ""
    at: str = ""
    after: bool = False

    def answers(self, payload: object) -> bool:
        """Return whether this is the answer to that very message."""
        return isinstance(payload, Mapping) and (self.code, self.seq, self.attempt) == tuple(
            payload.get(name) for name in ("code", "seq", "attempt")
        )


def take_in(engine: Engine, person: Person, payload: object) -> Answer:
    """Save a draft or submit a rating; taking in the same message again changes nothing."""
    return _taken_in(payload, partial(_take_in, engine, person.rater or 0))


def take_in_training(engine: Engine, rater: int, payload: object) -> Answer:
    """Save a draft or an answer of the training round: the same messages, other tables."""
    return _taken_in(payload, partial(_take_in_training, engine, rater))


def _taken_in(payload: object, act: Callable[[Message, Answer], Answer]) -> Answer:
    """Act on a message, and answer it; one that is none of our form's is answered, not read again."""
    try:
        message = Message.model_validate(payload)
    except ValidationError:
        fields = payload if isinstance(payload, Mapping) else {}
        code, seq, attempt = (fields.get(name) for name in ("code", "seq", "attempt"))
        return Answer(code, seq, attempt, GARBLED)  # type: ignore[arg-type] # echoes what was sent
    answer = Answer(message.code, message.seq, message.attempt, at=message.code)
    try:
        return act(message, answer)
    except MedjuryError as error:
        return replace(answer, error=_plainly(error))


def form_data(task: Task, answer: Answer | None) -> dict[str, Any]:
    """Return what the bare form is sent: the criteria and what this rater entered, no author."""
    points = list(task.rubric.scale.points)
    scores = task.draft.get("scores", {})
    return {
        "code": task.card.code,
        "points": points,
        "criteria": [
            {
                "name": one.name,
                "label": label(one.name),
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


def why_asked(task: Task, house: House, reply: Reply) -> str:
    """Return what to say if a low score stands without a reason, or nothing."""
    first = task.rubric.criteria[0]
    given = reply.comment.strip() or reply.spans
    if (
        not house.settings.ask_why
        or given
        or reply.scores.get(first) not in low_points(task.rubric)
    ):
        return ""
    return f"{label(first)} is low: write one line why, or mark where in the response."


def about(answer: Answer) -> dict[str, Any]:
    """Return what the form is told of an answer."""
    return {
        "code": answer.code,
        "seq": answer.seq,
        "error": answer.error,
        "again": answer.error == BUSY,
    }


def label(criterion: str) -> str:
    """Return a criterion's name as the page writes it."""
    return criterion.replace("_", " ").capitalize()


def _take_in(engine: Engine, rater: int, message: Message, answer: Answer) -> Answer:
    """Store a message, and find out where the clinician goes from there."""
    if message.go == "recuse":
        store.recuse(engine, rater, message.code, message.reason)
        return replace(answer, at="")
    if message.submit:
        return _submit(engine, rater, message, answer)
    draft = message.draft()
    store.save_draft(engine, rater, message.code, message.seq, draft, message.seconds)
    if message.go == "previous":
        return replace(answer, at=_before(engine, rater, message.code))
    return replace(answer, at="") if message.go == "next" else answer


def _take_in_training(engine: Engine, rater: int, message: Message, answer: Answer) -> Answer:
    """Store a message of the training round."""
    if message.submit:
        said = message.model_dump(mode="json", exclude=NOT_SAID)
        answer_drill(engine, rater, message.code, message.reply(), said)
    else:
        draft, seconds = message.draft(), message.seconds
        save_drill_draft(engine, rater, message.code, message.seq, draft, seconds)
    return answer


def _submit(engine: Engine, rater: int, message: Message, answer: Answer) -> Answer:
    """Submit a rating; say whether its reference is shown now."""
    house = queries.house(engine)
    task = queries.task(engine, rater, message.code)
    reply = message.reply()
    if task is not None and (asked := why_asked(task, house, reply)):
        return replace(answer, error=asked)
    store.submit(
        engine,
        rater,
        message.code,
        reply,
        message.seconds,
        seq=message.seq,
        draft=message.draft(),
    )
    after = (
        task is not None
        and house.settings.reference == "after_rating"
        and task.card.reference is not None
        and not task.reference_opened
    )
    return replace(answer, at=message.code if after else "", after=after)


def _before(engine: Engine, rater: int, code: str) -> str:
    """Return the code of what was rated before a response; the first stays where it is."""
    rated = queries.rated_codes(engine, rater)
    if code not in rated:
        return rated[-1] if rated else code
    return rated[max(0, rated.index(code) - 1)]


def _plainly(error: MedjuryError) -> str:
    """Return an error in words that betray neither rubric, benchmark nor database."""
    if isinstance(error, NotAllowed) and "locked" in str(error):
        return CLOSED
    for kind, words in ((OffScale, OFF), (Unknown, OFF), (NotAllowed, FOREIGN), (NoStudy, BUSY)):
        if isinstance(error, kind):
            return words
    return str(error) if isinstance(error, BadInput) else BUSY


def _shown(task: Task, answer: Answer | None) -> dict[str, Any] | None:
    """Return the answer for the form, if it is about the response now shown or went wrong."""
    if answer is None or (answer.code != task.card.code and not answer.error):
        return None
    return about(answer)


def room_data(
    task: Task, answer: Answer | None, house: House, *, previous: bool, after: bool
) -> dict[str, Any]:
    """Return the form's data with what was marked and flagged, and what this study asks for.

    Parameters
    ----------
    previous
        Whether there is something rated before this response.
    after
        Whether the response was just rated and is shown with its reference.
    """
    asks = house.settings.ask_why
    return form_data(task, answer) | {
        "tools": True,
        "mode": "after" if after else "rate",
        "previous": previous,
        "rated": task.done_at.isoformat() if task.ended and task.done_at else "",
        "unsent": task.ended and task.draft_seq > task.submitted_seq,
        "why": {
            "criterion": task.rubric.criteria[0],
            "points": list(low_points(task.rubric)) if asks else [],
        },
        "spans": task.draft.get("spans", []),
        "flags": task.draft.get("flags", []),
        "unseen": unseen(task.card.response),
        "pause": house.settings.pause_minutes,
    }
