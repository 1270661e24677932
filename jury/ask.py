"""Putting one response to one juror: tried again, asked again, and each request stored."""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from data.card import Card
from data.rubric import Rubric
from data.schema import Status, now
from data.store.attempts import AttemptRecord
from jury.call import Answer, Call, Form, Message
from jury.cost import Budget, billed, worst_case
from jury.lane import Lane, Patience, fatal
from jury.panel import Juror
from jury.parse import Parsed, parse, storable
from jury.writer import Writer

AGAIN = (
    "This answer cannot be used: {reason}. Rate the same response again. Answer with one JSON "
    "object only, in the form given above, every score a whole number on the scale {scale}."
)


@dataclass(frozen=True, slots=True)
class Job:
    """One response (primary key) to be rated once on a rubric."""

    response: int
    card: Card
    rubric: Rubric
    replicate: int = 0


@dataclass
class Desk:
    """What all jurors of a run share: the money, the pen, the places and the stop sign."""

    budget: Budget
    writer: Writer
    places: asyncio.Semaphore
    stopping: asyncio.Event
    patience: Patience
    called: Callable[[float | None], None]


@dataclass
class _Talk:
    """A conversation about one job, and how far its patience has been used."""

    job: Job
    messages: tuple[Message, ...]
    form: Form
    number: int = 0
    tries: int = 0
    failures_here: int = 0
    asked_again: bool = False
    status: Status | None = None
    schema: dict[str, Any] = field(default_factory=dict)

    def call(self) -> Call:
        """Return the next request."""
        return Call(self.messages, self.schema, self.form, self.job.replicate)

    def ask_again(self, text: str, reason: str) -> None:
        """Quote the juror's answer back with what is wrong with it."""
        again = AGAIN.format(reason=reason, scale=self.job.rubric.scale)
        said = Message("assistant", storable(text).strip() or "(no answer)")
        self.messages = (*self.messages, said, Message("user", again))
        self.asked_again = True


async def ask(desk: Desk, lane: Lane, job: Job) -> Status | None:
    """Return how one verdict ended; None if the run was stopped before it was asked for."""
    if not job.card.response.strip():
        return await _not_asked(desk, lane, job, Status.EMPTY_RESPONSE, "the response has no text")
    prompt = Message("user", job.rubric.render(job.card))
    talk = _Talk(job, (prompt,), lane.ladder.form, schema=job.rubric.json_schema())
    wait: float | None = 0.0
    while wait is not None:
        await lane.rest(max(wait, lane.pause_left()), desk.stopping)
        if desk.stopping.is_set():
            return talk.status
        if lane.stopped:
            return talk.status or await _not_asked(desk, lane, job, *lane.stopped)
        wait = await _request(desk, lane, talk)
    return talk.status


async def _request(desk: Desk, lane: Lane, talk: _Talk) -> float | None:
    """Make one request, store it, and return the seconds until the next; None if it was the last."""
    call = talk.call()
    worst = _worst(lane, call) if desk.budget.capped else None
    async with lane.entered(call, desk.stopping), desk.places:
        if desk.stopping.is_set() or lane.stopped:
            return 0.0
        if not await desk.budget.reserve(worst):
            return await _capped(desk, lane, talk)
        began = time.perf_counter()
        answer = await lane.provider.complete(call)
        seconds = time.perf_counter() - began
        lane.used(call, answer.usage)
        lane.heard(answer, desk.patience.in_a_row)
        cost = billed(lane.juror, answer, now())
        await desk.budget.settle(worst, cost.usd)
        desk.called(cost.usd)
        parsed = _parsed(answer, talk.job.rubric)
        talk.number, talk.status = talk.number + 1, parsed.status
        record = _record(lane, talk, call, answer, parsed)
        priced = replace(record, usd=cost.usd, price_source=cost.source, latency_seconds=seconds)
        # The place is given up only once the call is stored: a kill loses no more than are open.
        await desk.writer.write((priced, talk.job.rubric, parsed.reply))
    return _next(desk.patience, lane, talk, answer, parsed)


async def _capped(desk: Desk, lane: Lane, talk: _Talk) -> float | None:
    """End a talk that a cap has no room for; a failure before it stays the reason."""
    lane.out_of_money()
    if lane.stopped:
        return 0.0
    if talk.status is None:
        reason = "the next request could pass the cap"
        talk.status = await _not_asked(desk, lane, talk.job, Status.BUDGET_STOPPED, reason)
    return None


