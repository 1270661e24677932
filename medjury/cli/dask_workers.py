"""`--on ADDRESS`: the workers of a Dask scheduler compute. TLS is as Dask's own configuration says.

Dask logs what fails with its arguments. So what may hold a text travels in an `Opaque`, which shows
nothing of it, and no piece of work fails there: a failure comes back as an outcome.
"""

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from data.errors import BadInput, MedjuryError
from medjury.cli.output import counted, say

SECONDS = 15.0  # to find the scheduler, and its first worker
On = Annotated[
    str | None,
    typer.Option("--on", metavar="ADDRESS", help="Dask scheduler whose workers do the work."),
]


@contextmanager
def computing(on: str | None, what: str) -> Iterator[Executor | None]:
    """Yield what computes at an address, None for this process; say what goes there.

    Raises
    ------
    BadInput
        If there is no scheduler with a worker, a worker has another version, or all are lost.
    """
    if on is None:
        yield None
        return
    if find_spec("distributed") is None:
        raise BadInput(f"--on {on}: Dask is not installed; install it with `uv sync --extra dask`")
    from distributed import Client

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module="distributed")
    try:
        client = Client(on, timeout=SECONDS, set_as_default=False)
        client.wait_for_workers(1, timeout=SECONDS)
        versions = client.run(version, "medjury", on_error="return")
    except (OSError, TypeError, RuntimeError, ValueError) as error:
        raise BadInput(
            f"--on {on}: no Dask scheduler with a worker answers there ({error}); start them with "
            "`dask scheduler` and `dask worker ADDRESS`, and name the address it prints"
        ) from error
    with client:
        own = version("medjury")
        for worker, other in versions.items():
            if other != own:
                raise BadInput(f"--on {on}: worker {worker} has medjury {other}, here {own}")
        plain = "; tcp:// is not encrypted, tls:// is" if on.startswith("tcp://") else ""
        say(f"{what} sent to {counted(len(versions), 'worker')} of {on}{plain}")
        yield Workers(client, on)


@dataclass(frozen=True, eq=False, repr=False)
class Opaque:
    """Something that is sent and must not be shown."""

    value: Any


class Workers(Executor):
    """Maps a function over pieces at the workers; results come in the order of the pieces."""

    def __init__(self, client: Any, on: str) -> None:
        self._client, self._on = client, on

    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any], **_: Any) -> Iterator[Any]:
        """Yield the function of each piece; raise what it raised, and BadInput where workers are lost."""
        pieces = [Opaque(piece) for piece in zip(*iterables, strict=False)]
        work = self._client.scatter(Opaque(fn), hash=False)
        tasks = self._client.map(_outcome, [work] * len(pieces), pieces, pure=False)
        for task in tasks:
            outcome = self._result(task)
            if isinstance(outcome, MedjuryError):
                raise type(outcome)(f"--on {self._on}: {outcome}")
            if isinstance(outcome, Exception):
                raise outcome
            yield outcome

    def _result(self, task: Any) -> Any:
        from distributed import KilledWorker

        try:
            while True:
                with suppress(TimeoutError):
                    return task.result(timeout=SECONDS).value
                if not self._client.nthreads():
                    raise OSError
        except (CancelledError, OSError, KilledWorker) as error:
            raise BadInput(f"--on {self._on}: its workers were lost; run this again") from error


def _outcome(work: Opaque, piece: Opaque) -> Opaque:
    """Return what a function makes of a piece, or what it raises, on one thread of the matrix library."""
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(1):
            return Opaque(work.value(*piece.value))
    except Exception as error:
        return Opaque(error)
