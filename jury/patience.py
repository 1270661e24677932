"""How long failures are borne, and in which form an endpoint is asked to answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from data.status import Status
from jury.call import TOO_LONG, Answer, Form

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

    def wait(self, tried: int, asked: float | None) -> float:
        """Return the seconds to wait: what the endpoint asks for, or else a doubling time."""
        if asked is not None:
            return asked
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
        again = failures > 1 or self._proved
        at_fault = answer.http in REFUSED_FORM or (answer.http == 500 and again)
        return lower[0] if at_fault else None
