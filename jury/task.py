"""What a juror is asked: one question, the form of its answer, and how the answer is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from data.rubric import Rubric
from data.schema import Purpose, Status
from jury.call import Answer, Turn
from jury.parse import ParsedAnswer, Unreadable, one_object, storable

Form = TypeVar("Form", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Task:
    """One question to one juror.

    Attributes
    ----------
    purpose, subject
        What it asks for, and about what: column of an `Attempt` -> primary key (or round).
    question, schema
        The first turn, and the answer's form as a closed JSON Schema.
    read
        Returns the reading of an answer; never raises.
    again
        The second question, asked once where an answer cannot be used; `{reason}` says why.
    rubric
        The rubric that the answer is on, or is to better; None where there is none.
    replicate
        0, or the number of the repetition.
    shorter
        The question and the schema without explanations, asked where the first answer was cut off;
        None where there are none.
    note
        Keys that are stored with the settings of each request.
    """

    purpose: Purpose
    subject: Mapping[str, int]
    question: Turn
    schema: Mapping[str, Any]
    read: Callable[[Answer], ParsedAnswer]
    again: str
    rubric: Rubric | None = None
    replicate: int = 0
    shorter: tuple[Turn, Mapping[str, Any]] | None = None
    note: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of an `Attempt` that say what was asked."""
        return {"purpose": self.purpose, "replicate": self.replicate, **self.subject}


def reader(
    form: type[Form], take: Callable[[Form], ParsedAnswer]
) -> Callable[[Answer], ParsedAnswer]:
    """Return what reads an answer that is one object of a pydantic form; `take` says what it comes to."""

    def read(answer: Answer) -> ParsedAnswer:
        if answer.status != Status.OK:
            return ParsedAnswer(answer.status, answer.reason)
        try:
            found = form.model_validate(one_object(answer.text))
        except Unreadable as error:
            return ParsedAnswer(error.status, str(error))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the answer"
            status = Status.MISSING_CRITERION if first["type"] == "missing" else Status.INVALID_JSON
            return ParsedAnswer(status, storable(f"{where[:80]}: {first['msg']}"))
        return take(found)

    return read
