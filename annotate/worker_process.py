"""The process that computes for the app: functions by name in, their values out.

    python -m annotate.worker_process IDLE_SECONDS DESCRIPTOR...     `annotate.worker` starts it

Each descriptor is one end of a connection that carries one question at a time, and each connection
has a thread of its own. Before the answer come shares of the work that are done, where a function takes
a `tick`. The process ends when its parent has, and when nobody has asked for so long.
"""

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from inspect import signature
from multiprocessing.connection import Connection, wait
from pkgutil import resolve_name
from threading import Lock
from time import monotonic
from typing import Any

from data.database import open_study
from data.errors import MedjuryError

NICE = 5  # the raters come first
SHARE, ANSWER = b"s", b"a"  # the first byte of a message: what it is
TICK = "tick"  # the parameter of a function that tells how far it is
TELL_SECONDS = 0.2
SILENT = "this could not be computed; the server's log says why"


class Teller:
    """Tell over a connection what share of a computation is done, not too often."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = Lock()
        self._last = 0.0

    def __call__(self, share: float) -> None:
        """Tell a share, 0 to 1, from any thread."""
        with self._lock, suppress(OSError):
            if monotonic() - self._last >= TELL_SECONDS:
                self._last = monotonic()
                self._connection.send_bytes(SHARE + pickle.dumps(float(share)))


_teller: ContextVar[Callable[[float], None] | None] = ContextVar("teller", default=None)


def serve(idle_seconds: float, connections: Sequence[Connection]) -> None:
    """Answer whatever is asked until nobody has asked for so many seconds."""
    threads = {connection: ThreadPoolExecutor(1) for connection in connections}
    answers: dict[Connection, Future[bytes]] = {}
    while True:
        ready = [
            connection
            for connection in wait(connections, idle_seconds)
            if isinstance(connection, Connection)
        ]
        if not ready and all(answer.done() for answer in answers.values()):
            return
        for connection in ready:
            answers[connection] = threads[connection].submit(
                _answer, connection, _asked(connection)
            )
            answers[connection].add_done_callback(partial(_send, connection))


def of_study(url: str, function: str, question: object) -> Any:
    """Return what a function makes of a study and a question; no connection stays open."""
    engine, made = open_study(url), resolve_name(function)
    told = {TICK: _teller.get()} if TICK in signature(made).parameters and _teller.get() else {}
    try:
        return made(engine, question, **told)
    finally:
        engine.dispose()


def load(*modules: str) -> None:
    """Import modules, so that who asks next does not wait for it."""
    for module in modules:
        import_module(module)


def _asked(connection: Connection) -> bytes:
    """Return the next question; without a parent there is nobody to answer."""
    try:
        return connection.recv_bytes()
    except (EOFError, OSError):
        os._exit(0)  # at once: a thread may be in the middle of a long computation


def _answer(connection: Connection, question: bytes) -> bytes:
    _teller.set(Teller(connection))
    function, arguments = pickle.loads(question)  # noqa: S301 only our parent has the other end
    return pickle.dumps(resolve_name(function)(*arguments))


def _send(connection: Connection, answer: "Future[bytes]") -> None:
    """Send an answer, or the error that there is instead; only its user's errors are told."""
    error = answer.exception()
    if error is not None and not isinstance(error, MedjuryError):
        _log(error)
        error = MedjuryError(SILENT)
    with suppress(OSError):  # nobody is there any more
        connection.send_bytes(ANSWER + (answer.result() if error is None else pickle.dumps(error)))


def _log(error: BaseException) -> None:
    """Write what kind of error it was and where; its words may quote a patient's text."""
    while error.__cause__ is not None:
        error = error.__cause__
    places = "".join(traceback.format_tb(error.__traceback__))
    sys.stderr.write(f"medjury: {type(error).__qualname__} in the worker process:\n{places}")
    sys.stderr.flush()


def main(idle_seconds: str, *descriptors: str) -> None:
    """Serve; what libraries print goes to the log, and Ctrl-C ends this without a word."""
    os.nice(NICE)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve(float(idle_seconds), [Connection(int(descriptor)) for descriptor in descriptors])


if __name__ == "__main__":
    import_module("annotate.worker_process").main(*sys.argv[1:])  # once: the questions name it so
