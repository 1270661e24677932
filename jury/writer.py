"""Storing calls beside the event loop: many in one transaction, each giver told when theirs is in."""

import asyncio
import secrets

from sqlalchemy import Engine

from data.store.intents import Step, record_steps


class Writer:
    """Stores steps of calls beside the event loop, and returns to each giver when theirs is stored.

    While one transaction is under way, the steps that arrive wait together for the next, so
    a busy run pays for few transactions and a killed one loses only the calls still in flight.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._run = secrets.token_hex(8)
        self._number = 0
        self._waiting: list[tuple[Step, asyncio.Future[None]]] = []
        self._busy: asyncio.Task[None] | None = None

    def key(self) -> str:
        """Return a key that no other call has."""
        self._number += 1
        return f"{self._run}-{self._number}"

    async def write(self, step: Step) -> None:
        """Store one step."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((step, stored))
        if self._busy is None:
            self._busy = asyncio.create_task(self._drain())
        await stored

    async def _drain(self) -> None:
        """Store whatever waits until nothing waits any more."""
        while self._waiting:
            batch, self._waiting = self._waiting, []
            failure: BaseException | None = None
            try:
                await asyncio.to_thread(record_steps, self._engine, [step for step, _ in batch])
            except BaseException as error:
                failure = error
            for _, stored in batch:
                _resolve(stored, failure)
        self._busy = None


def _resolve(stored: asyncio.Future[None], failure: BaseException | None) -> None:
    """Tell one giver how it ended, unless they have gone."""
    if stored.done():
        return
    if failure is None:
        stored.set_result(None)
    else:
        stored.set_exception(failure)
