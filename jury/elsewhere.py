"""A juror's line through an executor: the run stays with its owner, only the call is made elsewhere.

The owner keeps the queue, the money, the hosts' limits and the study. Whoever has the executor
gets a juror's settings and one call, takes the key from the environment there, and hands back
the answer; a key never travels.
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
_lines: dict[Juror, Provider] = {}


class NoWorker(BrokenExecutor):
    """There is no worker: the call never left."""


class ExecutorProvider:
    """A juror whose calls an executor makes.

    A worker that dies in mid-call may have had it answered and billed: the call ends as one that
    nobody answered does, is stored and counted so, and is made again.

    Attributes
    ----------
    alone
        Why nobody made its last call, empty if somebody did.
    """

    def __init__(self, juror: Juror, executor: Executor) -> None:
        self._juror, self._executor = juror, executor
        self.alone = ""

    async def complete(self, call: Call) -> Answer:
        """Return how the call ended."""
        try:
            answer = await asyncio.wrap_future(self._executor.submit(complete, self._juror, call))
        except NoWorker as error:
            self.alone = str(error)
            return Answer(Status.REQUEST_FAILED, self.alone, transient=True, unsent=True)
        except BrokenExecutor as error:
            return Answer(Status.REQUEST_FAILED, str(error), transient=True)
        self.alone = ""
        return answer

    async def close(self) -> None:
        """Let go of nothing: lines are open where the calls are made, for as long as that lasts."""


def with_lost_jurors(result: RunResult, lines: Mapping[str, Provider]) -> RunResult:
    """Return a result that counts as stopped each juror whose last call nobody was left to make."""
    alone = {
        name: line.alone
        for name, line in lines.items()
        if isinstance(line, ExecutorProvider) and line.alone
    }
    return replace(result, stopped=alone | dict(result.stopped))


def complete(juror: Juror, call: Call) -> Answer:
    """Return how a call ended that is made here, in a process that keeps its lines open."""
    return asyncio.run_coroutine_threadsafe(_complete(juror, call), _loop()).result()


def missing_keys(names: Sequence[str]) -> list[str]:
    """Return which variables for keys are not set here."""
    return [name for name in names if name and not os.environ.get(name)]


async def _complete(juror: Juror, call: Call) -> Answer:
    if juror not in _lines:
        _lines[juror] = open_provider(juror, os.environ.get(juror.api_key_env) or "none")
    return await _lines[juror].complete(call)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the loop of this process on which all its calls wait."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="calls").start()
    return loop
