"""Talking with one juror about one thing: tried again, asked again, and each request stored."""

import asyncio
import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from data.schema import Status, now
from jury.call import Answer, Call, Message
from jury.cost import Budget, Price, billed, worst_case
from jury.lane import Lane, Patience, fatal
from jury.panel import Juror
from jury.parse import storable


@dataclass(frozen=True, slots=True)
class Desk:
    """What all jurors of a run share: the money, the places, the stop sign and the count."""

    budget: Budget
    places: asyncio.Semaphore
    stopping: asyncio.Event
    patience: Patience
    called: Callable[[float | None], None]


class Reading(Protocol):
    """What an answer was read as."""

    @property
    def status(self) -> Status:
        """Return whether it says anything."""

    @property
    def reason(self) -> str:
        """Return why it does not."""

    @property
    def remark(self) -> str:
        """Return what a study keeps of it in words."""


R = TypeVar("R", bound=Reading)


class Talk(ABC, Generic[R]):
    """A conversation about one thing, and how far its patience has been used."""

    def __init__(
        self, lane: Lane, prompt: str, schema: Mapping[str, Any], replicate: int = 0
    ) -> None:
        self.lane, self.schema, self.replicate = lane, schema, replicate
        self.messages: tuple[Message, ...] = (Message("user", prompt),)
        self.form = lane.ladder.form
        self.number = self.tries = self.failures_here = 0
        self.asked_again = False
        self.status: Status | None = None

    @abstractmethod
    def read(self, answer: Answer) -> R:
        """Return what an answer says, or why it says nothing."""

    @abstractmethod
    def again(self, reason: str) -> str:
        """Return what is said to a juror whose answer cannot be used."""

    @abstractmethod
    def sha256_of(self, call: Call) -> str:
        """Return the hash of all that makes a request that request."""

    @abstractmethod
    async def store(self, columns: dict[str, Any], reading: R) -> None:
        """Store one request by the columns of its `CallRecord`."""

    @abstractmethod
    async def not_asked(self, status: Status, reason: str) -> Status:
        """Store why a request was not made at all, and return the status."""

    def call(self) -> Call:
        """Return the next request."""
        return Call(self.messages, self.schema, self.form, self.replicate)

    async def hold(self, desk: Desk) -> Status | None:
        """Return how it ended; None if the run was stopped before the first request."""
        lane = self.lane
        wait: float | None = 0.0
        while wait is not None:
            await lane.rest(max(wait, lane.pause_left()), desk.stopping)
            if desk.stopping.is_set():
                return self.status
            if lane.stopped:
                return self.status or await self.not_asked(*lane.stopped)
            wait = await self._request(desk)
        return self.status

    async def _request(self, desk: Desk) -> float | None:
        """Make one request, store it, and return the seconds until the next; None if it was the last."""
        lane, call = self.lane, self.call()
        worst = _worst(lane, call) if desk.budget.capped else None
        async with lane.entered(call, desk.stopping), desk.places:
            if desk.stopping.is_set() or lane.stopped:
                return 0.0
            if not await desk.budget.reserve(worst):
                return await self._capped()
            began = time.perf_counter()
            answer = await lane.provider.complete(call)
            seconds = time.perf_counter() - began
            lane.used(call, answer.usage)
            lane.heard(answer, desk.patience.in_a_row)
            cost = billed(lane.juror, answer, now())
            await desk.budget.settle(worst, cost.usd)
            desk.called(cost.usd)
            reading = self.read(answer)
            self.number, self.status = self.number + 1, reading.status
            # The place is given up only once the call is stored: a kill loses no more than are open.
            await self.store(self._columns(call, answer, cost, seconds, reading), reading)
        return self._next(desk.patience, answer, reading)

    def _columns(
        self, call: Call, answer: Answer, cost: Price, seconds: float, reading: R
    ) -> dict[str, Any]:
        """Return the columns of one request that was made."""
        return answered(answer, cost, seconds) | {
            "rater": self.lane.rater,
            "status": reading.status,
            "request_sha256": self.sha256_of(call),
            "number": self.number,
            "reason": reading.remark,
            "sent": {**answer.sent, "turns": len(call.messages)},
        }

    async def _capped(self) -> float | None:
        """End a talk that a cap has no room for; a failure before it stays the reason."""
        self.lane.out_of_money()
        if self.lane.stopped:
            return 0.0
        if self.status is None:
            reason = "the next request could pass the cap"
            self.status = await self.not_asked(Status.BUDGET_STOPPED, reason)
        return None

    def _next(self, patience: Patience, answer: Answer, reading: R) -> float | None:
        """Return the seconds until the next request, None when it is over."""
        lane = self.lane
        if answer.http == 200 and not answer.transient:
            lane.answered()
            lane.ladder.works(self.form)
            if answer.status != Status.OK or reading.status == Status.OK or self.asked_again:
                return None
            self._ask_again(answer.text, reading.reason)
            return 0.0
        if why := fatal(answer):
            lane.stop(answer.status, why)
            return None
        self.tries += 1
        self.failures_here += 1
        if lower := lane.ladder.below(self.form, answer, self.failures_here):
            self.form, self.failures_here = lower, 0
            return 0.0
        return self._wait(patience, answer)

    def _wait(self, patience: Patience, answer: Answer) -> float | None:
        """Return the seconds to wait before a failed request is made again, None to give up."""
        lane, seconds = self.lane, patience.wait(self.tries, answer.retry_after)
        if answer.transient and seconds > patience.bound:
            asks = f"{answer.reason}: asks to wait {seconds:.0f} s; run again later"
            lane.stop(answer.status, asks)
            return None
        if not answer.transient or self.tries >= patience.tries:
            if answer.status != Status.CONTENT_FILTER:
                lane.failed(answer, patience.in_a_row)
            return None
        if answer.status == Status.RATE_LIMITED:
            lane.pause(seconds)
        return seconds

    def _ask_again(self, text: str, reason: str) -> None:
        """Quote the juror's answer back with what is wrong with it."""
        said = Message("assistant", storable(text).strip() or "(no answer)")
        self.messages = (*self.messages, said, Message("user", self.again(reason)))
        self.asked_again = True


def answered(answer: Answer, cost: Price, seconds: float = 0.0) -> dict[str, Any]:
    """Return the columns of a `CallRecord` that an answer and its cost fill."""
    usage = answer.usage
    return {
        "raw": storable(answer.text),
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "tokens_cached": usage.tokens_cached,
        "tokens_reasoning": usage.tokens_reasoning,
        "usd": cost.usd,
        "price_source": cost.source,
        "latency_seconds": seconds,
        "request_id": answer.request_id,
        "returned_model": answer.returned_model,
    }


def not_asked(rater: int, status: Status, reason: str, request_sha256: str) -> dict[str, Any]:
    """Return the columns of a call that was not made at all: number 0 and no cost."""
    return {
        "rater": rater,
        "status": status,
        "request_sha256": request_sha256,
        "number": 0,
        "reason": f"not asked: {reason}",
        "usd": 0.0,
        "price_source": "not asked",
    }


def sha256_of(juror: Juror, call: Call, *more: object) -> str:
    """Return the hash of all that makes a request that request."""
    turns = [[turn.role, turn.text] for turn in call.messages]
    profile = juror.profile() | {"max_tokens": juror.max_tokens}
    body = [profile, call.form, *more, call.schema, turns]
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _worst(lane: Lane, call: Call) -> float | None:
    """Return what a request can cost at most."""
    texts = [turn.text for turn in call.messages]
    return worst_case(lane.juror, "".join([*texts, json.dumps(call.schema)]), now())
