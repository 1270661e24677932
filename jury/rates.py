"""Limits of a host: requests at once, requests a minute, tokens a minute.

Jurors at one address share its limits, and where their panel names several, the strictest holds.
Requests are paced rather than sent in a burst: a bucket holds one second of its limit, and a request
that is larger goes when the bucket is full and leaves a debt. In any minute that makes the limit,
one second of it and one request at most.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from jury.call import Call, Provider, Usage
from jury.cost import CHARACTERS_PER_TOKEN
from jury.panel import Juror, Panel

MINUTE = 60.0
LONGEST_WAIT = 0.5  # so that a run that is stopped meanwhile is not kept waiting
LIMIT_HEADERS = ("x-ratelimit-", "anthropic-ratelimit-")
LONGEST_HEADER = 60
Clock = Callable[[], float]
Nap = Callable[[float, asyncio.Event], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class HostLimits:
    """What one host bears; None where nothing is said."""

    concurrency: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


class Allowance:
    """An allowance that fills evenly with time; `clock` gives seconds and never runs backwards."""

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
        """Take an amount, more than there is if need be: what follows waits the longer."""
        self._fill()
        self._level -= amount

    def give_back(self, amount: float) -> None:
        """Put back what was taken and not used; a negative amount is taken besides."""
        self._fill()
        self._level = min(self._holds, self._level + amount)

    def _fill(self) -> None:
        """Add what has come in since the last look."""
        now = self._clock()
        self._level = min(self._holds, self._level + (now - self._at) * self._per_second)
        self._at = now


async def nap(seconds: float, early: asyncio.Event) -> None:
    """Wait, but no longer than until the event."""
    early.clear()
    with suppress(TimeoutError):
        await asyncio.wait_for(early.wait(), seconds)


class RateLimiter:
    """The way to one host, which lets requests through as fast as its limits bear."""

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
    async def entered(
        self, tokens: float, stopped: Callable[[], bool] = lambda: False
    ) -> AsyncIterator[bool]:
        """Wait for leave to send one request, first come first served, and hold its place.

        Yields whether it was given. Once `stopped` says so nothing is waited for any more and
        nothing is counted.
        """
        if self._places is None:
            yield await self._leave(tokens, stopped)
            return
        async with self._places:
            yield await self._leave(tokens, stopped)

    def pause(self, seconds: float) -> None:
        """Let nothing through for a while: the host asked for it."""
        self._open_at = max(self._open_at, self._clock() + seconds)

    def pause_left(self) -> float:
        """Return the seconds until requests may go out again."""
        return max(0.0, self._open_at - self._clock())

    def used(self, estimated: float, really: int | None) -> None:
        """Put the tokens a request really took in the place of its estimate, where they are told."""
        if really is not None:
            if self._tokens is not None:
                self._tokens.give_back(estimated - really)
            self._returned.set()

    def unused(self, tokens: float) -> None:
        """Put back the whole of a request that was let through and never sent."""
        for bucket, amount in self._shares(tokens):
            bucket.give_back(amount)
        self._returned.set()

    def _shares(self, tokens: float) -> list[tuple[Allowance, float]]:
        """Return what one request takes of each allowance that there is."""
        allowances = (self._requests, 1.0), (self._tokens, tokens)
        return [(bucket, amount) for bucket, amount in allowances if bucket is not None]

    async def _leave(self, tokens: float, stopped: Callable[[], bool]) -> bool:
        """Wait until both allowances bear one more request, and take it from them."""
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
    """Return the gate of each juror by name; jurors at one host and port have the same one."""
    shared = {juror.address: RateLimiter(_strictest(panel, juror.address)) for juror in panel.juror}
    return {juror.name: shared[juror.address] for juror in panel.juror}


def estimated_tokens(juror: Juror, call: Call) -> float:
    """Return the tokens a request may take: a token each 3.5 characters, and the longest answer."""
    characters = sum(len(turn.text) for turn in call.messages)
    return characters / CHARACTERS_PER_TOKEN + juror.max_tokens


def tokens_used(usage: Usage) -> int | None:
    """Return the tokens a request took, None where the endpoint did not say."""
    if usage.tokens_in is None or usage.tokens_out is None:
        return None
    return usage.tokens_in + usage.tokens_out


def record_rate_limits(provider: Provider) -> dict[str, str]:
    """Return what fills with the rate limits that an endpoint tells in its headers.

    An `Answer` carries no headers, so the client under the SDK is listened to, if there is one.
    """
    import httpx2  # needed only for probing

    limits: dict[str, str] = {}

    async def note(response: httpx2.Response) -> None:
        for name, value in response.headers.items():
            if name.lower().startswith(LIMIT_HEADERS):
                limits[name.lower()] = value[:LONGEST_HEADER]

    http = getattr(getattr(provider, "client", None), "_client", None)
    if isinstance(http, httpx2.AsyncClient):
        hooks = http.event_hooks
        http.event_hooks = hooks | {"response": [*hooks["response"], note]}
    return limits


def _bucket(per_minute: int | None, clock: Clock) -> Allowance | None:
    return None if per_minute is None else Allowance(per_minute, clock)


def _strictest(panel: Panel, address: str) -> HostLimits:
    """Return the lowest of each limit that any juror at an address names."""
    jurors = [juror for juror in panel.juror if juror.address == address]
    names = ("concurrency", "requests_per_minute", "tokens_per_minute")
    values_of = {name: [getattr(juror, name) for juror in jurors] for name in names}
    return HostLimits(
        **{
            name: min((value for value in values if value is not None), default=None)
            for name, values in values_of.items()
        }
    )
