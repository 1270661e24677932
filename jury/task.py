"""What a juror is asked, and how: one question, the form and reading of its answer, and asking again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from data.calls import Status
from data.rubric import Rubric
from data.schema import Purpose
from jury.call import Answer, Form, Turn
from jury.parse import ParsedAnswer
from jury.reading import Unreadable, objects, storable

AnyForm = TypeVar("AnyForm", bound=BaseModel)


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
        Returns the question and the schema without explanations, asked where the first answer was cut off;
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
    shorter: Callable[[], tuple[Turn, Mapping[str, Any]]] | None = None
    note: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of an `Attempt` that say what was asked."""
        return {"purpose": self.purpose, "replicate": self.replicate, **self.subject}


def reader(
    form: type[AnyForm], take: Callable[[AnyForm], ParsedAnswer]
) -> Callable[[Answer], ParsedAnswer]:
    """Return what reads an answer that is one object of a pydantic form; `take` says what it comes to."""

    def read(answer: Answer) -> ParsedAnswer:
        if answer.status != Status.OK:
            return ParsedAnswer(answer.status, answer.reason)
        try:
            found = form.model_validate(objects(answer.text)[0][1])
        except Unreadable as error:
            return ParsedAnswer(Status(error.status), str(error))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the answer"
            status = Status.MISSING_CRITERION if first["type"] == "missing" else Status.INVALID_JSON
            return ParsedAnswer(status, storable(f"{where[:80]}: {first['msg']}"))
        return take(found)

    return read


AGAIN = (
    "This answer cannot be used: {reason}. Rate the same response again. Answer with one JSON "
    "object only, in the form given above, {scores}."
)
NO_TEXT = "the response has no text"
NO_ANSWER = "(no answer)"
REFUSED_FORM = (400, 415, 422, 501)  # HTTP status of servers that do not know a form of answer
Turns = tuple[Turn, ...]


def with_retry(turns: Turns, answer: str, question: str) -> Turns:
    """Return the conversation with the juror's answer quoted back and the next question."""
    quoted = storable(answer).strip() or NO_ANSWER
    return (*turns, Turn("assistant", quoted), Turn("user", question))


@dataclass(frozen=True, slots=True)
class Patience:
    """How failures that may pass are retried.

    Attributes
    ----------
    tries
        Requests for one verdict before it counts as missing.
    first_wait, longest_wait
        Seconds before the second request, doubled each time up to the longest.
    bound
        Seconds that an endpoint may ask to wait; one that asks for more stops its juror.
    in_a_row
        Verdicts that may fail one after another before the juror is stopped; requests, for an
        endpoint that has never replied in this run.
    """

    tries: int = 6
    first_wait: float = 0.5
    longest_wait: float = 8.0
    bound: float = 120.0
    in_a_row: int = 10

    def wait(self, tried: int, retry_after: float | None) -> float:
        """Return the seconds to wait: what the endpoint asks for, else a time that doubles."""
        if retry_after is not None:
            return retry_after
        return float(min(self.longest_wait, self.first_wait * 2 ** (tried - 1)))


class FormFallback:
    """The forms of answer that an endpoint may know; it is kept to the first one it answers in."""

    def __init__(self, forms: Sequence[Form]) -> None:
        self._forms = tuple(forms)
        self._proved = False
        self.form: Form = self._forms[0]

    def works(self, form: Form) -> None:
        """Note that the endpoint answered in a form."""
        if not self._proved:
            self._proved, self.form = True, form

    def below(self, form: Form, answer: Answer, failures: int) -> Form | None:
        """Return the form to try next if the failure may be due to the form, else None.

        Some servers answer an unknown form with HTTP 500, so a second 500 counts as well, as
        long as no request in that form has ever been answered.
        """
        lower = self._forms[self._forms.index(form) + 1 :] if form in self._forms else ()
        if self._proved:  # by another verdict, while this one was asked in a stricter form
            lower = (self.form,) if self.form in lower else ()
        if not lower or answer.status != Status.REQUEST_FAILED:
            return None
        repeated = failures > 1 or self._proved
        at_fault = answer.http in REFUSED_FORM or (answer.http == 500 and repeated)
        return lower[0] if at_fault else None
