"""Talking with one juror about one thing: tried again, asked again, and each request stored."""

import asyncio
import hashlib
import json
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from sqlalchemy import Engine

from data.schema import Status, now
from data.store.intents import Intended, Step, record_steps
from jury.asking import with_retry
from jury.call import Answer, Call, Turn
from jury.cost import Price, Pricing, above_worst, billed, may_write, price, worst_case, written
from jury.panel import Juror
from jury.parse import AnswerReading, storable
from jury.session import JurorSession, Patience, RunContext, fatal


class Writer:
    """Stores steps of calls beside the event loop, and returns to each giver when theirs is stored.

    While one transaction is under way, the steps that arrive wait together for the next, so
    a busy run pays for few transactions and a killed one loses only the calls still in flight.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._run = secrets.token_hex(8)
        self._number = 0
        self._waiting: list[tuple[Step, asyncio.Future[None]]] = []
        self._busy: asyncio.Task[None] | None = None

    def key(self) -> str:
        """Return a key that no other call has."""
        self._number += 1
        return f"{self._run}-{self._number}"

    async def write(self, step: Step) -> None:
        """Store one step."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((step, stored))
        if self._busy is None:
            self._busy = asyncio.create_task(self._drain())
        await stored

    async def _drain(self) -> None:
        """Store whatever waits until nothing waits any more."""
        while self._waiting:
            batch, self._waiting = self._waiting, []
            failure: BaseException | None = None
            try:
                await asyncio.to_thread(record_steps, self._engine, [step for step, _ in batch])
            except BaseException as error:
                failure = error
            for _, stored in batch:
                _resolve(stored, failure)
        self._busy = None


def _resolve(stored: asyncio.Future[None], failure: BaseException | None) -> None:
    """Tell one giver how it ended, unless they have gone."""
    if stored.done():
        return
    if failure is None:
        stored.set_result(None)
    else:
        stored.set_exception(failure)


R = TypeVar("R", bound=AnswerReading)


