"""Asking a juror about one response: the answer is parsed, and each request stored."""

import asyncio
import hashlib
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine

from data.card import Card, Reply
from data.rubric import Rubric
from data.schema import Attempt, Status
from data.store.attempts import record_attempts
from jury.call import Answer, Call
from jury.conversation import Conversation, JurorSession, RunContext, not_asked, sha256_of
from jury.panel import Juror
from jury.parse import Parsed, read_answer

AGAIN = (
    "This answer cannot be used: {reason}. Rate the same response again. Answer with one JSON "
    "object only, in the form given above, every score a whole number on the scale {scale}."
)
NO_TEXT = "the response has no text"
Entry = tuple[Attempt, Rubric, Reply | None]


@dataclass(frozen=True, slots=True)
class Job:
    """One response (primary key) to be rated once on a rubric."""

    response: int
    card: Card
    rubric: Rubric
    replicate: int = 0

    @property
    def has_text(self) -> bool:
        """Whether there is anything to rate."""
        return bool(self.card.response.strip())


class Writer:
    """Stores attempts beside the event loop, and returns to each giver when theirs is stored.

    While one transaction is under way, the entries that arrive wait together for the next, so
    a busy run pays for few transactions and a killed one loses only the calls still in flight.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: list[tuple[Entry, asyncio.Future[None]]] = []
        self._busy: asyncio.Task[None] | None = None

    async def write(self, entry: Entry) -> None:
        """Store one entry."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, stored))
        if self._busy is None:
            self._busy = asyncio.create_task(self._drain())
        await stored

    async def _drain(self) -> None:
        """Store whatever waits until nothing waits any more."""
        while self._waiting:
            batch, self._waiting = self._waiting, []
            failure: BaseException | None = None
            try:
                await asyncio.to_thread(
                    record_attempts, self._engine, [entry for entry, _ in batch]
                )
            except BaseException as error:
                failure = error
            for _, stored in batch:
                _resolve(stored, failure)
        self._busy = None


async def ask(
    writer: Writer, context: RunContext, session: JurorSession, job: Job
) -> Status | None:
    """Return how one verdict ended; None if the run was stopped before it was asked for."""
    if not job.has_text:
        return await _not_asked(writer, session, job, Status.EMPTY_RESPONSE, NO_TEXT)
    return await _Verdict(writer, session, job).hold(context)


class _Verdict(Conversation[Parsed]):
    """A conversation about one response."""

    def __init__(self, writer: Writer, session: JurorSession, job: Job) -> None:
        super().__init__(
            session, job.rubric.render(job.card), job.rubric.json_schema(), job.replicate
        )
        self.writer, self.job = writer, job

    def read(self, answer: Answer) -> Parsed:
        """Return what an answer says, or why it says nothing."""
        return read_answer(answer, self.job.rubric)

    def again(self, reason: str) -> str:
        """Return the question once more, with what is wrong."""
        return AGAIN.format(reason=reason, scale=self.job.rubric.scale)

    def sha256_of(self, call: Call) -> str:
        """Return the hash of all that makes a request that request."""
        return request_sha256(self.session.juror, call)

    async def store(self, columns: dict[str, Any], reading: Parsed) -> None:
        """Store one call, and its ratings if it gave any."""
        job, rubric = self.job, self.job.rubric
        if forged := rubric.forged(job.card):
            columns["sent"]["tags_broken_in"] = list(forged)
        record = Attempt(response=job.response, replicate=job.replicate, **columns)
        await self.writer.write((record, rubric, reading.reply))

    async def not_asked(self, status: Status, reason: str) -> Status:
        """Store why the response was not put to the juror."""
        return await _not_asked(self.writer, self.session, self.job, status, reason)


async def _not_asked(
    writer: Writer, session: JurorSession, job: Job, status: Status, reason: str
) -> Status:
    await writer.write((not_asked_record(session.rater, job, status, reason), job.rubric, None))
    return status


def not_asked_record(rater: int, job: Job, status: Status, reason: str) -> Attempt:
    """Return the attempt that a response which was not put to a juror at all is."""
    digest = hashlib.sha256(job.card.response.encode("utf-8", "replace")).hexdigest()
    columns = not_asked(rater, status, reason, digest)
    return Attempt(response=job.response, replicate=job.replicate, **columns)


def request_sha256(juror: Juror, call: Call) -> str:
    """Return the hash of all that makes a request that request."""
    return sha256_of(juror, call, call.replicate)


def _resolve(stored: asyncio.Future[None], failure: BaseException | None) -> None:
    """Tell one giver how it ended, unless they have gone."""
    if stored.done():
        return
    if failure is None:
        stored.set_result(None)
    else:
        stored.set_exception(failure)
