"""What is said to a juror about a response: the first question, and the one after a bad answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from data.question import ScaleLike
from data.status import Status
from jury.call import TOO_LONG, Answer, Form, Turn
from jury.parse import storable

AGAIN = (
    "This answer cannot be used: {reason}. Rate the same response again. Answer with one JSON "
    "object only, in the form given above, every score a whole number on the scale {scale}."
)
NO_TEXT = "the response has no text"
NO_ANSWER = "(no answer)"
Turns = tuple[Turn, ...]


def first_question(prompt: str) -> Turns:
    """Return the conversation in which a juror is sent a rendered prompt."""
    return (Turn("user", prompt),)


def retry_question(reason: str, scale: ScaleLike) -> str:
    """Return the question once more, with what is wrong with the answer."""
    return AGAIN.format(reason=reason, scale=scale)


def with_retry(turns: Turns, answer: str, question: str) -> Turns:
    """Return the conversation with the juror's answer quoted back, and what is said to it."""
    quoted = storable(answer).strip() or NO_ANSWER
    return (*turns, Turn("assistant", quoted), Turn("user", question))


REFUSED_FORM = (400, 415, 422, 501)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a run bears with failures that may pass, in requests and seconds.

    Attributes
    ----------
    tries
        Requests for one verdict before it counts as missing.
    first_wait, longest_wait
        Wait before the second request, doubled each time up to the longest.
    bound
        The longest wait an endpoint may ask for; one that asks for more stops its juror.
    in_a_row
        Verdicts that may fail one after another before the juror is stopped; of an endpoint that
        has never said anything in this run, requests.
    """

    tries: int = 6
    first_wait: float = 0.5
    longest_wait: float = 8.0
    bound: float = 120.0
    in_a_row: int = 10

    def wait(self, tried: int, retry_after: float | None) -> float:
        """Return the seconds to wait: what the endpoint asks for, or else a doubling time."""
        if retry_after is not None:
            return retry_after
        return float(min(self.longest_wait, self.first_wait * 2 ** (tried - 1)))


class FormFallback:
    """The forms of answer an endpoint may know; the first one it answers in is kept."""

    def __init__(self, forms: Sequence[Form]) -> None:
        self._forms = tuple(forms)
        self._proved = False
        self.form: Form = self._forms[0]

    def works(self, form: Form) -> None:
        """Note that the endpoint answered in a form."""
        if not self._proved:
            self._proved, self.form = True, form

    def below(self, form: Form, answer: Answer, failures: int) -> Form | None:
        """Return the form to try next where the failure may be the form's fault, else None.

        Some servers answer an unknown form with HTTP 500, so a second 500 counts as well, as
        long as no request in that form has ever been answered.
        """
        lower = self._forms[self._forms.index(form) + 1 :] if form in self._forms else ()
        if self._proved:  # by another verdict, while this one was still on a higher rung
            lower = (self.form,) if self.form in lower else ()
        if not lower or answer.status != Status.REQUEST_FAILED or TOO_LONG in answer.reason:
            return None
        repeated = failures > 1 or self._proved
        at_fault = answer.http in REFUSED_FORM or (answer.http == 500 and repeated)
        return lower[0] if at_fault else None