class Conversation(ABC, Generic[R]):
    """A conversation about one thing, and how far its patience has been used."""

    def __init__(
        self,
        writer: Writer,
        session: JurorSession,
        question: Turn,
        schema: Mapping[str, Any],
        replicate: int = 0,
    ) -> None:
        self.writer, self.session = writer, session
        self.schema, self.replicate = schema, replicate
        self.messages: tuple[Turn, ...] = (question,)
        self.form = session.fallback.form
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

    @property
    @abstractmethod
    def about(self) -> Mapping[str, int]:
        """What the conversation is about, as an intent names it."""

    @abstractmethod
    def came(self, columns: dict[str, Any], reading: R) -> Step:
        """Return what came of one request, by the columns of its `CallRecord`."""

    @abstractmethod
    async def not_asked(self, status: Status, reason: str) -> Status:
        """Store why a request was not made at all, and return the status."""

    def call(self) -> Call:
        """Return the next request."""
        return Call(self.messages, self.schema, self.form, self.replicate)

    async def hold(self, context: RunContext) -> Status | None:
        """Return how it ended; None if the run was stopped before the first request."""
        session = self.session
        wait: float | None = 0.0
        while wait is not None:
            await session.rest(max(wait, session.pause_left()), context.stopping)
            if context.stopping.is_set():
                return self.status
            if session.stopped:
                return self.status or await self.not_asked(*session.stopped)
            wait = await self._request(context)
        return self.status

    async def _request(self, context: RunContext) -> float | None:
        """Make one request, store it, and return the seconds until the next; None if it was the last.

        What it can cost is stored before it has a place, so that no place waits for the disk; and
        whether it may go is looked at when it has its place, as it may have waited long for it.
        """
        session, call = self.session, self.call()
        worst = worst_case_usd(session.juror, call)
        answer: Answer | None = None
        async with session.entered(call, context.stopping), context.ready:
            if self._over(context):
                return 0.0
            if not await context.budget.reserve(worst):
                return await self._capped()
            intent = await self._intend(worst)
            async with context.places:
                if not self._over(context) and not session.pause_left():
                    answer, reading = await self._send(context, call, worst, intent)
            if answer is None:
                await context.budget.settle(worst, 0.0)
                await self._settle(Step(settles=intent))
                return 0.0
        return self._next(context.patience, answer, reading)

    def _over(self, context: RunContext) -> bool:
        """Return whether nothing more is to be sent."""
        return context.stopping.is_set() or self.session.stopped is not None

    async def _intend(self, worst: float | None) -> str:
        """Store what a request can cost at most before it is sent, and return the key."""
        if self.session.juror.simulated:  # nothing is sent and nothing can be billed
            return ""
        intent = Intended(
            key=self.writer.key(),
            rater=self.session.rater,
            response=self.about.get("response"),
            instance=self.about.get("instance"),
            replicate=self.replicate,
            usd_most=worst,
        )
        await self.writer.write(Step(intent=intent))
        return intent.key

    async def _settle(self, step: Step) -> None:
        """Store what came of a request, if there is anything to store."""
        if step.settles or step.attempt or step.check:
            await self.writer.write(step)

    async def _send(
        self, context: RunContext, call: Call, worst: float | None, intent: str
    ) -> tuple[Answer, R]:
        """Send a request and store what came of it; the place is kept until it is stored.

        So a kill loses no more answers than there are places.
        """
        session = self.session
        began = time.perf_counter()
        answer = await session.provider.complete(call)
        seconds = time.perf_counter() - began
        session.used(call, answer.usage)
        session.heard(answer, context.patience.in_a_row)
        cost = billed(session.juror, answer, now())
        reading = self.read(answer)
        if why := above_worst(session.juror, answer.usage, cost.usd, worst):
            session.stop(Status.OFF_CONTRACT, why)
            reading = replace(reading, status=Status.OFF_CONTRACT, reason=why)
        session.told_probabilities(answer, reading.status, reading.reason)
        self._pause(context.patience, answer)
        await context.budget.settle(worst, cost.usd)
        context.called(cost, answer.usage)
        self.number, self.status = self.number + 1, reading.status
        step = self.came(self._columns(call, answer, cost, seconds, reading), reading)
        unknown = cost.usd is None and worst is not None
        await self.writer.write(replace(step, settles=intent, unknown=unknown))
        return answer, reading

    def _pause(self, patience: Patience, answer: Answer) -> None:
        """Send a host nothing for as long as it asks for, from the moment that it does."""
        limited = answer.status == Status.RATE_LIMITED or answer.retry_after is not None
        seconds = patience.wait(self.tries + 1, answer.retry_after)
        if answer.transient and limited and seconds <= patience.bound:
            self.session.pause(seconds)

    def _columns(
        self, call: Call, answer: Answer, cost: Price, seconds: float, reading: R
    ) -> dict[str, Any]:
        """Return the columns of one request that was made."""
        return answer_columns(answer, cost, seconds) | {
            "rater": self.session.rater,
            "status": reading.status,
            "request_sha256": self.sha256_of(call),
            "number": self.number,
            "reason": reading.remark,
            "sent": {**answer.sent, "turns": len(call.messages)},
        }

    async def _capped(self) -> float | None:
        """End a talk that a cap has no room for; a failure before it stays the reason."""
        self.session.out_of_money()
        if self.session.stopped:
            return 0.0
        if self.status is None:
            reason = "the next request could pass the cap"
            self.status = await self.not_asked(Status.BUDGET_STOPPED, reason)
        return None

    def _next(self, patience: Patience, answer: Answer, reading: R) -> float | None:
        """Return the seconds until the next request, None when it is over."""
        session = self.session
        if answer.http == 200 and not answer.transient:
            session.answered()
            session.fallback.works(self.form)
            ended = reading.status in (Status.OK, Status.NO_PROBABILITIES)
            if answer.status != Status.OK or ended or self.asked_again:
                return None
            self._ask_again(answer.text, reading.reason)
            return 0.0
        if why := fatal(answer):
            session.stop(answer.status, why)
            return None
        self.tries += 1
        self.failures_here += 1
        if lower := session.fallback.below(self.form, answer, self.failures_here):
            self.form, self.failures_here = lower, 0
            return 0.0
        return self._wait(patience, answer)

    def _wait(self, patience: Patience, answer: Answer) -> float | None:
        """Return the seconds to wait before a failed request is made again, None to give up."""
        session, seconds = self.session, patience.wait(self.tries, answer.retry_after)
        if answer.transient and seconds > patience.bound:
            asks = f"{answer.reason}: asks to wait {seconds:.0f} s; run again later"
            session.stop(answer.status, asks)
            return None
        if not answer.transient or self.tries >= patience.tries:
            if answer.status != Status.CONTENT_FILTER:
                session.failed(answer, patience.in_a_row)
            return None
        return seconds

    def _ask_again(self, text: str, reason: str) -> None:
        """Quote the juror's answer back with what is wrong with it."""
        self.messages = with_retry(self.messages, text, self.again(reason))
        self.asked_again = True


def answer_columns(answer: Answer, cost: Price, seconds: float = 0.0) -> dict[str, Any]:
    """Return the columns of a `CallRecord` that an answer and its cost fill."""
    usage = answer.usage
    return {
        "raw": storable(answer.text),
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "tokens_cached": usage.tokens_cached,
        "tokens_cache_write": usage.tokens_cache_write,
        "tokens_reasoning": usage.tokens_reasoning,
        "usd": cost.usd,
        "usd_cached": cost.usd_cached,
        "usd_cache_write": cost.usd_cache_write,
        "usd_out": cost.usd_out,
        "price_source": cost.source,
        "latency_seconds": seconds,
        "request_id": answer.request_id,
        "returned_model": answer.returned_model,
    }


def not_asked_columns(
    rater: int, status: Status, reason: str, request_sha256: str
) -> dict[str, Any]:
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


def hash_request(juror: Juror, call: Call, *more: object) -> str:
    """Return the hash of all that makes a request that request."""
    turns = [[turn.role, turn.text] for turn in call.messages]
    profile = juror.profile() | {"max_tokens": juror.max_tokens}
    body = [profile, call.form, *more, call.schema, turns]
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def worst_case_usd(juror: Juror, call: Call, priced: Pricing = price) -> float | None:
    """Return what a request can cost at most: with all of it written to a cache, where it may be."""
    texts = [turn.text for turn in call.messages]
    sent, at = "".join([*texts, json.dumps(call.schema)]), now()
    dearer = may_write(juror, bool(call.prefix), at)
    ways = (priced, written(priced)) if dearer else (priced,)
    amounts = [worst_case(juror, sent, at, way) for way in ways]
    known = [amount for amount in amounts if amount is not None]
    return max(known) if len(known) == len(amounts) else None
