"""Jurors whose calls an executor makes: the run stays with its owner, only the call is made elsewhere.

The owner keeps the queue, the money, the hosts' limits and the study. A worker of the executor gets a
juror's settings and one call, takes the key from its own environment, and hands back the answer: a
key never travels.
"""

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor
from dataclasses import replace
from functools import cache

from data.schema import Status
from jury.call import Answer, Call, Provider
from jury.panel import Juror
from jury.providers.registry import open_provider
from jury.run_result import RunResult

LOST = "was lost in mid-call"
NO_WORKER = "no worker is left"
_providers: dict[Juror, Provider] = {}


class NoWorker(BrokenExecutor):
    """The executor has no worker: the call was never sent."""


class ExecutorProvider:
    """A juror whose calls an executor makes.

    A worker that dies during a call may have had it answered and billed: the call counts as one
    without an answer, is stored so, and is made again.

    Attributes
    ----------
    no_worker
        Why its last call found no worker, empty if one made it.
    """

    def __init__(self, juror: Juror, executor: Executor) -> None:
        self._juror, self._executor = juror, executor
        self.no_worker = ""

    async def complete(self, call: Call) -> Answer:
        """Return how the call ended."""
        try:
            answer = await asyncio.wrap_future(self._executor.submit(complete, self._juror, call))
        except NoWorker as error:
            self.no_worker = str(error)
            return Answer(Status.REQUEST_FAILED, self.no_worker, transient=True, unsent=True)
        except BrokenExecutor as error:
            return Answer(Status.REQUEST_FAILED, str(error), transient=True)
        self.no_worker = ""
        return answer

    async def close(self) -> None:
        """Do nothing: connections stay open in the workers, as long as those last."""


def with_lost_jurors(result: RunResult, providers: Mapping[str, Provider]) -> RunResult:
    """Return a result in which each juror whose last call found no worker counts as stopped."""
    reasons = {
        name: provider.no_worker
        for name, provider in providers.items()
        if isinstance(provider, ExecutorProvider) and provider.no_worker
    }
    return replace(result, stopped=reasons | dict(result.stopped))


def complete(juror: Juror, call: Call) -> Answer:
    """Return how a call ended that is made in this process, which keeps its connections open."""
    return asyncio.run_coroutine_threadsafe(_complete(juror, call), _loop()).result()


def missing_keys(names: Sequence[str]) -> list[str]:
    """Return which of these variables for keys are not set in this process."""
    return [name for name in names if name and not os.environ.get(name)]


async def _complete(juror: Juror, call: Call) -> Answer:
    if juror not in _providers:
        _providers[juror] = open_provider(juror, os.environ.get(juror.api_key_env) or "none")
    return await _providers[juror].complete(call)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of this process in which all its calls wait."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="calls").start()
    return loop
