"""Ask one juror about one response, or take over its verdict on the very same prompt.

What a juror says of a text counts for every response that has this text. Only a verdict that stands
is shared, within one juror, rubric and replicate, from this run or an earlier one. A prompt whose
call fails is asked again with the next response that has it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from typing import Any
from weakref import WeakValueDictionary

from sqlalchemy import Engine

from data.schema import Attempt, Status
from data.study.calls import (
    Entry,
    Step,
    StoredVerdict,
    responses_with_equal_texts,
    verdict_of_same_prompt,
)
from jury.asking import NO_TEXT, retry_question
from jury.call import Answer, Call
from jury.conversation import Conversation, Writer, hash_request, not_asked_columns
from jury.cost import no_cost
from jury.expected_score import read_for
from jury.panel import Juror
from jury.parse import ParsedAnswer
from jury.providers.registry import FORMS
from jury.session import JurorSession, RunContext
from jury.window import prompt_size
from jury.worklist import Job

Key = tuple[int, int, str, str]
ASKED_ONCE = "same prompt as another response: asked once"


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
        self._turns: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, rater: int, job: Job, call: Call) -> AsyncIterator[None]:
        """Hold the lock of a juror's prompt: who waited for it finds the verdict stored."""
        digest = sha256(call.messages[0].text.encode("utf-8", "replace")).hexdigest()
        key = (rater, job.replicate, job.rubric.sha256, digest)
        lock = self._turns.setdefault(key, asyncio.Lock())
        async with lock:
            yield

    def stored(
        self, rater: int, job: Job, call: Call, hash_of: Callable[[Call], str]
    ) -> Entry | None:
        """Return the entry that stores a verdict on the same prompt for a job, None if there is none."""
        hashes = hashes_of(call, hash_of)
        verdict = verdict_of_same_prompt(self._engine, rater, job.rubric, job.replicate, hashes)
        if verdict is None:
            return None
        return _shared_attempt(rater, job, verdict), job.rubric, verdict.reply


def hashes_of(call: Call, hash_of: Callable[[Call], str]) -> Sequence[str]:
    """Return the hashes that a request has in each form it may be sent in."""
    return [hash_of(replace(call, form=form)) for form in FORMS]


def _shared_attempt(rater: int, job: Job, verdict: StoredVerdict) -> Attempt:
    """Return the attempt of a job that takes over a verdict on the same prompt, without a call."""
    cost = no_cost(ASKED_ONCE)
    return Attempt(
        rater=rater,
        response=job.response,
        replicate=job.replicate,
        status=Status.OK,
        rubric_sha256=job.rubric.sha256,
        request_sha256=verdict.request_sha256,
        number=0,
        reason=ASKED_ONCE,
        sent={"same_prompt_as": verdict.attempt},
        raw=verdict.raw,
        usd=cost.usd,
        usd_cached=cost.usd_cached,
        usd_cache_write=cost.usd_cache_write,
        usd_out=cost.usd_out,
        price_source=cost.source,
        returned_model=verdict.returned_model,
        distribution=None if verdict.distribution is None else dict(verdict.distribution),
    )


async def ask(
    writer: Writer, same: SamePrompts, context: RunContext, session: JurorSession, job: Job
) -> Status | None:
    """Ask a juror about a response and store each attempt.

    Returns
    -------
    Status or None
        How the verdict ended; None if the run was stopped before it was asked for.
    """
    if not job.has_text:
        return await _not_asked(writer, session, job, Status.EMPTY_RESPONSE, NO_TEXT)
    verdict = Verdict(writer, session, job)
    size = prompt_size(session.juror, verdict.messages[0].text)
    if size.is_too_long:
        return await verdict.not_asked(Status.TOO_LONG, size.reason)
    if job.response not in same.responses:
        return await verdict.run(context)
    async with same.turn(session.rater, job, verdict.call()):
        entry = same.stored(session.rater, job, verdict.call(), verdict.request_hash)
        if entry is None:
            return await verdict.run(context)
        await writer.write(Step(attempt=entry))
    context.shared()
    return Status.OK


class Verdict(Conversation[ParsedAnswer]):
    """One juror asked about one response."""

    def __init__(self, writer: Writer, session: JurorSession, job: Job) -> None:
        explanation = session.juror.explanation
        question, schema = job.question(explanation), job.rubric.json_schema(explanation)
        super().__init__(writer, session, question, schema, job.replicate)
        self.job = job

    @property
    def subject(self) -> dict[str, int]:
        """The response that is asked about."""
        return {"response": self.job.response}

    def call(self) -> Call:
        """Return the next request."""
        return replace(super().call(), probabilities=self.session.juror.expected)

    def read(self, answer: Answer) -> ParsedAnswer:
        """Return the verdict in an answer, or why there is none."""
        return read_for(self.session.juror, answer, self.job.rubric)

    def retry_question(self, reason: str) -> str:
        """Return the question that follows an answer which cannot be used."""
        return retry_question(reason, self.job.rubric.scale)

    def request_hash(self, call: Call) -> str:
        """Return the hash of a request, its replicate included."""
        return request_sha256(self.session.juror, call)

    def step(self, columns: dict[str, Any], reading: ParsedAnswer) -> Step:
        """Return the attempt that is stored of a request, with its reply if there is one."""
        job, rubric = self.job, self.job.rubric
        if forged := rubric.forged(job.card):
            columns["sent"]["tags_broken_in"] = list(forged)
        columns["distribution"] = reading.distribution
        columns_made = {"response": job.response, "replicate": job.replicate, **columns}
        return Step(attempt=(columns_made, rubric, reading.reply))

    async def not_asked(self, status: Status, reason: str) -> Status:
        """Store why the juror was not asked about the response."""
        return await _not_asked(self.writer, self.session, self.job, status, reason)


async def _not_asked(
    writer: Writer, session: JurorSession, job: Job, status: Status, reason: str
) -> Status:
    record = not_asked_record(session.rater, job, status, reason)
    await writer.write(Step(attempt=(record, job.rubric, None)))
    return status


def not_asked_record(rater: int, job: Job, status: Status, reason: str) -> Attempt:
    """Return the attempt of a job that was not asked, with the reason."""
    digest = sha256(job.card.response.encode("utf-8", "replace")).hexdigest()
    columns = not_asked_columns(rater, status, reason, digest)
    return Attempt(response=job.response, replicate=job.replicate, **columns)


def request_sha256(juror: Juror, call: Call) -> str:
    """Return the hash of a request about a response, its replicate included."""
    return hash_request(juror, call, call.replicate)
