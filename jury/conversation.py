"""Talking with one juror about one thing: tried again, asked again, and each request stored.

What a juror says of a text counts for every response that has this text. Only a verdict that stands
is shared, within one juror, rubric and replicate, from this run or an earlier one. A prompt whose
call fails is asked again with the next response that has it.
"""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from typing import Any
from weakref import WeakValueDictionary

from sqlalchemy import Engine

from data.card import Reply
from data.question import SLOT, every_score
from data.rubric import Rubric
from data.schema import Intent, Purpose, Status, now
from data.study.calls import (
    Entry,
    Step,
    jurors_asked,
    record_steps,
    responses_with_equal_texts,
    verdict_of_same_prompt,
)
from jury.call import Answer, Call, Turn
from jury.cost import Price, Pricing, above_worst, billed, no_cost, price, worst_case
from jury.expected_score import read_for
from jury.panel import Juror
from jury.parse import ParsedAnswer
from jury.providers.registry import FORMS
from jury.reading import storable
from jury.session import JurorSession, RunContext, fatal
from jury.task import AGAIN, NO_TEXT, Patience, Task, with_retry
from jury.window import prompt_size, why_cut
from jury.worklist import Job

Key = tuple[int, int, str, int]
ASKED_ONCE = "same prompt as another response: asked once"


