"""Storing attempts beside the event loop, as many in one transaction as have come in."""

import asyncio

from sqlalchemy import Engine

from data.card import Reply
from data.rubric import Rubric
from data.store.attempts import AttemptRecord, record_attempts

Entry = tuple[AttemptRecord, Rubric, Reply | None]


class Writer:
    """Stores what it is given, and returns to each giver only when their entry is stored.

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


def _resolve(stored: asyncio.Future[None], failure: BaseException | None) -> None:
    """Tell one giver how it ended, unless they have gone."""
    if stored.done():
        return
    if failure is None:
        stored.set_result(None)
    else:
        stored.set_exception(failure)
