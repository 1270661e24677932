"""One juror within a run, what all jurors of a run share, and the limits of the hosts they call."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from data.schema import Status
from jury.api_protocols import refused_setting, value_sent
from jury.budget import Budget
from jury.call import Answer, Call, Provider, Usage
from jury.panel import Juror, Panel
from jury.providers.registry import forms_of
from jury.run_result import RunTally
from jury.task import FormFallback, Patience
from jury.window import CHARACTERS_PER_TOKEN

MINUTE = 60.0
LONGEST_WAIT = 0.5  # so that a run that is stopped meanwhile is not kept waiting
Clock = Callable[[], float]
Nap = Callable[[float, asyncio.Event], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class HostLimits:
    """The limits of one host, None for those that no juror names."""

    concurrency: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


class Allowance:
    """A token bucket that fills evenly with time; `clock` gives seconds and never runs backwards."""

    def __init__(self, per_minute: float, clock: Clock = time.monotonic) -> None:
        self._per_second = per_minute / MINUTE
        self._holds = max(1.0, self._per_second)
        self._level = self._holds
        self._clock = clock
        self._at = clock()

    def wait(self, amount: float) -> float:
        """Return the seconds until an amount may be taken, 0 where it may be now."""
        self._fill()
        missing = min(amount, self._holds) - self._level
        # Less than a nanosecond is rounding, and would be waited for without end.
        return missing / self._per_second if missing > self._per_second * 1e-9 else 0.0

    def take(self, amount: float) -> None:
        """Take an amount, more than there is if need be: the next request then waits longer."""
        self._fill()
        self._level -= amount

    def give_back(self, amount: float) -> None:
        """Put back what was taken and not used; a negative amount is taken as well."""
        self._fill()
        self._level = min(self._holds, self._level + amount)

    def _fill(self) -> None:
        now = self._clock()
        self._level = min(self._holds, self._level + (now - self._at) * self._per_second)
        self._at = now


async def nap(seconds: float, early: asyncio.Event) -> None:
    """Wait so many seconds, or until the event if that comes first."""
    early.clear()
    with suppress(TimeoutError):
        await asyncio.wait_for(early.wait(), seconds)


class RateLimiter:
    """Lets requests to one host through as fast as its limits allow."""

    def __init__(self, limits: HostLimits, clock: Clock = time.monotonic, nap: Nap = nap) -> None:
        self.limits = limits
        self._clock = clock
        self._open_at = 0.0
        self._nap = nap
        self._returned = asyncio.Event()
        self._requests = _bucket(limits.requests_per_minute, clock)
        self._tokens = _bucket(limits.tokens_per_minute, clock)
        self._places = None if limits.concurrency is None else asyncio.Semaphore(limits.concurrency)
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def slot(
        self, tokens: float, stopped: Callable[[], bool] = lambda: False
    ) -> AsyncIterator[bool]:
        """Wait until one request may be sent, first come first served, and hold its place.

        Yields whether it may be sent. Once `stopped` returns true, nothing is waited for and
        nothing is counted.
        """
        if self._places is None:
            yield await self._leave(tokens, stopped)
            return
        async with self._places:
            yield await self._leave(tokens, stopped)

    def bound(self, at_once: int) -> None:
        """Let through so many requests at once; to be called before the first."""
        self._places = asyncio.Semaphore(at_once)

    def pause(self, seconds: float) -> None:
        """Let nothing through for so many seconds, as the host has asked."""
        self._open_at = max(self._open_at, self._clock() + seconds)

    def pause_left(self) -> float:
        """Return the seconds until requests may be sent again."""
        return max(0.0, self._open_at - self._clock())

    def settle(self, estimated: float, really: int | None) -> None:
        """Replace the estimated tokens of a request by those it used, where these are known."""
        if really is not None:
            if self._tokens is not None:
                self._tokens.give_back(estimated - really)
            self._returned.set()

    def release(self, tokens: float) -> None:
        """Put back all that a request took which was let through and not sent."""
        for bucket, amount in self._shares(tokens):
            bucket.give_back(amount)
        self._returned.set()

    def _shares(self, tokens: float) -> list[tuple[Allowance, float]]:
        allowances = (self._requests, 1.0), (self._tokens, tokens)
        return [(bucket, amount) for bucket, amount in allowances if bucket is not None]

    async def _leave(self, tokens: float, stopped: Callable[[], bool]) -> bool:
        """Wait until both allowances have room for one more request, and take it from them."""
        shares = self._shares(tokens)
        if not shares:
            return True
        async with self._turn:
            while not stopped():
                seconds = max(bucket.wait(amount) for bucket, amount in shares)
                if seconds <= 0:
                    for bucket, amount in shares:
                        bucket.take(amount)
                    return True
                await self._nap(min(seconds, LONGEST_WAIT), self._returned)
        return False


def rate_limiters(panel: Panel) -> dict[str, RateLimiter]:
    """Return the limiter of each juror by name; jurors at one host and port share one."""
    shared = {juror.address: RateLimiter(_strictest(panel, juror.address)) for juror in panel.juror}
    return {juror.name: shared[juror.address] for juror in panel.juror}


def estimated_tokens(juror: Juror, call: Call) -> float:
    """Return the tokens a request may use: one per 3.5 characters, plus the longest answer."""
    characters = sum(len(turn.text) for turn in call.messages)
    return characters / CHARACTERS_PER_TOKEN + juror.max_tokens


def tokens_used(usage: Usage) -> int | None:
    """Return the tokens a request used, None where the endpoint did not report them."""
    if usage.tokens_in is None or usage.tokens_out is None:
        return None
    return usage.tokens_in + usage.tokens_out


def _bucket(per_minute: int | None, clock: Clock) -> Allowance | None:
    return None if per_minute is None else Allowance(per_minute, clock)


def _strictest(panel: Panel, address: str) -> HostLimits:
    jurors = [juror for juror in panel.juror if juror.address == address]
    names = ("concurrency", "requests_per_minute", "tokens_per_minute")
    values_of = {name: [getattr(juror, name) for juror in jurors] for name in names}
    return HostLimits(
        **{
            name: min((value for value in values if value is not None), default=None)
            for name, values in values_of.items()
        }
    )


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

    async def keep_to_slots(self) -> None:
        """Send its host as many requests at once as it has slots, unless the panel says how many."""
        if self._limiter.limits.concurrency is None:
            self._limiter.bound(await self.provider.slots())

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
    tally
        Counts requests and verdicts.
    most_read
        Hash of a prompt -> the most tokens of it that a host reported.
    """

    budget: Budget
    ready: asyncio.Semaphore
    places: asyncio.Semaphore
    stopping: asyncio.Event
    patience: Patience
    tally: RunTally
    most_read: dict[int, int] = field(default_factory=dict)
