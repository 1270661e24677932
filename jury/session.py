"""One juror within a run, and what all jurors of a run share."""

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
        Status and reason once it is not to be asked again in this run.
    """

    def __init__(
        self, juror: Juror, rater: int, provider: Provider, limiter: RateLimiter | None = None
    ) -> None:
        self.juror = juror
        self._limiter = limiter or RateLimiter(HostLimits())
        self._sent: set[int] = set()
        self.rater = rater
        self.provider = provider
        self.fallback = FormFallback(forms_of(juror))
        self.stopped: tuple[Status, str] | None = None
        self._failed_in_a_row = 0
        self._has_replied = False
        self._serves_probabilities = False
        self._last_silence: Answer | None = None
        self._silences = 0
        self._stopped_event = asyncio.Event()

    def stop(self, status: Status, reason: str) -> None:
        """Ask this juror no more; the first reason stays."""
        self.stopped = self.stopped or (status, reason)
        self._stopped_event.set()

    async def wait(self, seconds: float, stopping: asyncio.Event) -> None:
        """Wait so many seconds, or until the run or this juror is stopped."""
        if seconds <= 0:
            return
        tasks = [asyncio.create_task(event.wait()) for event in (stopping, self._stopped_event)]
        try:
            await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def pause(self, seconds: float) -> None:
        """Send nothing to the juror's host for so many seconds, as it limits the rate of requests."""
        self._limiter.pause(seconds)

    def pause_left(self) -> float:
        """Return the seconds until requests may go out to its host again."""
        return self._limiter.pause_left()

    @asynccontextmanager
    async def rate_limited(self, call: Call, stopping: asyncio.Event) -> AsyncIterator[None]:
        """Wait until the host's rate limits allow one more request, or all is stopped.

        A block that does not call `note_sent` has sent nothing, and nothing is counted.
        """
        tokens = estimated_tokens(self.juror, call)
        async with self._limiter.slot(tokens, lambda: self.is_over(stopping)) as counted:
            try:
                yield
            finally:
                if counted and id(call) not in self._sent:
                    self._limiter.release(tokens)
                self._sent.discard(id(call))

    def note_sent(self, call: Call, usage: Usage) -> None:
        """Note that a request was sent, and how many tokens of the host's limit it used."""
        self._sent.add(id(call))
        self._limiter.settle(estimated_tokens(self.juror, call), tokens_used(usage))

    def is_over(self, stopping: asyncio.Event) -> bool:
        """Return whether the run or this juror is stopped."""
        return stopping.is_set() or self.stopped is not None

    def note_reply(self, answer: Answer, bound: int) -> None:
        """Note whether the endpoint replied; stop a juror that never has after `bound` requests."""
        self._has_replied = self._has_replied or answer.http is not None
        if self._has_replied:
            self._last_silence = None
            return
        self._last_silence, self._silences = answer, self._silences + 1
        if self._silences >= bound:
            self.stop(answer.status, f"{bound} failures in a row, the last: {answer.reason}")

    def note_probabilities(self, answer: Answer, status: Status, reason: str) -> None:
        """Stop a juror whose scores need token probabilities and whose endpoint never served any."""
        self._serves_probabilities = self._serves_probabilities or bool(answer.tokens)
        if status == Status.NO_PROBABILITIES and not self._serves_probabilities:
            self.stop(status, reason)

    def stop_if_silent(self) -> None:
        """Stop a juror that never replied, where the cap has no room for its next request."""
        if self._last_silence is not None:
            why = "what it left unanswered counts in full against the cap"
            self.stop(
                self._last_silence.status,
                f"{self._last_silence.reason}, and never an answer; {why}",
            )

    def note_success(self) -> None:
        """Note a request that succeeded: failures in a row are counted anew."""
        self._failed_in_a_row = 0

    def note_failure(self, answer: Answer, bound: int) -> None:
        """Note a verdict that the endpoint failed to give; `bound` of them in a row stop the juror."""
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= bound:
            self.stop(answer.status, f"{bound} failures in a row, the last: {answer.reason}")


def fatal(answer: Answer) -> str:
    """Return why an answer stops its juror at once, empty if it does not."""
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
    """What all jurors of a run share.

    Attributes
    ----------
    budget
        The cap on what all calls cost together.
    ready
        Bounds the calls in flight plus those whose intent is stored and that wait for a place.
    places
        Bounds the calls in flight.
    stopping
        Set once the run is to send nothing more.
    called
        Called after each request with its cost and tokens.
    shared
        Called for each verdict that was taken over from the same prompt, without a request.
    """

    budget: Budget
    ready: asyncio.Semaphore
    places: asyncio.Semaphore
    stopping: asyncio.Event
    patience: Patience
    called: Callable[[Price, Usage], None]
    shared: Callable[[], None] = lambda: None
