"""The process that computes for the app: functions by name in, their values out.

    python -m annotate.worker_process IDLE_SECONDS DESCRIPTOR...     `annotate.worker` starts it

Each descriptor is one end of a connection that carries one question at a time, and each connection
has a thread of its own. The process ends when its parent has, and when nobody has asked for so long.
"""

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pkgutil import resolve_name
from typing import Any

from data.database import open_study
from data.errors import MedjuryError

NICE = 5  # the raters come first
SILENT = "this could not be computed; the server's log says why"


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
            answers[connection] = threads[connection].submit(_answer, _asked(connection))
            answers[connection].add_done_callback(partial(_send, connection))


def of_study(url: str, function: str, question: object) -> Any:
    """Return what a function makes of a study and a question; no connection stays open."""
    engine = open_study(url)
    try:
        return resolve_name(function)(engine, question)
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


def _answer(question: bytes) -> bytes:
    function, arguments = pickle.loads(question)  # noqa: S301 only our parent has the other end
    return pickle.dumps(resolve_name(function)(*arguments))


def _send(connection: Connection, answer: "Future[bytes]") -> None:
    """Send an answer, or the error that there is instead; only its user's errors are told."""
    error = answer.exception()
    if error is not None and not isinstance(error, MedjuryError):
        _log(error)
        error = MedjuryError(SILENT)
    with suppress(OSError):  # nobody is there any more
        connection.send_bytes(answer.result() if error is None else pickle.dumps(error))


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
    main(*sys.argv[1:])
