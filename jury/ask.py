"""Asking a juror about one response: the answer is parsed, and each request stored."""

import hashlib
from dataclasses import replace
from typing import Any

from data.schema import Attempt, Status
from data.store.intents import Step
from jury.asking import NO_TEXT, again
from jury.call import Answer, Call
from jury.conversation import Conversation, not_asked, sha256_of
from jury.expected_score import read_for
from jury.panel import Juror
from jury.parse import Parsed
from jury.same_prompts import SamePrompts
from jury.session import JurorSession, RunContext
from jury.worklist import Job
from jury.writer import Writer


async def ask(
    writer: Writer, same: SamePrompts, context: RunContext, session: JurorSession, job: Job
) -> Status | None:
    """Return how one verdict ended; None if the run was stopped before it was asked for."""
    if not job.has_text:
        return await _not_asked(writer, session, job, Status.EMPTY_RESPONSE, NO_TEXT)
    verdict = _Verdict(writer, session, job)
    if job.response not in same.responses:
        return await verdict.hold(context)
    async with same.turn(session.rater, job, verdict.call()):
        entry = same.stored(session.rater, job, verdict.call(), verdict.sha256_of)
        if entry is None:
            return await verdict.hold(context)
        await writer.write(Step(attempt=entry))
    context.shared()
    return Status.OK


class _Verdict(Conversation[Parsed]):
    """A conversation about one response."""

    def __init__(self, writer: Writer, session: JurorSession, job: Job) -> None:
        explanation = session.juror.explanation
        question, schema = job.question(explanation), job.rubric.json_schema(explanation)
        super().__init__(writer, session, question, schema, job.replicate)
        self.job = job

    @property
    def about(self) -> dict[str, int]:
        """What the conversation is about, as an intent names it."""
        return {"response": self.job.response}

    def call(self) -> Call:
        """Return the next request."""
        return replace(super().call(), probabilities=self.session.juror.expected)

    def read(self, answer: Answer) -> Parsed:
        """Return what an answer says, or why it says nothing."""
        return read_for(self.session.juror, answer, self.job.rubric)

    def again(self, reason: str) -> str:
        """Return the question once more, with what is wrong."""
        return again(reason, self.job.rubric.scale)

    def sha256_of(self, call: Call) -> str:
        """Return the hash of all that makes a request that request."""
        return request_sha256(self.session.juror, call)

    def came(self, columns: dict[str, Any], reading: Parsed) -> Step:
        """Return one call, and the reply if it gave any."""
        job, rubric = self.job, self.job.rubric
        if forged := rubric.forged(job.card):
            columns["sent"]["tags_broken_in"] = list(forged)
        columns["distribution"] = reading.distribution
        made = {"response": job.response, "replicate": job.replicate, **columns}
        return Step(attempt=(made, rubric, reading.reply))

    async def not_asked(self, status: Status, reason: str) -> Status:
        """Store why the response was not put to the juror."""
        return await _not_asked(self.writer, self.session, self.job, status, reason)


async def _not_asked(
    writer: Writer, session: JurorSession, job: Job, status: Status, reason: str
) -> Status:
    record = not_asked_record(session.rater, job, status, reason)
    await writer.write(Step(attempt=(record, job.rubric, None)))
    return status


def not_asked_record(rater: int, job: Job, status: Status, reason: str) -> Attempt:
    """Return the attempt that a response which was not put to a juror at all is."""
    digest = hashlib.sha256(job.card.response.encode("utf-8", "replace")).hexdigest()
    columns = not_asked(rater, status, reason, digest)
    return Attempt(response=job.response, replicate=job.replicate, **columns)


def request_sha256(juror: Juror, call: Call) -> str:
    """Return the hash of all that makes a request that request."""
    return sha256_of(juror, call, call.replicate)