class Writer:
    """Stores the steps of calls in a thread; `write` returns once its step is stored.

    Steps that arrive during a transaction are stored together in the next one, so a busy run
    needs few transactions, and a killed one loses only the calls still in flight.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(1)
        self._run = secrets.token_hex(8)
        self._number = 0
        self._waiting: list[tuple[Step, asyncio.Future[None]]] = []
        self._busy: asyncio.Task[None] | None = None

    def key(self) -> str:
        """Return a new key for the intent of a call."""
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
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting, []
            failure: BaseException | None = None
            try:
                steps = [step for step, _ in batch]
                await loop.run_in_executor(self._thread, record_steps, self._engine, steps)
            except BaseException as error:
                failure = error
            for _, stored in batch:
                if stored.done():  # its task was cancelled
                    continue
                if failure is None:
                    stored.set_result(None)
                else:
                    stored.set_exception(failure)
        self._busy = None


class Unstored(Writer):
    """Keeps the attempts of one conversation in memory, where no study stores them."""

    def __init__(self) -> None:
        self.attempts: list[tuple[Mapping[str, Any], Reply | None]] = []

    def key(self) -> str:
        """Return no key: there is no intent to settle."""
        return ""

    async def write(self, step: Step) -> None:
        """Keep an attempt with its reply."""
        if step.attempt is not None and isinstance(step.attempt[0], Mapping):
            self.attempts.append((step.attempt[0], step.attempt[2]))


class Conversation:
    """One juror asked one thing, until there is an answer or none will come."""

    def __init__(self, writer: Writer, session: JurorSession, task: Task) -> None:
        self.writer, self.session, self.task = writer, session, task
        self.messages: tuple[Turn, ...] = (task.question,)
        self.schema = task.schema
        self.form = session.fallback.form
        self.number = self.tries = self.failures_here = 0
        self.asked_again = False
        self.status: Status | None = None

    def call(self) -> Call:
        """Return the next request."""
        expected = self.session.juror.expected and self.task.purpose == Purpose.VERDICT
        return Call(self.messages, self.schema, self.form, self.task.replicate, expected)

    async def not_asked(self, status: Status, reason: str) -> Status:
        """Store why nothing was asked, and return the status."""
        columns = not_asked_columns(self.session.juror, self.session.rater, self.call(), reason)
        await self._store(columns | {"status": status})
        return status

    async def run(self, context: RunContext) -> Status | None:
        """Ask until it has ended, and return how; None if the run was stopped before."""
        session = self.session
        wait: float | None = 0.0
        while wait is not None:
            await session.wait(max(wait, session.pause_left()), context.stopping)
            if context.stopping.is_set():
                return self.status
            if session.stopped:
                return self.status or await self.not_asked(*session.stopped)
            wait = await self._request(context)
        return self.status

    async def _request(self, context: RunContext) -> float | None:
        """Make one request, store it, and return the seconds until the next, None after the last.

        What it can cost is stored before it has a place, so that no place waits for the disk.
        Whether it may still be sent is checked once it has its place, as that can take long.
        """
        session, call = self.session, self.call()
        worst = worst_case_usd(session.juror, call)
        answer: Answer | None = None
        async with session.rate_limited(call, context.stopping), context.ready:
            if session.is_over(context.stopping):
                return 0.0
            if not await context.budget.reserve(worst):
                return await self._capped()
            intent = await self._store_intent(worst)
            async with context.places:
                if not session.is_over(context.stopping) and not session.pause_left():
                    answer, reading = await self._send(context, call, worst, intent)
            if answer is None:
                if intent:
                    await self.writer.write(Step(settles=intent))
                await context.budget.settle(worst, 0.0)
                return 0.0
        return self._next(context.patience, answer, reading)

    async def _store_intent(self, worst: float | None) -> str:
        """Store before a request is sent what it can cost at most; return the intent's key."""
        if self.session.juror.simulated:  # nothing is sent and nothing can be billed
            return ""
        key = self.writer.key()
        intent = Intent(
            key=key,
            rater=self.session.rater,
            response=self.task.subject.get("response"),
            instance=self.task.subject.get("instance"),
            replicate=self.task.replicate,
            usd_most=worst,
        )
        await self.writer.write(Step(intent=intent))
        return key

    async def _send(
        self, context: RunContext, call: Call, worst: float | None, intent: str
    ) -> tuple[Answer, ParsedAnswer]:
        """Send a request and store its answer, all within its place.

        A killed run so loses no more answers than there are places.
        """
        session = self.session
        began = time.perf_counter()
        answer = await session.provider.complete(call)
        seconds = time.perf_counter() - began
        session.note_sent(call, answer.usage)
        session.note_reply(answer, context.patience.in_a_row)
        cost = billed(session.juror, answer, now())
        reading = whole(context.most_read, call, answer, self.task.read(answer))
        if why := above_worst(session.juror, answer.usage, cost.usd, worst):
            session.stop(Status.OFF_CONTRACT, why)
            reading = replace(reading, status=Status.OFF_CONTRACT, reason=why)
        session.note_probabilities(answer, reading.status, reading.reason)
        self._pause(context.patience, answer)
        context.tally.called(cost, answer.usage)
        context.tally.answered(session.juror, answer, reading)
        self.number, self.status = self.number + 1, reading.status
        columns = answer_columns(answer, cost, seconds) | {
            "rater": session.rater,
            "status": reading.status,
            "request_sha256": request_sha256(session.juror, call),
            "number": self.number,
            "reason": storable(reading.reason),
            "answer": reading.answer,
            "sent": {**answer.sent, "turns": len(call.messages), **self.task.note},
        }
        await self._store(columns, reading, intent, cost.usd is None and worst is not None)
        await context.budget.settle(worst, cost.usd)  # once stored: a kill leaves no more than fits
        return answer, reading

    async def _store(
        self,
        columns: dict[str, Any],
        reading: ParsedAnswer | None = None,
        intent: str = "",
        unknown: bool = False,
    ) -> None:
        entry = (self.task.columns | columns, self.task.rubric, reading.reply if reading else None)
        made = (reading.rubric,) if reading and reading.rubric else ()
        await self.writer.write(Step(None, entry, made, intent, unknown))

    def _pause(self, patience: Patience, answer: Answer) -> None:
        limited = answer.status == Status.RATE_LIMITED or answer.retry_after is not None
        seconds = patience.wait(self.tries + 1, answer.retry_after)
        if answer.transient and limited and seconds <= patience.bound:
            self.session.pause(seconds)

    async def _capped(self) -> float | None:
        """End a conversation that the cap has no room for; an earlier failure stays the reason."""
        self.session.stop_if_silent()
        if self.session.stopped:
            return 0.0
        if self.status is None:
            reason = "the next request could pass the cap"
            self.status = await self.not_asked(Status.BUDGET_STOPPED, reason)
        return None

    def _next(self, patience: Patience, answer: Answer, reading: ParsedAnswer) -> float | None:
        """Return the seconds until the next request, None if there is none."""
        session = self.session
        if answer.http == 200 and not answer.transient:
            session.note_success()
            session.fallback.works(self.form)
            ended = reading.status in (Status.OK, Status.NO_PROBABILITIES, Status.CUT)
            if ended or self.asked_again:
                return None
            return 0.0 if self._ask_again(answer, reading.reason) else None
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
            if answer.status not in (Status.CONTENT_FILTER, Status.TOO_LONG):  # the text's fault
                session.note_failure(answer, patience.in_a_row)
            return None
        return seconds

    def _ask_again(self, answer: Answer, reason: str) -> bool:
        """Return whether an unusable answer is asked for once more: how, the next `call` has.

        The juror's answer is quoted back with why it cannot be used. One that was cut off while it
        explained is asked for without explanations; one that is cut off in its reasoning would be
        again.
        """
        if answer.status == Status.OK:
            again = self.task.again.replace("{reason}", reason)
            self.messages = with_retry(self.messages, answer.text, again)
        elif answer.status == Status.TRUNCATED and answer.text.strip() and self.task.shorter:
            question, self.schema = self.task.shorter()
            self.messages = (question,)
        else:
            return False
        self.asked_again = True
        return True