def _next(
    patience: Patience, lane: Lane, talk: _Talk, answer: Answer, parsed: Parsed
) -> float | None:
    """Return the seconds until the next request of a talk, None when it is over."""
    if answer.http == 200 and not answer.transient:
        lane.answered()
        lane.ladder.works(talk.form)
        if answer.status != Status.OK or parsed.status == Status.OK or talk.asked_again:
            return None
        talk.ask_again(answer.text, parsed.reason)
        return 0.0
    if why := fatal(answer):
        lane.stop(answer.status, why)
        return None
    talk.tries += 1
    talk.failures_here += 1
    if lower := lane.ladder.below(talk.form, answer, talk.failures_here):
        talk.form, talk.failures_here = lower, 0
        return 0.0
    return _wait(patience, lane, talk, answer)


def _wait(patience: Patience, lane: Lane, talk: _Talk, answer: Answer) -> float | None:
    """Return the seconds to wait before a failed request is made again, None to give up."""
    seconds = patience.wait(talk.tries, answer.retry_after)
    if answer.transient and seconds > patience.bound:
        lane.stop(answer.status, f"{answer.reason}: asks to wait {seconds:.0f} s; run again later")
        return None
    if not answer.transient or talk.tries >= patience.tries:
        if answer.status != Status.CONTENT_FILTER:
            lane.failed(answer, patience.in_a_row)
        return None
    if answer.status == Status.RATE_LIMITED:
        lane.pause(seconds)
    return seconds


async def _not_asked(desk: Desk, lane: Lane, job: Job, status: Status, reason: str) -> Status:
    """Store why a response was not put to a juror at all: a row with number 0 and no cost."""
    asked = hashlib.sha256(job.card.response.encode("utf-8", "replace")).hexdigest()
    record = AttemptRecord(
        rater=lane.rater,
        response=job.response,
        status=status,
        request_sha256=asked,
        replicate=job.replicate,
        number=0,
        reason=f"not asked: {reason}",
        usd=0.0,
        price_source="not asked",
    )
    await desk.writer.write((record, job.rubric, None))
    return status


def _parsed(answer: Answer, rubric: Rubric) -> Parsed:
    """Return what an answer says, or why it says nothing."""
    if answer.status != Status.OK:
        return Parsed(answer.status, answer.reason)
    return parse(answer.text, rubric)


def _worst(lane: Lane, call: Call) -> float | None:
    """Return what a request can cost at most."""
    texts = [turn.text for turn in call.messages]
    return worst_case(lane.juror, "".join([*texts, json.dumps(call.schema)]), now())


def _record(lane: Lane, talk: _Talk, call: Call, answer: Answer, parsed: Parsed) -> AttemptRecord:
    """Return an attempt as the study keeps it; the price is put in by the caller."""
    ignored = f"ignored: {', '.join(parsed.extra)}" if parsed.extra else ""
    return AttemptRecord(
        rater=lane.rater,
        response=talk.job.response,
        status=parsed.status,
        request_sha256=request_sha256(lane.juror, call),
        replicate=talk.job.replicate,
        number=talk.number,
        sent={**answer.sent, "turns": len(call.messages), **_broken(talk.job)},
        raw=storable(answer.text),
        reason=storable(parsed.reason or ignored),
        tokens_in=answer.usage.tokens_in,
        tokens_out=answer.usage.tokens_out,
        tokens_cached=answer.usage.tokens_cached,
        tokens_reasoning=answer.usage.tokens_reasoning,
        request_id=answer.request_id,
        returned_model=answer.returned_model,
    )


def _broken(job: Job) -> dict[str, list[str]]:
    """Return which of the texts posed as parts of the prompt, for the record."""
    forged = job.rubric.forged(job.card)
    return {"tags_broken_in": list(forged)} if forged else {}


def request_sha256(juror: Juror, call: Call) -> str:
    """Return the hash of all that makes a request that request."""
    turns = [[turn.role, turn.text] for turn in call.messages]
    profile = juror.profile() | {"max_tokens": juror.max_tokens}
    body = [profile, call.form, call.replicate, call.schema, turns]
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
