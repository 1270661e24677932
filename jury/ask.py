"""Putting one response to one juror: the answer is parsed, and each request stored."""

import hashlib
import json
from dataclasses import dataclass

from data.card import Card
from data.rubric import Rubric
from data.schema import Status
from data.store.attempts import AttemptRecord
from jury.call import Answer, Call
from jury.lane import Lane
from jury.panel import Juror
from jury.parse import Parsed, parse, storable
from jury.talk import Desk, Heard, Talk
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


async def ask(desk: Desk, writer: Writer, lane: Lane, job: Job) -> Status | None:
    """Return how one verdict ended; None if the run was stopped before it was asked for."""
    if not job.card.response.strip():
        reason = "the response has no text"
        return await _not_asked(writer, lane, job, Status.EMPTY_RESPONSE, reason)
    return await _Verdict(writer, lane, job).hold(desk)


class _Verdict(Talk[Parsed]):
    """A talk about one response."""

    def __init__(self, writer: Writer, lane: Lane, job: Job) -> None:
        super().__init__(lane, job.rubric.render(job.card), job.rubric.json_schema(), job.replicate)
        self.writer, self.job = writer, job

    def read(self, answer: Answer) -> Parsed:
        """Return what an answer says, or why it says nothing."""
        if answer.status != Status.OK:
            return Parsed(answer.status, answer.reason)
        return parse(answer.text, self.job.rubric)

    def again(self, reason: str) -> str:
        """Return the question once more, with what is wrong."""
        return AGAIN.format(reason=reason, scale=self.job.rubric.scale)

    async def store(self, heard: Heard, reading: Parsed) -> None:
        """Store one call, and its ratings if it gave any."""
        record = _record(self.lane, self.job, self.number, heard, reading)
        await self.writer.write((record, self.job.rubric, reading.reply))

    async def not_asked(self, status: Status, reason: str) -> Status:
        """Store why the response was not put to the juror."""
        return await _not_asked(self.writer, self.lane, self.job, status, reason)


async def _not_asked(writer: Writer, lane: Lane, job: Job, status: Status, reason: str) -> Status:
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
    await writer.write((record, job.rubric, None))
    return status


def _record(lane: Lane, job: Job, number: int, heard: Heard, parsed: Parsed) -> AttemptRecord:
    """Return an attempt as the study keeps it."""
    call, answer = heard.call, heard.answer
    ignored = f"ignored: {', '.join(parsed.extra)}" if parsed.extra else ""
    return AttemptRecord(
        rater=lane.rater,
        response=job.response,
        status=parsed.status,
        request_sha256=request_sha256(lane.juror, call),
        replicate=job.replicate,
        number=number,
        sent={**answer.sent, "turns": len(call.messages), **_broken(job)},
        raw=storable(answer.text),
        reason=storable(parsed.reason or ignored),
        tokens_in=answer.usage.tokens_in,
        tokens_out=answer.usage.tokens_out,
        tokens_cached=answer.usage.tokens_cached,
        tokens_reasoning=answer.usage.tokens_reasoning,
        usd=heard.cost.usd,
        price_source=heard.cost.source,
        latency_seconds=heard.seconds,
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