def whole(
    most_read: dict[int, int], call: Call, answer: Answer, reading: ParsedAnswer
) -> ParsedAnswer:
    """Return a reading, or that the host has read a part of the prompt only.

    `most_read`: hash of a prompt -> the most tokens of it that a host reported; it takes up this answer's.
    """
    if answer.status != Status.OK:
        return reading
    prompt = "\n".join(turn.text for turn in call.messages)
    key = hash(prompt)
    read, others = answer.usage.tokens_in, most_read.get(key, 0)
    most_read[key] = max(others, read or 0)
    why = why_cut(prompt, read, others)
    return ParsedAnswer(Status.CUT, why) if why else reading


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
        "latency_seconds": seconds,
        "request_id": storable(answer.request_id),
        "returned_model": storable(answer.returned_model),
    } | cost_columns(cost)


def cost_columns(cost: Price) -> dict[str, Any]:
    """Return the columns of a `CallRecord` that a cost fills."""
    names = ("usd", "usd_cached", "usd_cache_write", "usd_out")
    return {name: getattr(cost, name) for name in names} | {"price_source": cost.source}


def not_asked_columns(juror: Juror, rater: int, call: Call, reason: str) -> dict[str, Any]:
    """Return the columns of a call that was not made at all: number 0 and no cost."""
    return {
        "rater": rater,
        "request_sha256": request_sha256(juror, call),
        "number": 0,
        "reason": f"not asked: {reason}",
        "usd": 0.0,
        "price_source": "not asked",
    }


def request_sha256(juror: Juror, call: Call) -> str:
    """Return the SHA-256 of a request: juror's settings, form, replicate, schema and texts."""
    turns = [[turn.role, turn.text] for turn in call.messages]
    profile = juror.profile() | {"max_tokens": juror.max_tokens}
    body = [profile, call.form, call.replicate, call.schema, turns]
    return sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def worst_case_usd(juror: Juror, call: Call, priced: Pricing = price) -> float | None:
    """Return the most that a request can cost, cache writes included; None without a price."""
    sent = "".join([*(turn.text for turn in call.messages), json.dumps(call.schema)])
    return worst_case(juror, sent, now(), priced, marked=bool(call.prefix))


