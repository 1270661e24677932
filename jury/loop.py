"""The event loop of a run, and Ctrl-C on it."""

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any


def run_loop(work: Coroutine[Any, Any, None]) -> None:
    """Run it on uvloop where there is one: Windows has none."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
        return
    uvloop.run(work)


@contextmanager
def stopped_by_interrupt(stopping: asyncio.Event) -> Iterator[None]:
    """Let the first Ctrl-C set the event; a second one interrupts as usual."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        stopping.set()
        loop.remove_signal_handler(signal.SIGINT)

    try:
        loop.add_signal_handler(signal.SIGINT, stop)
    except (NotImplementedError, RuntimeError, ValueError):  # not in the main thread, or Windows
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def first_cause(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first cause in a group of failures."""
    first = failures.exceptions[0]
    return first_cause(first) if isinstance(first, BaseExceptionGroup) else first
