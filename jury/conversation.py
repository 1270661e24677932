"""Talking with one juror about one thing: tried again, asked again, and each request stored."""

import asyncio
import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from data.schema import Intent, Status, now
from data.store.intents import Step
from jury.call import Answer, Call, Form, Message, Provider, Usage
from jury.cost import Budget, Price, Pricing, above_worst, billed, price, worst_case
from jury.panel import Juror
from jury.parse import Reading, storable
from jury.providers import VENDORS
from jury.rates import Gate, Limits, estimated, taken
from jury.refused_parameter import refused_setting, value_sent
from jury.writer import Writer

REFUSED_FORM = (400, 415, 422, 501)
NO_SUCH_MODEL = "no such model or address"
REFUSES = "the model refuses"
R = TypeVar("R", bound=Reading)


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

    def __init__(self, juror: Juror) -> None:
        forms = VENDORS[juror.provider].forms
        self._forms = forms if juror.form == "auto" else (juror.form,)
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
        if not lower or answer.status != Status.REQUEST_FAILED:
            return None
        again = failures > 1 or self._proved
        at_fault = answer.http in REFUSED_FORM or (answer.http == 500 and again)
        return lower[0] if at_fault else None


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
        self, juror: Juror, rater: int, provider: Provider, gate: Gate | None = None
    ) -> None:
        self.juror = juror
        self._gate = gate or Gate(Limits())
        self._sent: set[int] = set()
        self.rater = rater
        self.provider = provider
        self.fallback = FormFallback(juror)
        self.stopped: tuple[Status, str] | None = None
        self._failed_in_a_row = 0
        self._heard = False
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
        ends = [asyncio.create_task(one.wait()) for one in (stopping, self._over_now)]
        try:
            await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in ends:
                one.cancel()

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
        tokens = estimated(self.juror, call)
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
        self._gate.used(estimated(self.juror, call), taken(usage))

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
    """

    budget: Budget
    ready: asyncio.Semaphore
    places: asyncio.Semaphore
    stopping: asyncio.Event
    patience: Patience
    called: Callable[[float | None], None]


class Conversation(ABC, Generic[R]):
    """A conversation about one thing, and how far its patience has been used."""

    def __init__(
        self,
        writer: Writer,
        session: JurorSession,
        prompt: str,
        schema: Mapping[str, Any],
        replicate: int = 0,
    ) -> None:
        self.writer, self.session = writer, session
        self.schema, self.replicate = schema, replicate
        self.messages: tuple[Message, ...] = (Message("user", prompt),)
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
        worst = worst_of(session.juror, call)
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
        intent = Intent(
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
        if reading.status == Status.NO_PROBABILITIES and not answer.tokens:
            session.stop(reading.status, reading.reason)
        self._pause(context.patience, answer)
        await context.budget.settle(worst, cost.usd)
        context.called(cost.usd)
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
        return answered(answer, cost, seconds) | {
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


def worst_of(juror: Juror, call: Call, priced: Pricing = price) -> float | None:
    """Return what a request can cost at most."""
    texts = [turn.text for turn in call.messages]
    return worst_case(juror, "".join([*texts, json.dumps(call.schema)]), now(), priced)
