"""One juror within a run, and what all jurors of a run share: money, places, patience."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from data.schema import Status
from jury.asking import FormFallback
from jury.asking import Patience as Patience
from jury.call import Answer, Call, Provider, Usage
from jury.cost import Budget, Price
from jury.http_answers import refused_setting, value_sent
from jury.panel import Juror
from jury.providers.registry import forms_of
from jury.rates import HostLimits, RateLimiter, estimated_tokens, tokens_used

NO_SUCH_MODEL = "no such model or address"
REFUSES = "the model refuses"


class JurorSession:
    """One juror within one run.

    Attributes
    ----------
    rater
        Its primary key in the study.
    stopped
        Status and reason once it is of no use to ask it again in this run.
    """

    def __init__(
        self, juror: Juror, rater: int, provider: Provider, gate: RateLimiter | None = None
    ) -> None:
        self.juror = juror
        self._gate = gate or RateLimiter(HostLimits())
        self._sent: set[int] = set()
        self.rater = rater
        self.provider = provider
        self.fallback = FormFallback(forms_of(juror))
        self.stopped: tuple[Status, str] | None = None
        self._failed_in_a_row = 0
        self._heard = False
        self._tells = False
        self._silence: Answer | None = None
        self._silent = 0
        self._over_now = asyncio.Event()

    def stop(self, status: Status, reason: str) -> None:
        """Ask this juror no more; the first reason stays."""
        self.stopped = self.stopped or (status, reason)
        self._over_now.set()

    async def rest(self, seconds: float, stopping: asyncio.Event) -> None:
        """Wait, unless the run or this juror is stopped."""
        if seconds <= 0:
            return
        tasks = [asyncio.create_task(event.wait()) for event in (stopping, self._over_now)]
        try:
            await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def pause(self, seconds: float) -> None:
        """Send the juror's host nothing for a while: it is limiting the rate of all requests."""
        self._gate.pause(seconds)

    def pause_left(self) -> float:
        """Return the seconds until requests may go out to its host again."""
        return self._gate.pause_left()

    @asynccontextmanager
    async def entered(self, call: Call, stopping: asyncio.Event) -> AsyncIterator[None]:
        """Wait until the host's limits bear one more request; not once it is all stopped.

        Where the block does not come to `used`, nothing was sent and nothing is counted.
        """
        tokens = estimated_tokens(self.juror, call)
        async with self._gate.entered(tokens, lambda: self._over(stopping)) as counted:
            try:
                yield
            finally:
                if counted and id(call) not in self._sent:
                    self._gate.unused(tokens)
                self._sent.discard(id(call))

    def used(self, call: Call, usage: Usage) -> None:
        """Note that a request was sent, and the tokens it really took of the host's limit."""
        self._sent.add(id(call))
        self._gate.used(estimated_tokens(self.juror, call), tokens_used(usage))

    def _over(self, stopping: asyncio.Event) -> bool:
        """Return whether nothing more is to be asked of it."""
        return stopping.is_set() or self.stopped is not None

    def heard(self, answer: Answer, bound: int) -> None:
        """Note how a request ended: where nobody has ever answered, too many stop the juror."""
        self._heard = self._heard or answer.http is not None
        if self._heard:
            self._silence = None
            return
        self._silence, self._silent = answer, self._silent + 1
        if self._silent >= bound:
            self.stop(answer.status, f"{bound} failures in a row, the last: {answer.reason}")

    def told_probabilities(self, answer: Answer, status: Status, reason: str) -> None:
        """Stop a juror that is read by the probabilities of its tokens, and has never told any."""
        self._tells = self._tells or bool(answer.tokens)
        if status == Status.NO_PROBABILITIES and not self._tells:
            self.stop(status, reason)

    def out_of_money(self) -> None:
        """Stop and name a juror that has only been silent where a cap has no room for more."""
        if self._silence is not None:
            why = "what it left unanswered counts in full against the cap"
            self.stop(self._silence.status, f"{self._silence.reason}, and never an answer; {why}")

    def answered(self) -> None:
        """Note that it is there."""
        self._failed_in_a_row = 0

    def failed(self, answer: Answer, bound: int) -> None:
        """Note a verdict lost to the endpoint; too many in a row stop the juror."""
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= bound:
            self.stop(answer.status, f"{bound} failures in a row, the last: {answer.reason}")


def fatal(answer: Answer) -> str:
    """Return why a juror is to be stopped at once after this answer, empty if it is not."""
    name = refused_setting(answer)
    if answer.status == Status.AUTH and answer.unsent:
        return answer.reason
    if answer.status == Status.AUTH and not name:
        return f"{answer.reason}: the key was refused"
    if answer.status == Status.QUOTA:
        return f"{answer.reason}: the account has no credit left"
    if answer.http == 404:
        return f"{answer.reason}: {NO_SUCH_MODEL}"
    if name:
        return (
            f"{answer.reason}: {REFUSES} {name} = {value_sent(answer, name)}; "
            "delete that line in the panel and give the juror another name"
        )
    return ""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all jurors of a run share: the money, the places, the stop sign and the count.

    Attributes
    ----------
    ready
        Bounds the calls that have a place or whose intent is stored while they wait for one.
    places
        Bounds the calls in flight.
    called, shared
        Told of each request with its cost and tokens, and of each verdict that took none.
    """

    budget: Budget
    ready: asyncio.Semaphore
    places: asyncio.Semaphore
    stopping: asyncio.Event
    patience: Patience
    called: Callable[[Price, Usage], None]
    shared: Callable[[], None] = lambda: None
