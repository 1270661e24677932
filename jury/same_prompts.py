"""Asking a prompt once: what a juror says of a text counts for every response that has it.

Only a verdict that stands is shared, within one juror, rubric and replicate, from this run or an
earlier one. A prompt whose call fails is asked again with the next response that has it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from weakref import WeakValueDictionary

from sqlalchemy import Engine

from data.queries.same_prompts import (
    StoredVerdict,
    responses_with_equal_texts,
    verdict_of_same_prompt,
)
from data.schema import Attempt, Status
from data.store.attempts import Entry
from jury.call import Call
from jury.cost import free
from jury.providers import FORMS
from jury.worklist import Job

Key = tuple[int, int, str, str]
ASKED_ONCE = "same prompt as another response: asked once"


class SamePrompts:
    """The verdicts of a study that may count for more than one response.

    Attributes
    ----------
    responses
        Those (primary keys) whose text another response has too; no other prompt can be the same.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.responses = responses_with_equal_texts(engine)
        self._turns: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, rater: int, job: Job, call: Call) -> AsyncIterator[None]:
        """Let one at a time ask a juror a prompt: who waited finds the verdict stored."""
        digest = sha256(call.messages[0].text.encode("utf-8", "replace")).hexdigest()
        key = (rater, job.replicate, job.rubric.sha256, digest)
        lock = self._turns.setdefault(key, asyncio.Lock())
        async with lock:
            yield

    def stored(
        self, rater: int, job: Job, call: Call, hash_of: Callable[[Call], str]
    ) -> Entry | None:
        """Return what is to be stored of a job whose prompt a verdict stands on; None without."""
        hashes = hashes_of(call, hash_of)
        found = verdict_of_same_prompt(self._engine, rater, job.rubric, job.replicate, hashes)
        return None if found is None else (_shared(rater, job, found), job.rubric, found.reply)


def hashes_of(call: Call, hash_of: Callable[[Call], str]) -> Sequence[str]:
    """Return the hashes that a request has in each form it may be sent in."""
    return [hash_of(replace(call, form=form)) for form in FORMS]


def _shared(rater: int, job: Job, found: StoredVerdict) -> Attempt:
    """Return the attempt that a verdict is which was given to the same prompt: no call."""
    cost = free(ASKED_ONCE)
    return Attempt(
        rater=rater,
        response=job.response,
        replicate=job.replicate,
        status=Status.OK,
        rubric_sha256=job.rubric.sha256,
        request_sha256=found.request_sha256,
        number=0,
        reason=ASKED_ONCE,
        sent={"same_prompt_as": found.attempt},
        raw=found.raw,
        usd=cost.usd,
        usd_cached=cost.usd_cached,
        usd_cache_write=cost.usd_cache_write,
        usd_out=cost.usd_out,
        price_source=cost.source,
        returned_model=found.returned_model,
        distribution=None if found.distribution is None else dict(found.distribution),
    )
