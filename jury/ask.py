"""Ask one juror about one response, or take over its verdict on the very same prompt.

What a juror says of a text counts for every response that has this text. Only a verdict that stands
is shared, within one juror, rubric and replicate, from this run or an earlier one. A prompt whose
call fails is asked again with the next response that has it.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from typing import Any
from weakref import WeakValueDictionary

from sqlalchemy import Engine

from data.question import SLOT
from data.schema import Attempt, Purpose, Status
from data.study.calls import (
    Entry,
    Step,
    StoredVerdict,
    responses_with_equal_texts,
    verdict_of_same_prompt,
)
from jury.call import Call, Turn
from jury.conversation import Conversation, Writer, request_sha256
from jury.cost import no_cost
from jury.expected_score import read_for
from jury.panel import Juror
from jury.providers.registry import FORMS
from jury.session import JurorSession, RunContext
from jury.task import AGAIN, NO_TEXT, Task
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

    def stored(self, juror: Juror, rater: int, job: Job, call: Call) -> Entry | None:
        """Return the entry that stores a verdict on the same prompt for a job, None if there is none."""
        hashes = hashes_of(juror, call)
        verdict = verdict_of_same_prompt(self._engine, rater, job.rubric, job.replicate, hashes)
        if verdict is None:
            return None
        return _shared_attempt(rater, job, verdict), job.rubric, verdict.reply


def hashes_of(juror: Juror, call: Call) -> Sequence[str]:
    """Return the hashes that a request has in each form it may be sent in."""
    return [request_sha256(juror, replace(call, form=form)) for form in FORMS]


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
        answer=None if verdict.answer is None else dict(verdict.answer),
    )


def verdict_task(juror: Juror, job: Job) -> Task:
    """Return the question for a verdict on one response."""
    forged = job.rubric.forged(job.card)
    return Task(
        Purpose.VERDICT,
        {"response": job.response},
        job.question(juror.explanation),
        job.rubric.json_schema(juror.explanation),
        lambda answer: read_for(juror, answer, job.rubric),
        AGAIN.replace("{scale}", str(job.rubric.scale)),
        job.rubric,
        job.replicate,
        _shorter(juror, job),
        {"tags_broken_in": list(forged)} if forged else {},
    )


def _shorter(juror: Juror, job: Job) -> tuple[Turn, Mapping[str, Any]] | None:
    if juror.explanation == "none" or SLOT not in (job.read or job.rubric).prompt:
        return None
    return job.question("none"), job.rubric.json_schema("none")


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
    async with same.turn(session.rater, job, conversation.call()):
        entry = same.stored(session.juror, session.rater, job, conversation.call())
        if entry is None:
            return await conversation.run(context)
        await writer.write(Step(attempt=entry))
    context.shared()
    return Status.OK
