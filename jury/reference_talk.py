"""Putting one reference to one juror: tried again, asked again, and each request stored."""

import asyncio
import hashlib
import json
import time
from dataclasses import dataclass

from sqlalchemy import Engine

from data.queries.references import ReferenceCard
from data.schema import Status, now
from data.store.references import ReferenceRecord, record_references
from jury.call import Answer, Call, Form, Message
from jury.cost import Budget, Price, billed, worst_case
from jury.lane import Lane, Patience, fatal
from jury.parse import storable
from jury.reference_question import AGAIN, SCHEMA, Said, prompt_for, read
from jury.tally import Tally


@dataclass(frozen=True, slots=True)
class Desk:
    """What all jurors of a check share."""

    engine: Engine
    budget: Budget
    places: asyncio.Semaphore
    stopping: asyncio.Event
    patience: Patience
    tally: Tally


class _Talk:
    """A conversation about one reference, and how far its patience has been used."""

    def __init__(self, lane: Lane, card: ReferenceCard) -> None:
        self.lane, self.card = lane, card
        self.messages: tuple[Message, ...] = (Message("user", prompt_for(card)),)
        self.form: Form = lane.ladder.form
        self.number = self.tries = self.failures_here = 0
        self.asked_again = False
        self.status: Status | None = None

    def call(self) -> Call:
        """Return the next request."""
        return Call(self.messages, SCHEMA, self.form)

    def ask_again(self, text: str, reason: str) -> None:
        """Quote the juror's answer back with what is wrong with it."""
        said = Message("assistant", storable(text).strip() or "(no answer)")
        again = Message("user", AGAIN.replace("{reason}", reason))
        self.messages = (*self.messages, said, again)
        self.asked_again = True


async def ask(desk: Desk, lane: Lane, card: ReferenceCard) -> Status | None:
    """Return how one question ended; None if the run was stopped before it was put."""
    talk = _Talk(lane, card)
    wait: float | None = 0.0
    while wait is not None:
        await lane.rest(max(wait, lane.pause_left()), desk.stopping)
        if desk.stopping.is_set():
            return talk.status
        if lane.stopped:
            return talk.status or await _not_asked(desk, talk, *lane.stopped)
        wait = await _request(desk, talk)
    return talk.status


async def _request(desk: Desk, talk: _Talk) -> float | None:
    """Make one request, store it, and return the seconds until the next; None if it was the last."""
    lane, call = talk.lane, talk.call()
    worst = _worst(lane, call) if desk.budget.capped else None
    async with lane.entered(call, desk.stopping), desk.places:
        if desk.stopping.is_set() or lane.stopped:
            return 0.0
        if not await desk.budget.reserve(worst):
            return await _capped(desk, talk)
        began = time.perf_counter()
        answer = await lane.provider.complete(call)
        seconds = time.perf_counter() - began
        lane.used(call, answer.usage)
        lane.heard(answer, desk.patience.in_a_row)
        cost = billed(lane.juror, answer, now())
        await desk.budget.settle(worst, cost.usd)
        desk.tally.called(cost.usd)
        said = (
            read(answer.text) if answer.status == Status.OK else Said(answer.status, answer.reason)
        )
        talk.number, talk.status = talk.number + 1, said.status
        # The place is given up only once the call is stored: a kill loses no more than are open.
        await _store(desk, _record(talk, call, answer, said, cost, seconds))
    return _next(desk.patience, talk, answer, said)


async def _capped(desk: Desk, talk: _Talk) -> float | None:
    """End a talk that a cap has no room for; a failure before it stays the reason."""
    talk.lane.out_of_money()
    if talk.lane.stopped:
        return 0.0
    if talk.status is None:
        reason = "the next request could pass the cap"
        talk.status = await _not_asked(desk, talk, Status.BUDGET_STOPPED, reason)
    return None


def _next(patience: Patience, talk: _Talk, answer: Answer, said: Said) -> float | None:
    """Return the seconds until the next request of a talk, None when it is over."""
    lane = talk.lane
    if answer.http == 200 and not answer.transient:
        lane.answered()
        lane.ladder.works(talk.form)
        if answer.status != Status.OK or said.status == Status.OK or talk.asked_again:
            return None
        talk.ask_again(answer.text, said.reason)
        return 0.0
    if why := fatal(answer):
        lane.stop(answer.status, why)
        return None
    talk.tries += 1
    talk.failures_here += 1
    if lower := lane.ladder.below(talk.form, answer, talk.failures_here):
        talk.form, talk.failures_here = lower, 0
        return 0.0
    return _wait(patience, talk, answer)


def _wait(patience: Patience, talk: _Talk, answer: Answer) -> float | None:
    """Return the seconds to wait before a failed request is made again, None to give up."""
    lane, seconds = talk.lane, patience.wait(talk.tries, answer.retry_after)
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


async def _not_asked(desk: Desk, talk: _Talk, status: Status, reason: str) -> Status:
    """Store why a reference was not put to a juror at all: a row with number 0 and no cost."""
    record = ReferenceRecord(
        instance=talk.card.instance,
        rater=talk.lane.rater,
        status=status,
        request_sha256=_request_sha256(talk.lane, talk.call()),
        number=0,
        reason=f"not asked: {reason}",
        usd=0.0,
        price_source="not asked",
    )
    await _store(desk, record)
    return status


async def _store(desk: Desk, record: ReferenceRecord) -> None:
    """Store one call beside the event loop."""
    await asyncio.to_thread(record_references, desk.engine, [record])


def _worst(lane: Lane, call: Call) -> float | None:
    """Return what a request can cost at most."""
    texts = [turn.text for turn in call.messages]
    return worst_case(lane.juror, "".join([*texts, json.dumps(SCHEMA)]), now())


def _record(
    talk: _Talk, call: Call, answer: Answer, said: Said, cost: Price, seconds: float
) -> ReferenceRecord:
    """Return a call as the study keeps it."""
    return ReferenceRecord(
        instance=talk.card.instance,
        rater=talk.lane.rater,
        status=said.status,
        request_sha256=_request_sha256(talk.lane, call),
        absent=said.absent,
        facts=said.facts,
        reason=storable(said.reason),
        number=talk.number,
        sent={**answer.sent, "turns": len(call.messages)},
        raw=storable(answer.text),
        tokens_in=answer.usage.tokens_in,
        tokens_out=answer.usage.tokens_out,
        tokens_cached=answer.usage.tokens_cached,
        tokens_reasoning=answer.usage.tokens_reasoning,
        usd=cost.usd,
        price_source=cost.source,
        latency_seconds=seconds,
        request_id=answer.request_id,
        returned_model=answer.returned_model,
    )


def _request_sha256(lane: Lane, call: Call) -> str:
    """Return the hash of all that makes a request that request."""
    turns = [[turn.role, turn.text] for turn in call.messages]
    profile = lane.juror.profile() | {"max_tokens": lane.juror.max_tokens}
    body = [profile, call.form, SCHEMA, turns]
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