class SamePrompts:
    """Finds verdicts that count for more than one response, as their prompts are the same.

    Attributes
    ----------
    responses
        Primary keys of the responses whose text another one has too.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.responses = responses_with_equal_texts(engine)
        self._asked_before = jurors_asked(engine) if self.responses else frozenset()
        self._asked: set[Key] = set()
        self._turns: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, rater: int, job: Job, call: Call) -> AsyncIterator[bool]:
        """Hold the lock of a juror's prompt: who waited for it finds the verdict stored.

        Yields whether there may be one; to look for it costs as much as the call.
        """
        key = (rater, job.replicate, job.rubric.sha256, hash(call.messages[0].text))
        lock = self._turns.setdefault(key, asyncio.Lock())
        async with lock:
            yield key in self._asked or rater in self._asked_before
            self._asked.add(key)

    def stored(self, juror: Juror, rater: int, job: Job, call: Call) -> Entry | None:
        """Return the entry that stores a verdict on the same prompt for a job, None if there is none."""
        hashes = hashes_of(juror, call)
        found = verdict_of_same_prompt(self._engine, rater, job.rubric, job.replicate, hashes)
        if found is None:
            return None
        verdict, reply = found
        columns = {
            "rater": rater,
            "response": job.response,
            "replicate": job.replicate,
            "status": Status.OK,
            "sent": {"same_prompt_as": verdict.id},
            "raw": verdict.raw,
            "returned_model": verdict.returned_model,
            "answer": verdict.answer,
        }
        uncalled = {"request_sha256": verdict.request_sha256, "number": 0, "reason": ASKED_ONCE}
        return columns | uncalled | cost_columns(no_cost(ASKED_ONCE)), job.rubric, reply


def hashes_of(juror: Juror, call: Call) -> Sequence[str]:
    """Return the hashes that a request has in each form it may be sent in."""
    return [request_sha256(juror, replace(call, form=form)) for form in FORMS]


def verdict_task(juror: Juror, job: Job) -> Task:
    """Return the question for a verdict on one response."""
    forged = job.rubric.forged(job.card)
    is_shortest = juror.explanation == "none" or SLOT not in (job.read or job.rubric).prompt

    def shorter() -> tuple[Turn, Mapping[str, Any]]:
        return job.question("none"), job.rubric.json_schema("none")

    return Task(
        Purpose.VERDICT,
        {"response": job.response},
        job.question(juror.explanation),
        job.rubric.json_schema(juror.explanation),
        lambda answer: read_for(juror, answer, job.rubric),
        _again(job.rubric),
        job.rubric,
        job.replicate,
        None if is_shortest else shorter,
        {"tags_broken_in": list(forged)} if forged else {},
    )


def _again(rubric: Rubric) -> str:
    what = AGAIN.replace("the same response", "the same pair") if rubric.compares else AGAIN
    return what.replace("{scores}", every_score(rubric))


async def ask(
    writer: Writer, same: SamePrompts | None, context: RunContext, session: JurorSession, job: Job
) -> Status | None:
    """Ask a juror about a response and store each attempt; without `same` no verdict is taken over.

    Returns
    -------
    Status or None
        How the verdict ended; None if the run was stopped before it was asked for.
    """
    conversation = Conversation(writer, session, verdict_task(session.juror, job))
    if not job.has_text:
        return await conversation.not_asked(Status.EMPTY_RESPONSE, NO_TEXT)
    size = prompt_size(session.juror, conversation.task.question.text)
    if size.is_too_long:
        return await conversation.not_asked(Status.TOO_LONG, size.reason)
    if same is None or job.response not in same.responses:
        return await conversation.run(context)
    async with same.turn(session.rater, job, conversation.call()) as may_stand:
        call = conversation.call()
        entry = same.stored(session.juror, session.rater, job, call) if may_stand else None
        if entry is None:
            return await conversation.run(context)
        await writer.write(Step(attempt=entry))
    context.tally.shared()
    return Status.OK
